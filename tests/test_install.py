"""The package as pip installs it, used in a folder outside any Scrapy project."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from random import Random

import pytest
from conftest import PROJECT

pytestmark = pytest.mark.slow

MOST_BYTES = 40 * 10**6
BUILD = "from setuptools.build_meta import build_wheel; build_wheel({!r})"
RELEVANT = ["cheese", "milk", "cave", "rind", "curd", "whey", "goat", "cream", "butter", "bread"]
OTHER = ["match", "goal", "team", "league", "season", "player", "coach", "referee", "cup", "fan"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of the sources."""
    source = tmp_path_factory.mktemp("source")
    for name in ("tres_scrapy", "models"):
        shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    (source / "models" / "food" / "report.html").touch()
    program = BUILD.format(str(source))
    subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True)
    return next(source.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Unpack the wheel into a new site-packages, as pip does."""
    site = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


@pytest.fixture
def run(installed, tmp_path):
    """Run `scrapy` in an empty folder, the installed package before the checkout."""

    def run(*arguments, program=("-m", "scrapy")):
        return subprocess.run(
            [sys.executable, "-P", *program, *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(installed)},
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


def test_program_finds_packs_anywhere(run, installed):
    (entries,) = installed.glob("*.dist-info/entry_points.txt")
    assert "tres = tres_scrapy.console.main:main" in entries.read_text()
    seen = run(program=("-c", "from tres_scrapy.console.main import main; main()"))
    assert "Topics: food, hardware, sports" in seen.stdout, seen.stderr


def test_installed_pack_is_trained(run, installed, tmp_path):
    """The packs of a user belong in the user's folder, not in site-packages."""
    before = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    (tmp_path / "keywords.txt").write_text("cheese\nmilk\n")
    for side, words in (("good", RELEVANT), ("bad", OTHER)):
        lines = [json.dumps({"text": text(words, n), "host": f"{side}{n}.test"}) for n in range(30)]
        (tmp_path / f"{side}.jsonl").write_text("\n".join(lines))
    trained = run(
        *("tres-train", "cheese", "--keywords", "keywords.txt", "--relevant", "good.jsonl"),
        *("--irrelevant", "bad.jsonl", "--classifier", "tfidf", "--beside"),
    )
    assert trained.returncode == 0, trained.stderr
    assert "the installed word vectors are copied to models/vectors/english.npz" in trained.stdout
    assert (tmp_path / "models" / "cheese" / "topic.toml").is_file()
    (tmp_path / "page.txt").write_text(text(RELEVANT, 99))
    judged = run("tres-classify", "cheese", "page.txt", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["relevant"]
    after = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    assert after == before
