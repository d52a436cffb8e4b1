from __future__ import annotations

import math
import multiprocessing.spawn
import os
import re
import subprocess
import sys
import tempfile
import threading
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from time import monotonic
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import settings
from preloaded import Interpreter, Process
from soup import lines_of

from tres_scrapy.config.typed import speak_of

os.environ["OMP_NUM_THREADS"] = "1"  # for small networks a second thread is slower
settings.register_profile("whole", deadline=None)  # other work on the machine may slow any example
settings.register_profile("fast", deadline=None, max_examples=25)

PROJECT = Path(__file__).parents[1]
DATA = PROJECT.parent / "shared" / "data"  # texts that we may not publish
TRES = "tres_scrapy.cli.main"  # the module of the program `tres`
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
OFFLINE = ("web=synthetic", "WEB=synthetic", "--web", "web=recorded")  # needs the lab
SLOW_FIXTURES = {"chromium", "finished", "loaded_python", "scrapy", "tres"}
_fast_test: pytest.Item | None = None
# The lab simulates other guests; where these are deleted, there is nothing to test.
SIMULATIONS = {
    "cluster": ("shard_simulation",),
    "refresh": ("allocation", "fgdqn", "refresh_interval", "refresh_simulation"),
}
collect_ignore = [
    f"lab/test_{name}.py"
    for guest, names in SIMULATIONS.items()
    if find_spec(f"tres_scrapy.{guest}") is None
    for name in names
]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one worker more than processors: some always wait for a server or a Ctrl-C."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return 1 + (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


def pytest_configure(config: pytest.Config) -> None:
    is_fast = config.option.markexpr.strip() in {"not slow", "not long"}
    settings.load_profile("fast" if is_fast else "whole")
    sys.addaudithook(_refuse_processes)
    spawn = multiprocessing.util.spawnv_passfds  # which no audit hook sees

    def spawn_if_slow(*arguments: object) -> int:
        _refuse_processes("os.posix_spawn", arguments)
        return spawn(*arguments)

    multiprocessing.util.spawnv_passfds = spawn_if_slow


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        if is_long or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)  # or a long test would run alone at the end


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _fast_test  # noqa: PLW0603 - an audit hook cannot be removed
    _fast_test = None if item.get_closest_marker("slow") else item
    try:
        return (yield)
    finally:
        _fast_test = None


def _refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    if "ldconfig" in str(arguments[:2]):  # by PyTorch for GPUs, when it is imported
        return
    if _fast_test is not None and event in STARTS:
        raise RuntimeError(f"{_fast_test.name} starts a process: mark it with pytest.mark.slow")


def pytest_sessionfinish() -> None:
    if interpreter.cache_info().currsize:
        interpreter().close()


