"""`tres doctor` on machines that lack something; the machine of the tests lacks nothing."""

import os
import re
import subprocess
import sys
import threading
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from socket import gaierror

import pytest
from conftest import PROJECT

from tres_scrapy.cli import diagnosis
from tres_scrapy.cli.diagnosis import MISSING, OK, PROBLEM, diagnose, examine

BROKEN = """
import sys
sys.modules[sys.argv.pop(1)] = None
from tres_scrapy.cli.main import main
main()
"""
Usage = namedtuple("Usage", "free")


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Return the findings about a subject, in an empty folder without network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setattr(diagnosis, "getaddrinfo", lambda host, port: [])

    def found(subject, models=None):
        return [each for each in examine(models) if each.subject == subject]

    return found


def test_whole_machine_can_crawl(found, capsys):
    assert diagnose() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "A crawl can run here."
    findings, text = lines[:-2], "\n".join(lines)
    assert {line.split()[0] for line in findings} <= {OK, MISSING}
    starts = {len(line) - len(line[24:].lstrip()) for line in findings}
    assert starts == {24}, "the columns are aligned"
    assert f"in {PROJECT / 'models'}" in text
    assert "food, hardware, sports" in text
    assert "names are resolved" in text


def test_other_version_is_a_problem(found, monkeypatch):
    known = diagnosis.version
    versions = {"numpy": "1.26.4"}
    monkeypatch.setattr(diagnosis, "version", lambda name: versions.get(name) or known(name))
    (fault,) = found("packages")
    assert fault.status == PROBLEM
    assert "numpy" in fault.text
    assert "is installed in version 1.26.4: " in fault.text
    assert "pip install 'numpy" in fault.text
    assert diagnose() == 1


def test_package_that_is_not_installed_is_a_problem(found, monkeypatch):
    def version(name):
        if name == "torch":
            raise PackageNotFoundError(name)
        return known(name)

    known = diagnosis.version
    monkeypatch.setattr(diagnosis, "version", version)
    (fault,) = found("packages")
    assert "torch" in fault.text
    assert "is not installed: " in fault.text
    assert not found("topics"), "they cannot be read"


def test_packages_of_a_checkout_are_checked(found, monkeypatch):
    """A clone with requirements.txt has no metadata of the package."""

    def requires(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(diagnosis, "requires", requires)
    assert found("packages")[0].status == OK
    assert len(diagnosis._requirements()) > 20


def test_library_that_cannot_load_is_a_problem(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (fault,) = found("packages")
    assert fault.status == PROBLEM
    assert "a crawl cannot load them: import of torch halted" in fault.text


def test_extra_is_missing_with_its_command(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (finding,) = found("parquet")
    assert finding.status == MISSING
    assert finding.text.startswith("for feeds in Parquet: ")
    assert finding.text.endswith("[parquet]'")
    assert diagnose() == 0


def test_folders_of_topics_are_named(found, tmp_path):
    own = Path("models", "tasty")
    own.mkdir(parents=True)
    for file in (PROJECT / "models" / "food").iterdir():
        (own / file.name).write_bytes(file.read_bytes())
    texts = [finding.text for finding in found("topics")]
    assert f"food, hardware, sports, in {PROJECT / 'models'}" in texts
    damaged = next(own.glob("classifier-*"))
    damaged.write_bytes(b"")
    assert PROBLEM in {finding.status for finding in found("topics")}
    (nothing,) = found("topics", tmp_path / "empty")
    assert nothing.status == PROBLEM
    assert str(tmp_path / "empty") in nothing.text


def test_damaged_vectors_are_missing(found):
    path = Path("models", "vectors", "english.npz")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no vectors")
    assert found("word vectors")[0].status == MISSING


def test_unwritable_output_is_a_problem(found):
    Path("output").touch()
    (finding,) = found("output folder")
    assert finding.status == PROBLEM
    assert finding.text.endswith("cannot be written: Not a directory")


def test_full_disk_is_a_problem(found, monkeypatch):
    monkeypatch.setattr(diagnosis.shutil, "disk_usage", lambda path: Usage(99_000_000))
    (finding,) = found("disk space")
    assert finding.status == PROBLEM
    assert finding.text == "99 MB free here, must be 100 MB or more"


def test_few_open_files_are_a_problem(found, monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda which: (64, 4096))
    (finding,) = found("open files")
    assert finding.status == PROBLEM
    assert finding.text == "64 at most, must be 128 or more: ulimit -n 1024"


def test_no_network_is_one_line(found, monkeypatch):
    def refuse(host, port):
        raise gaierror(-2, "Name or service not known")

    monkeypatch.setattr(diagnosis, "getaddrinfo", refuse)
    (finding,) = found("network")
    assert finding.status == MISSING
    assert finding.text.startswith("example.org is not found (Name or service not known): ")
    assert diagnose() == 0, "an offline web can be crawled"


def test_silent_resolver_is_not_waited_for(found, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(diagnosis, "PATIENCE", 0.01)
    monkeypatch.setattr(diagnosis, "getaddrinfo", lambda host, port: over.wait())
    (finding,) = found("network")
    over.set()
    assert finding.text.startswith("example.org is not found (no answer): ")


def test_proxy_is_named_without_password(found, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://me:secret@proxy.test:3128")
    (finding,) = found("network")
    assert finding.text == "not tried: requests go to the proxy http://proxy.test:3128"


def test_missing_browser_is_said(found, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    (finding,) = found("chromium")
    assert finding.status == MISSING
    assert "no Chromium is installed: install Chromium (`apt-get" in finding.text


@pytest.mark.parametrize("package", ["click", "numpy", "lxml", "scrapy", "w3lib", "tldextract"])
@pytest.mark.long
def test_doctor_runs_in_a_broken_installation(tmp_path, package):
    def tres(*words):
        program = [sys.executable, "-c", BROKEN, package, *words]
        return subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)

    crawl = tres("crawl", "food", "--web", "synthetic")
    assert crawl.returncode == 1
    assert re.fullmatch(rf"tres: .*{package}.*: run `tres doctor`\n", crawl.stderr)
    assert "Traceback" not in tres("--help").stderr
    doctor = tres("doctor")
    assert doctor.returncode == 1, doctor.stderr
    assert re.search(rf"^problem  packages .*cannot load.*{package}", doctor.stdout, re.MULTILINE)
    assert doctor.stdout.endswith("A crawl cannot run here.\n")


@pytest.mark.long
def test_models_of_the_project_are_looked_at(tmp_path):
    (tmp_path / "own_settings.py").write_text("TRES_MODELS = 'none'\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tres_scrapy.cli.main", "doctor"],
        cwd=tmp_path,
        env=os.environ | {"SCRAPY_SETTINGS_MODULE": "own_settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.search(r"^problem  topics .*none", done.stdout, re.MULTILINE), done.stdout
