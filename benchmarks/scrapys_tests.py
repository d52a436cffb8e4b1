"""Scrapy's own tests of crawls, without and with the add-on.

    python benchmarks/scrapys_tests.py [--source FOLDER] [FILE ...]

It fetches the source of the Scrapy that is installed, and what its tests need, into a temporary
folder, unless --source names an unpacked source. Then it runs the test files below twice; the
second time each crawler has the add-on. It prints what fails only then. The exit status is 1 if a
failure is not among the justified ones below. FILE chooses test files, such as `crawl closespider`.

This file is also the plugin for pytest that switches the add-on on and keeps the outcomes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

PROJECT = Path(__file__).parents[1]
NEEDED = (
    "decorator",
    "greenlet",
    "pexpect",
    "psutil",
    "ptyprocess",
    "pyftpdlib",
    "pytest-timeout",
    "pytest-twisted>=1.14.3",
    "sybil",
)
FILES = (  # those in which spiders crawl
    "addons",
    "closespider",
    "contracts",
    "core_downloader",
    "core_scraper",
    "crawl",
    "crawler",
    "downloaderslotssettings",
    "engine",
    "engine_loop",
    "engine_stop_download_bytes",
    "engine_stop_download_headers",
    "extension_periodic_log",
    "feedexport",
    "feedexport_batch",
    "feedexport_postprocess",
    "pipeline_crawl",
    "pipelines",
    "request_attribute_binding",
    "request_cb_kwargs",
    "request_left",
    "scheduler",
    "signals",
    "spider",
    "spider_crawl",
    "spider_sitemap",
    "spider_start",
    "spidermiddleware_httperror",
    "spidermiddleware_output_chain",
    "spidermiddleware_process_start",
    "stats",
)
# Why a test may fail with the add-on, by a pattern of its name.
JUSTIFIED = {
    "tests/test_crawler.py::TestCrawlerLogging::test_spider_custom_settings_log_level": (
        "the log has one more warning: USER_AGENT names no contact"
    ),
    "tests/test_downloaderslotssettings.py::test_delay": (
        "it takes the times in callbacks, and the first page is judged before its callback runs"
    ),
    **{
        f"tests/test_engine_loop.py::TestMain::{name}": "the project has a scheduler of its own"
        for name in (
            "test_close_during_start_iteration",
            "test_close_spider_from_start",
            "test_sleep",
            "test_start_error",
        )
    },
    "tests/test_engine_loop.py::TestRequestSendOrder::*": (
        "the frontier chooses the order of pages, be they start pages"
    ),
    "tests/test_pipelines.py::TestCustomPipelineManager::test_integration_no_async_not_subclass": (
        "an ITEM_PROCESSOR that calls each pipeline class without arguments cannot make ours"
    ),
}
SETTINGS = {
    "ADDONS": {"tres_scrapy.addon.TresAddon": 100},
    "TRES_TOPIC": "food",
    "TRES_MODELS": str(PROJECT / "models"),
    "TRES_PRIVATE_ADDRESSES": "1",
    "TRES_RECORD": "0",
    "TRES_REST": "0.05",
}
# The environment of pytest: where the outcomes go, and the `python` that has loaded TRES already.
OUTCOMES, PYTHON = "SCRAPYS_TESTS_OUTCOMES", "SCRAPYS_TESTS_PYTHON"
FAILED = ("failed", "error", "crashed")
_outcomes: dict[str, str] = {}
_crawls: Counter[str] = Counter()  # those that have the add-on


def pytest_configure() -> None:
    """Let each crawler have the add-on, if the environment says so."""
    if not os.environ.get(PYTHON):
        return
    sys.executable = os.environ[PYTHON]
    defaults = import_module("scrapy.settings.default_settings")
    for name, value in SETTINGS.items():
        setattr(defaults, name, value)
    crawler = import_module("scrapy.crawler").Crawler
    crawler._apply_settings = _applied_late(crawler._apply_settings)


def _applied_late(apply: Callable[[Any], None]) -> Callable[[Any], None]:
    """Let a crawler that is tried before it crawls get its settings again when it crawls.

    The tests of Scrapy make crawlers by get_crawler(), which applies the settings. The add-on does
    nothing for a crawler that does not crawl.
    """
    before: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def apply_again(crawler: Any) -> None:
        settings = crawler.settings
        if not crawler.crawling:
            before.setdefault(crawler, settings.copy())
        elif crawler in before:
            settings.attributes, settings.frozen = before.pop(crawler).attributes, False
            crawler.addons.addons.clear()
        apply(crawler)
        _crawls.update(["crawls"] * (crawler.crawling and bool(crawler.addons.addons)))

    return apply_again


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the outcome of a test, which fails if its setup or teardown does."""
    outcome = "error" if report.failed and report.when != "call" else report.outcome
    if report.when == "call" or outcome != "passed":
        _outcomes[report.nodeid] = outcome