def docs_script(name: str) -> ModuleType:
    """Import a script of docs/."""
    spec = spec_from_file_location(name, PROJECT / "docs" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def interpreter() -> Interpreter:
    """Return the `python` that has loaded all large libraries, started at its first use.

    All workers of a run share it: it takes ten seconds of a processor to load.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = Path(tempfile.gettempdir(), f"tres{run}") if run else None
    return Interpreter(folder or Path(tempfile.mkdtemp(prefix="tres")))


@dataclass
class Pages:
    """A tiny web: the answer of each URL, the requests it got, their headers, uploaded files.

    After `lasts` requests, if set, it closes each connection, until `back` requests. Requests for
    a URL in `silent` wait until `over`.
    """

    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    requests: list[tuple[float, str]] = field(default_factory=list)
    heads: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    port: int = 0
    lasts: int | None = None
    back: float = math.inf
    silent: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def add(self, url, html="", status=200, **headers):
        headers = {"Content-Type": "text/html; charset=utf-8"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.answers[url] = (status, headers, html.encode())

    def fetched(self):
        """Return the requested URLs in order, without robots.txt."""
        return [url for _, url in self.requests if not url.endswith("/robots.txt")]


@pytest.fixture
def pages() -> Iterator[Pages]:
    """Serve a Pages web as an HTTP proxy."""
    with served() as web:
        yield web


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the usual five, a sixth connection waits a second


@contextmanager
def served() -> Iterator[Pages]:
    web = Pages()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            web.requests.append((monotonic(), self.path))
            web.heads.append((self.path, dict(self.headers)))
            if web.lasts is not None and web.lasts < len(web.requests) <= web.back:
                self.close_connection = True
                return
            if self.path in web.silent:
                web.over.wait()
                self.close_connection = True
                return
            status, headers, body = web.answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self):
            web.files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    web.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield web
    web.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def running(
    *arguments, fresh=False, program="scrapy", **options
) -> Iterator[subprocess.Popen[str]]:
    """Run `scrapy` beside a test and end it with the test."""
    python, kind = (sys.executable, subprocess.Popen) if fresh else (interpreter().path, Process)
    command = [python, "-m", program, *map(str, arguments)]
    with kind(command, **{"cwd": PROJECT, "text": True} | options) as process:
        try:
            yield process
        finally:
            process.kill()


def command(*arguments: object, **more) -> None:
    """Run a command of `tres` in this process; it ends by SystemExit."""
    from tres_scrapy.cli.command import PROJECT as SETTINGS  # noqa: PLC0415 - as below
    from tres_scrapy.cli.command import run_line  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS, "tres_scrapy.settings")
        try:
            run_line(*map(str, arguments), **more)
        finally:
            speak_of(None)


def stats_of(log: str) -> dict[str, object]:
    """Return the stats that a crawl logged at its end, times left out."""
    dumped = log.rpartition("Dumping Scrapy stats:\n")[2].partition("}\n")[0]
    found = re.findall(r"^[{ ]'(.+?)': (?!datetime)(.+?),?$", dumped, re.MULTILINE)
    return {name: literal_eval(value) for name, value in found}


class Ended(subprocess.CompletedProcess[str]):
    """A process that has ended."""

    @property
    def stats(self) -> dict[str, object]:
        return stats_of(self.stderr)


@pytest.fixture(scope="session")
def scrapy():
    """Run `scrapy` in the project as a user would; with `fresh`, in a new Python process."""

    def run(
        *arguments,
        pages=None,
        project=PROJECT,
        program=("-m", "scrapy"),
        timeout=300,
        fresh=False,
    ):
        if any(word in str(each) for each in arguments for word in OFFLINE):
            pytest.importorskip("tres_scrapy.lab", reason="the crawl is of an offline web")
        environment = dict(os.environ)
        if pages is not None:
            environment["http_proxy"] = f"http://127.0.0.1:{pages.port}"
        python = sys.executable if fresh else interpreter().path
        ended = subprocess.run(
            [python, *program, *map(str, arguments)],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ended(ended.args, ended.returncode, ended.stdout, ended.stderr)

    return run


@pytest.fixture(scope="session")
def tres(scrapy):
    """Run `tres` in the project as a user would."""
    return partial(scrapy, program=("-m", TRES))


@pytest.fixture
def crawl(scrapy, tmp_path):
    """Run `scrapy crawl tres` for food without delays; return the process and its items."""

    def run(*arguments, **options):
        output = tmp_path / "pages.jsonl"
        process = scrapy(
            *("crawl", "tres", "-a", "topic=food", "-a", f"output={output}"),
            *("-s", "DOWNLOAD_DELAY=0", "-a", "rest=0.01", *arguments),
            **options,
        )
        return process, lines_of(output) if output.exists() else []

    return run


@pytest.fixture
def loaded_python(monkeypatch):
    """Let processes that the code under test starts be forks of the loaded Python."""
    path = interpreter().path
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(path))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A crawl of 150 pages, its bookings and the path of its record."""
    from recorded_run import crawl_of, record  # noqa: PLC0415 - it loads PyTorch

    path = tmp_path_factory.mktemp("run") / "food.run"
    crawl = crawl_of()
    return SimpleNamespace(path=path, crawl=crawl, bookings=record(path, crawl))


@pytest.fixture
def read(recorded):
    """The record, open."""
    from tres_scrapy.report.record import Record  # noqa: PLC0415 - as above

    with Record(recorded.path) as found:
        yield found
