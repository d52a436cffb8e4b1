"""The package as it is built and installed, used in a folder outside any Scrapy project."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from random import Random

import pytest
from conftest import PROJECT

pytestmark = pytest.mark.slow

MOST_BYTES = 40 * 10**6
FOLDERS = (".ci", "benchmarks", "docs", "examples", "models", "tests", "tres_scrapy")
FILES = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    "requirements.txt",
    "scrapy.cfg",
    "setup.py",
)
FAST = ("tests/url", "tests/test_docs.py", "tests/test_no_pickle.py")
RELEVANT = ["cheese", "milk", "cave", "rind", "curd", "whey", "goat", "cream", "butter", "bread"]
OTHER = ["match", "goal", "team", "league", "season", "player", "coach", "referee", "cup", "fan"]


def python(*arguments, cwd, **options):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build sdist and wheel from a copy of the sources, the wheel from the sdist."""
    source = tmp_path_factory.mktemp("source") / "tres"
    source.mkdir()
    for name in FOLDERS:
        shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(PROJECT / name, source)
    (source / "models" / "food" / "report.html").touch()
    done = python("-m", "build", "--no-isolation", "--outdir", "dist", cwd=source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "would be ignored" not in done.stderr, "setuptools does not know all packages"
    return source / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def sources(built, tmp_path_factory):
    """Unpack the sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """Install the wheel in a new environment, which finds other packages where they are."""
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, with_pip=False)
    done = python(
        "-m",
        "pip",
        "--python",
        place,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    packages = next(place.glob("lib/python*/site-packages"))
    outer = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    (packages / "outer.pth").write_text("\n".join(outer))
    return packages.parents[2] / "bin"


@pytest.fixture
def run(programs, tmp_path):
    """Run a program of the environment in an empty folder."""

    def run(program, *arguments):
        environment = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [programs / program, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def text(words, seed):
    return "the " + " and the ".join(Random(seed).choices(words, k=60))


def test_wheel_carries_packs_and_vectors(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for path in (PROJECT / "models").rglob("*"):
        if path.suffix in {".toml", ".safetensors", ".npz"}:
            assert f"tres_scrapy/{path.relative_to(PROJECT)}" in names
    for path in (PROJECT / "tres_scrapy").rglob("*.*"):
        if path.suffix != ".pyc":
            assert str(path.relative_to(PROJECT)) in names
    assert not [name for name in names if name.startswith(("models/", "tests/"))]
    assert not [name for name in names if "models/" in name and name.endswith(".html")]
    assert wheel.stat().st_size < MOST_BYTES


def test_index_would_take_the_files(built):
    done = python("-m", "twine", "check", "--strict", *built.iterdir(), cwd=built)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


@pytest.mark.long
def test_sdist_has_what_the_tests_need(sources):
    for name in ("docs/live.png", "benchmarks/results/policies.md", "models/food/topic.toml"):
        assert (sources / name).stat().st_size
    assert not (sources / "models" / "food" / "report.html").exists()
    pytest_ = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")
    collected = python(*pytest_, "--collect-only", cwd=sources)
    assert collected.returncode == 0, collected.stdout
    assert int(re.search(r"(\d+) tests collected", collected.stdout)[1]) > 4_000
    done = python(*pytest_, "-m", "not slow", *FAST, cwd=sources)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b\d{3,} passed", done.stdout)


@pytest.mark.long
def test_wheel_crawls_in_an_empty_folder(run, programs, tmp_path):
    """A first crawl with its live page and its report."""
    crawl = "tres crawl food --web synthetic --pages 60 --dashboard 1 --output food.jsonl"
    crawled = run(*crawl.split())
    assert crawled.returncode == 0, crawled.stderr
    assert "Live page: http://127.0.0.1:" in crawled.stderr
    said = re.sub(r".*WARNING: All \d+ relevant pages are of one site.*", "", crawled.stderr)
    assert not re.search(r"ERROR|WARNING|Traceback", said)
    assert (tmp_path / "food.jsonl").read_text(encoding="utf-8").count("\n") > 20
    assert "plotly.js" in (tmp_path / "food.html").read_text(encoding="utf-8")
    doctor = run("tres", "doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert f"in {programs.parent}/lib" in doctor.stdout
    assert not (PROJECT / "food.jsonl").exists()


def test_program_finds_packs_anywhere(run):
    seen = run("tres")
    assert "Topics: food, hardware, sports" in seen.stdout, seen.stderr


@pytest.mark.long
def test_installed_pack_is_trained(run, programs, tmp_path):
    """The packs of a user belong in the user's folder, not in site-packages."""
    installed = next(programs.parent.glob("lib/python*/site-packages"))
    before = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    (tmp_path / "keywords.txt").write_text("cheese\nmilk\n")
    for side, words in (("good", RELEVANT), ("bad", OTHER)):
        lines = [json.dumps({"text": text(words, n), "host": f"{side}{n}.test"}) for n in range(30)]
        (tmp_path / f"{side}.jsonl").write_text("\n".join(lines))
    train = "tres train cheese --keywords keywords.txt --relevant good.jsonl --irrelevant bad.jsonl"
    trained = run(*train.split(), "--classifier", "tfidf", "--beside")
    assert trained.returncode == 0, trained.stderr
    assert "the installed word vectors are copied to models/vectors/english.npz" in trained.stdout
    assert (tmp_path / "models" / "cheese" / "topic.toml").is_file()
    (tmp_path / "page.txt").write_text(text(RELEVANT, 99))
    judged = run("tres", "classify", "cheese", "page.txt", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["relevant"]
    after = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    assert after == before
