"""What is installed with the package, and the message if an extra is missing."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
from conftest import PROJECT, interpreter

from tres_scrapy.config.extra import EXTRAS, ExtraError, require

ALL = {package for packages in EXTRAS.values() for package in packages}
WITHOUT = """
import sys
missing = sys.argv.pop(1).split(",")
for name in [*sys.modules]:  # a fork has loaded them
    if name.partition(".")[0] in {"tres_scrapy", *missing}:
        del sys.modules[name]
sys.modules.update(dict.fromkeys(missing, None))
from scrapy.cmdline import execute
execute()
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
    """Run `scrapy` as if the packages of an extra were not installed."""

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
        if extra != "cluster"  # one crawl in many processes: Ray is large
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


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ExtraError, match=re.escape("plotly: pip install 'tres-scrapy[dashboard]'")):
        require("dashboard", "-a dashboard")
    monkeypatch.undo()
    require("dashboard", "-a dashboard")


@pytest.mark.slow
def test_plain_crawl_needs_no_extra(without, tmp_path):
    arguments = ("topic=food", "pages=5", "web=synthetic", f"output={tmp_path / 'food.jsonl'}")
    options = (part for each in arguments for part in ("-a", each))
    done = without(ALL, "crawl", "tres", *options, fresh=True)  # Scrapy looks for packages too
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "pip install 'tres-scrapy[dashboard]'; then run `tres report" in done.stderr
    assert (tmp_path / "food.jsonl").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("bench", ("tres-bench",)),
        ("dashboard", ("tres-report", "food.run")),
        ("dashboard", ("crawl", "tres", "-a", "topic=food", "-a", "dashboard=1")),
        ("render", ("crawl", "tres", "-a", "topic=food", "-a", "render=auto")),
        ("train", ("crawl", "tres", "-a", "topic=food", "-a", "policy=ache")),
        ("train", ("tres-vectors", "README.md", "--output", "no.npz")),
        (
            "train",
            ("tres-train", "no", "--keywords", "k", "--relevant", "a", "--irrelevant", "b"),
        ),
    ],
    ids=["bench", "report", "dashboard", "render", "ache", "vectors", "train"],
)
def test_missing_extra_is_one_line(without, extra, arguments):
    offline = ("-a", "web=synthetic", "-s", "LOG_ENABLED=0") if arguments[0] == "crawl" else ()
    done = without(EXTRAS[extra], *arguments, *offline)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith(f"pip install 'tres-scrapy[{extra}]'")
