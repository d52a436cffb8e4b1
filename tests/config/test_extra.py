"""What is installed with the package, and the message if an extra is missing."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from conftest import PROJECT, interpreter
from packaging.requirements import Requirement

from tres_scrapy.config import extra as extra_module
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.extra import EXTRAS, PURPOSES, install_command, require

ALL = {package for packages in EXTRAS.values() for package in packages}
WITHOUT = """
import sys
missing = sys.argv.pop(1).split(",")
for name in [*sys.modules]:  # a fork has loaded them
    if name.partition(".")[0] in {"tres_scrapy", *missing}:
        del sys.modules[name]
sys.modules.update(dict.fromkeys(missing, None))
if sys.argv[1] == "crawl":
    from scrapy.cmdline import execute as main
else:
    from tres_scrapy.cli.main import main
main()
"""


def requirements(lines):
    """Return the bounds of each distribution by its name."""
    found = (re.match(r"([A-Za-z0-9-]+)(\[[a-z,]+\])?(.*)", line).groups() for line in lines)
    return {name.lower(): bounds for name, _, bounds in found}


@pytest.fixture(scope="module")
def declared():
    """The requirements of the core, under "", and of each extra."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return {name: requirements(lines) for name, lines in extras.items()} | {
        "": requirements(project["dependencies"])
    }


def distributions(packages):
    """Return the lower-case names of the distributions that packages come from."""
    known = packages_distributions()
    names = {name.lower() for package in packages for name in known[package]}
    return {re.sub(r"[._]", "-", name) for name in names}