def pytest_sessionfinish() -> None:
    """Write the outcomes, and how many crawls had the add-on."""
    told = {"outcomes": _outcomes, "crawls": _crawls["crawls"]}
    Path(os.environ[OUTCOMES]).write_text(json.dumps(told), encoding="utf-8")


def fetched(folder: Path) -> Path:
    """Return the unpacked source of the Scrapy that is installed."""
    wanted = f"scrapy=={version('scrapy')}"
    _pip("download", "--quiet", "--no-binary", "scrapy", "--no-deps", "--dest", folder, wanted)
    with tarfile.open(next(folder.glob("scrapy-*.tar.gz"))) as file:
        file.extractall(folder, filter="data")
    return next(path for path in folder.glob("scrapy-*") if path.is_dir())


def _pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", *map(str, arguments)]
    subprocess.run(command, check=True)  # noqa: S603 - pip, without a shell


@contextmanager
def loaded_python(folder: Path) -> Iterator[Path]:
    """Start a `python` that has loaded TRES, so that each judge starts at once."""
    sys.path.insert(0, str(PROJECT / "tests"))
    interpreter = import_module("preloaded").Interpreter(folder)
    try:
        yield interpreter.path
    finally:
        interpreter.close()


def run(name: str, source: Path, extra: Path, python: str) -> tuple[dict[str, str], int]:
    """Run one test file, with the add-on if `python` is set.

    Return the outcome of each test, and how many crawls had the add-on.
    """
    outcomes = extra / "outcomes.json"
    outcomes.unlink(missing_ok=True)
    places = [str(Path(__file__).parent), str(PROJECT), str(extra)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(places),
        "PYTHONDONTWRITEBYTECODE": "1",
        OUTCOMES: str(outcomes),
        PYTHON: python,
    }
    options = ["-p", "scrapys_tests", "-p", "no:cacheprovider", "--timeout=60", "-q", "--no-header"]
    options += ["-o", "filterwarnings=", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, f"tests/test_{name}.py"]
    ended = subprocess.run(  # noqa: S603 - pytest, without a shell
        command,
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    log = extra / f"{name}-{'addon' if python else 'plain'}.log"
    log.write_text(ended.stdout + ended.stderr, encoding="utf-8")
    if not outcomes.exists():
        return {f"tests/test_{name}.py": "crashed"}, 0
    told = json.loads(outcomes.read_text(encoding="utf-8"))
    return told["outcomes"], told["crawls"]


def reason_of(test: str) -> str | None:
    """Return why a test may fail with the add-on, if it may."""
    return next((why for pattern, why in JUSTIFIED.items() if fnmatchcase(test, pattern)), None)


def _shown(outcomes: dict[str, str]) -> str:
    counts = Counter(outcome in FAILED for outcome in outcomes.values() if outcome != "skipped")
    return f"{counts[False]:5} /{counts[True]:3}"


def compare(names: Sequence[str], source: Path, extra: Path) -> int:
    """Run the files twice and print the table; return how many failures are not justified."""
    broken: list[str] = []
    print(f"{'passed / failed':38}{'without':>11}{'with add-on':>14}{'crawls with it':>16}")
    with TemporaryDirectory() as folder, loaded_python(Path(folder)) as python:
        for name in names:
            plain, _ = run(name, source, extra, "")
            ours, crawls = run(name, source, extra, str(python))
            row = f"{name:38}{_shown(plain):>11}{_shown(ours):>14}{crawls:16}"
            print(row, flush=True)
            failed = {test for test, outcome in ours.items() if outcome in FAILED}
            broken += sorted(test for test in failed if plain.get(test) not in FAILED)
    unjustified = [test for test in broken if reason_of(test) is None]
    for test in broken:
        print(f"{test}: {reason_of(test) or 'NOT JUSTIFIED'}")
    print(f"{len(broken)} tests fail only with the add-on; {len(unjustified)} are not justified")
    return len(unjustified)


def main() -> None:
    """Fetch the source and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", metavar="FILE", default=list(FILES))
    parser.add_argument("--source", type=Path, help="folder of an unpacked source of Scrapy")
    parser.add_argument("--logs", type=Path, help="folder for the output of pytest")
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        extra = arguments.logs or Path(temporary)
        extra.mkdir(parents=True, exist_ok=True)
        _pip("install", "--quiet", "--target", extra, "--no-deps", *NEEDED)
        source = arguments.source or fetched(Path(temporary))
        sys.exit(compare(arguments.files, source.absolute(), extra.absolute()) > 0)


if __name__ == "__main__":
    main()
