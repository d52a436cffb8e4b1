"""What a crawl needs of this machine, and what is missing: one finding for each check.

Only the standard library is imported at once: a broken installation is what this should find.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from pathlib import Path
from platform import python_version
from shlex import quote
from socket import gaierror, getaddrinfo
from tempfile import TemporaryFile
from threading import Thread
from typing import Final, NamedTuple
from urllib.request import getproxies

from tres_scrapy.config.extra import (
    EXTRAS,
    NAME,
    PURPOSES,
    checkout_folder,
    install_command,
    missing_packages,
    pip_command,
)
from tres_scrapy.downloader.browser import find_browser
from tres_scrapy.topic.shipped import HERE, VECTORS, packs, shipped_models, topics
from tres_scrapy.url.message import TresError, first_line, without_credentials

SHOWN: Final = ("scrapy", "torch", "numpy", "twisted", "lxml")  # whose versions are printed
OUTPUT: Final = Path("output")  # where a crawl writes
LEAST_SPACE: Final = 100_000_000  # bytes: a crawl of 1,000 pages writes some 10 MB
LEAST_FILES: Final = 128  # connections, files of the crawl, and pipes to its processes
KNOWN_HOST: Final = "example.org"  # reserved for such purposes
PATIENCE: Final = 3.0  # seconds for its name


OK, MISSING, PROBLEM = "ok", "missing", "problem"  # of problems any keeps all crawls from running


class Finding(NamedTuple):
    """The result of one check: OK, MISSING or PROBLEM."""

    status: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.status:<9}{self.subject:<15}{self.text}"


def diagnose(models: Path | None = None) -> int:
    """Print the findings; return the exit status, 1 if no crawl can run."""
    problems = 0
    for finding in examine(models):
        print(finding, flush=True)
        problems += finding.status == PROBLEM
    can = "cannot" if problems else "can"
    print(f"\nA crawl {can} run here.")
    return int(problems > 0)


def examine(models: Path | None = None) -> Iterator[Finding]:
    """Yield the findings; `models` is the folder of topic packs, if it is set."""
    yield Finding(OK, "python", f"{python_version()}, {sys.executable}")
    yield Finding(OK, NAME, _place())
    faults = [*_package_faults()] or [*_code_faults()]
    yield from faults or [Finding(OK, "packages", _versions())]
    if not faults:
        yield from _topics(models)
        yield _vectors()
    yield _output()
    yield _disk()
    if os.name == "posix":
        yield _open_files()
    yield _network()
    yield from map(_extra, EXTRAS)
    yield _browser()


def _place() -> str:
    checkout, package = checkout_folder(), files("tres_scrapy")
    place = f"checkout {checkout}" if checkout else f"in {package}"
    try:
        return f"{version(NAME)}, {place}"
    except PackageNotFoundError:
        return f"{place}, used without installing it"


def _requirements() -> list[str]:
    """Return what the package requires beside its extras."""
    try:
        found = requires(NAME) or []
    except PackageNotFoundError:
        checkout = checkout_folder()
        if checkout is None:
            return []
        text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
        return list(tomllib.loads(text)["project"]["dependencies"])
    return [each for each in found if "extra ==" not in each]


def _package_faults() -> Iterator[Finding]:
    """Yield the required packages that are not there, or in another version."""
    try:
        from packaging.requirements import Requirement  # noqa: PLC0415 - it may be missing itself
    except ImportError:
        yield _package_fault("packaging", "is not installed")
        return
    for text in _requirements():
        wanted = Requirement(text)
        try:
            found = version(wanted.name)
        except PackageNotFoundError:
            yield _package_fault(text, "is not installed")
            continue
        if not wanted.specifier.contains(found, prereleases=True):
            yield _package_fault(text, f"is installed in version {found}")


def _package_fault(wanted: str, fault: str) -> Finding:
    remedy = f"{pip_command()} install {quote(wanted)}"
    return Finding(PROBLEM, "packages", f"{wanted} {fault}: {remedy}")


def _code_faults() -> Iterator[Finding]:
    """Yield why the code of a crawl cannot be imported, such as a library that lacks a file."""
    try:
        import click  # noqa: F401, PLC0415 - it may be missing itself
        import torch  # noqa: F401, PLC0415 - it takes 2 s

        import tres_scrapy.addon  # noqa: PLC0415 - it needs what is checked here
        import tres_scrapy.topic.judge  # noqa: F401, PLC0415
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        yield Finding(PROBLEM, "packages", f"a crawl cannot load them: {first_line(error)}")


def _versions() -> str:
    more = len(_requirements()) - len(SHOWN)
    shown = ", ".join(f"{name} {version(name)}" for name in SHOWN)
    return f"{shown}, {more} more" if more > 0 else shown


def _topics(models: Path | None) -> Iterator[Finding]:
    """Yield a finding for each folder of packs, and for each pack that cannot be read."""
    from tres_scrapy.topic.pack import Pack  # noqa: PLC0415 - it needs other packages

    found = packs(models)
    if not found:
        place = models or shipped_models()
        yield Finding(PROBLEM, "topics", f"no topic pack in {place}: install TRES again")
    good: dict[Path, list[str]] = {}
    for name in topics(models):
        try:
            Pack.load(found[name])
        except TresError as error:
            yield Finding(PROBLEM, "topics", first_line(error))
        else:
            good.setdefault(found[name].parent, []).append(name)
    for place, names in good.items():
        yield Finding(OK, "topics", f"{', '.join(names)}, in {_shown(place)}")


def _vectors() -> Finding:
    from tres_scrapy.topic.classifier import WordVectors  # noqa: PLC0415 - it needs other packages

    here, shipped = HERE / VECTORS, shipped_models() / VECTORS
    path = here if here.is_file() else shipped
    try:
        count = len(WordVectors.load(path).words)
    except TresError as error:
        text = f"needed by crawls from keywords and tres train: {first_line(error)}"
        return Finding(MISSING, "word vectors", text)
    return Finding(OK, "word vectors", f"{count:,} words, in {_shown(path)}")


def _output() -> Finding:
    place = OUTPUT if OUTPUT.exists() else Path()
    try:
        TemporaryFile(dir=place).close()
    except OSError as error:
        text = f"{place.resolve()} cannot be written: {error.strerror}"
        return Finding(PROBLEM, "output folder", text)
    return Finding(OK, "output folder", f"{OUTPUT.resolve()} can be written")


def _disk() -> Finding:
    free = shutil.disk_usage(Path()).free
    if free < LEAST_SPACE:
        text = f"{free / 1e6:,.0f} MB free here, must be {LEAST_SPACE / 1e6:,.0f} MB or more"
        return Finding(PROBLEM, "disk space", text)
    return Finding(OK, "disk space", f"{free / 1e9:,.1f} GB free here")


def _open_files() -> Finding:
    from resource import RLIMIT_NOFILE, getrlimit  # noqa: PLC0415 - not on Windows

    limit, _ = getrlimit(RLIMIT_NOFILE)
    if 0 <= limit < LEAST_FILES:
        text = f"{limit} at most, must be {LEAST_FILES} or more: ulimit -n 1024"
        return Finding(PROBLEM, "open files", text)
    return Finding(OK, "open files", "no limit" if limit < 0 else f"{limit:,} at most")


def _network() -> Finding:
    """Resolve one name, in a thread: nothing else ends a resolver that waits."""
    if proxies := {name: url for name, url in getproxies().items() if name in {"http", "https"}}:
        text = f"not tried: requests go to the proxy {', '.join({*proxies.values()})}"
        return Finding(OK, "network", without_credentials(text))
    faults = ["no answer"]

    def resolve() -> None:
        try:
            getaddrinfo(KNOWN_HOST, None)
        except gaierror as error:
            faults.append(error.strerror or str(error))
        else:
            faults.clear()

    thread = Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if faults:
        text = f"{KNOWN_HOST} is not found ({faults[-1]}): check DNS; offline webs can be crawled"
        return Finding(MISSING, "network", text)
    return Finding(OK, "network", "names are resolved")


def _extra(extra: str) -> Finding:
    if missing_packages(extra):
        text = f"for {PURPOSES[extra]}: {install_command(extra)}"
        return Finding(MISSING, extra, text)
    return Finding(OK, extra, f"for {PURPOSES[extra]}")


def _browser() -> Finding:
    try:
        return Finding(OK, "chromium", str(find_browser()))
    except TresError as error:
        return Finding(MISSING, "chromium", f"for {PURPOSES['render']}: {error}")


def _shown(path: Path) -> str:
    """Return a path as one would write it here."""
    full, here = path.resolve(), Path.cwd()
    return str(full.relative_to(here)) if full.is_relative_to(here) else str(full)