@pytest.fixture
def without():
    """Run `scrapy crawl`, or a command of `tres`, as if an extra were not installed."""

    def run(packages, *arguments, fresh=False):
        python = sys.executable if fresh else interpreter().path
        return subprocess.run(
            [python, "-c", WITHOUT, ",".join(packages), *map(str, arguments)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_requirements_are_core_and_extras_of_the_crawl(declared):
    lines = (PROJECT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert requirements(lines) == declared[""] | {
        name: bounds
        for extra in EXTRAS
        if extra not in {"cluster", "mcp", "scrapyd"}  # Ray is large; a crawl needs no client
        for name, bounds in declared[extra].items()
    }


def test_bounds_have_two_ends(declared):
    for extra in ("", *EXTRAS):
        assert all(re.fullmatch(r">=[\d.]+,<[\d.]+", each) for each in declared[extra].values())


def test_extras_name_the_packages_they_install(declared):
    for extra, packages in EXTRAS.items():
        assert distributions(packages) == declared[extra].keys()


def test_each_import_is_declared(declared):
    nodes = [
        node
        for file in (PROJECT / "tres_scrapy").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ]
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    roots = {module.partition(".")[0] for module in modules}
    packages = roots - sys.stdlib_module_names - {"tres_scrapy"}
    assert distributions(packages - ALL) <= declared[""].keys()


def test_all_is_every_extra():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert extras["all"] == [f"tres-scrapy[{','.join(sorted(EXTRAS))}]"]
    assert extras.keys() == EXTRAS.keys() | {"all", "dev"}
    assert "tres-scrapy[all]" in extras["dev"]
    assert PURPOSES.keys() == EXTRAS.keys()


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.chdir(PROJECT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    needed = r"^the feed needs pyarrow: \S+ install .*\.\[parquet\]'$"
    with pytest.raises(ConfigError, match=needed):
        require("parquet", "the feed")
    monkeypatch.undo()
    require("parquet", "the feed")


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Return the words of the command for an origin that pip has noted, in a virtual environment.

    `place` is where it is typed; `checkout` is where the code runs from.
    """
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "pip").touch()
    monkeypatch.setattr(sys, "executable", str(programs / "python"))

    def words(origin, place=tmp_path, checkout=None):
        monkeypatch.chdir(place)
        monkeypatch.setattr(extra_module, "_origin", lambda: json.loads(json.dumps(origin)))
        monkeypatch.setattr(extra_module, "checkout_folder", lambda: checkout)
        return shlex.split(install_command("train"))

    return words


def test_pip_is_that_of_this_python(command, tmp_path):
    assert command({})[:2] == ["venv/bin/pip", "install"]
    assert command({}, place=tmp_path / "venv" / "bin")[0] == "pip"
    assert command({}, place=tmp_path.parent)[0] == f"{tmp_path.name}/venv/bin/pip"
    assert command({}, place=Path("/"))[0] == str(tmp_path / "venv/bin/pip").removeprefix("/")
    (tmp_path / "venv" / "bin" / "pip").unlink()
    assert command({})[:4] == ["venv/bin/python", "-m", "pip", "install"]


def test_checkout_is_installed_from_its_folder(command, tmp_path):
    checkout = tmp_path / "my clone"
    checkout.mkdir()
    linked = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    copied = {"url": checkout.as_uri(), "dir_info": {}}
    assert command({}, checkout, checkout)[1:] == ["install", ".[train]"]
    assert command(linked, checkout, checkout)[1:] == ["install", "-e", ".[train]"]
    assert command(copied, checkout)[1:] == ["install", ".[train]"]
    assert command(copied)[1:] == ["install", f"{checkout}[train]"]


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        (
            {"url": "https://git.test/t.git", "vcs_info": {"vcs": "git", "commit_id": "a1"}},
            "git+https://git.test/t.git",
        ),
        (
            {
                "url": "https://git.test/t.git",
                "vcs_info": {"vcs": "git", "commit_id": "a1", "requested_revision": "v1"},
            },
            "git+https://git.test/t.git@v1",
        ),
        ({"url": "file:///t.whl", "archive_info": {}}, "file:///t.whl"),
        ({"url": "file:///nowhere", "dir_info": {}}, "git+URL"),  # the clone is gone
        ({}, "git+URL"),
    ],
)
def test_installed_package_comes_from_its_origin(command, origin, url):
    """The name alone would be looked for on an index, where it is not ours."""
    *_, wanted = command(origin)
    assert wanted == f"tres-scrapy[train] @ {url}"
    assert Requirement(wanted).url == url


@pytest.mark.parametrize("words", ["", "recipe\nsoup\nbutter\n"], ids=["pack", "keywords"])
@pytest.mark.long
def test_plain_crawl_needs_no_extra(without, tmp_path, words):
    (tmp_path / "words.txt").write_text(words)
    arguments = ["topic=food", "pages=5", "web=synthetic", f"output={tmp_path / 'food.jsonl'}"]
    arguments += [f"keywords={tmp_path / 'words.txt'}"] if words else []
    options = (part for each in arguments for part in ("-a", each))
    done = without(ALL, "crawl", "tres", *options, fresh=True)  # Scrapy looks for packages too
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "The report of the crawl is" in done.stderr
    assert (tmp_path / "food.jsonl").stat().st_size
    assert "plotly.js" in (tmp_path / "food.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("content", ("crawl", "tres", "-a", "topic=food", "-a", "fields=date")),
        ("parquet", ("crawl", "tres", "-a", "topic=food", "-O", "pages.parquet")),
        ("render", ("crawl", "tres", "-a", "topic=food", "-a", "render=auto")),
        ("train", ("vectors", "README.md", "--output", "no.npz")),
        (
            "train",
            ("train", "no", "--keywords", "k", "--relevant", "a", "--irrelevant", "b"),
        ),
    ],
)
@pytest.mark.long
def test_missing_extra_is_said_first(without, extra, arguments):
    offline = ("-a", "web=synthetic") if arguments[0] == "crawl" else ()
    done = without(EXTRAS[extra], *arguments, *offline)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith(f".[{extra}]'")
    assert "Spider opened" not in done.stderr
    assert not (PROJECT / "no").exists(), "the command has written"
