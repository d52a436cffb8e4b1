"""The HTTP of the live page: few paths, each behind the gate."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from twisted.internet.interfaces import IReactorFromThreads
from twisted.protocols.policies import ThrottlingFactory
from twisted.python.failure import Failure
from twisted.web.http import Request as HttpRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from tres_scrapy.extensions.control import Control, ControlError
from tres_scrapy.live.token import HEADERS, Gate
from tres_scrapy.live.view import View
from tres_scrapy.report.record_file import RecordError

LONGEST: Final = 16 * 1024  # bytes of a request's body
CONNECTIONS: Final = 64  # at a time: a browser has six
JSON: Final = "application/json; charset=utf-8"
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
CLOSED: Final = "Open the address that the crawl's log tells: it holds the token of this page.\n"
CONTROL: Final = "/control"
PLOTLY: Final = "/plotly.min.js"

Work = Callable[[], bytes | None]

logger = logging.getLogger(__name__)


def _plotly() -> bytes:
    """Return Plotly's JavaScript as its Python package ships it, without importing that."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], "package_data", "plotly.min.js").read_bytes()


FILES: Final[Mapping[str, tuple[Work, str]]] = {
    "/": (Path(__file__).with_name("page.html").read_bytes, "text/html; charset=utf-8"),
    "/page.js": (Path(__file__).with_name("page.js").read_bytes, JAVASCRIPT),
    "/page.css": (Path(__file__).with_name("page.css").read_bytes, "text/css; charset=utf-8"),
    PLOTLY: (_plotly, JAVASCRIPT),
}


class BoundedRequest(Request):
    """Keeps no more of a body than LONGEST, in memory."""

    def gotLength(self, length: int | None) -> None:  # noqa: D102, N802 - Twisted's
        super().gotLength(0)  # type: ignore[no-untyped-call]

    def handleContentChunk(self, data: bytes) -> None:  # noqa: D102, N802 - Twisted's
        assert self.content is not None
        room = LONGEST - self.content.tell()
        super().handleContentChunk(data[: max(0, room)])  # type: ignore[no-untyped-call]


class LivePage(Resource):
    """Answers all that is asked; what takes time is done in a thread of its own.

    `state` returns how the crawl goes now and is called in the reactor's thread.
    """

    isLeaf = True  # noqa: N815 - Twisted's

    def __init__(
        self,
        gate: Gate,
        control: Control,
        view: View,
        state: Callable[[], dict[str, Any]],
        reactor: IReactorFromThreads,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._gate = gate
        self._control = control
        self._view = view
        self._state = state
        self._reactor = reactor
        self._thread = ThreadPoolExecutor(1, "live-page")
        self._closed = False

    def close(self) -> None:
        """Let the thread end and with it the reading of the record."""
        self._closed = True
        self._thread.submit(self._view.close)
        self._thread.shutdown(wait=True)

    def render(self, request: HttpRequest) -> Any:
        """Answer a request that the gate lets through."""
        for name, value in HEADERS.items():
            request.setHeader(name, value)
        request.responseHeaders.removeHeader(b"Server")
        path = (request.path or b"").decode("latin-1")
        if not self._gate.knows_host(request):
            return _text(request, 421, "This page is for browsers on this machine only.\n")
        if path == "/" and request.method == b"GET" and self._gate.introduces(request):
            self._gate.welcome(request)
        elif path in FILES:
            if not self._gate.may_open(request):
                return _text(request, 403, CLOSED)
        elif not self._gate.may_steer(request):
            return _text(request, 403, CLOSED)
        if self._closed:
            return _text(request, 410, "The crawl has ended.\n")
        return self._routed(request, path)

    def _routed(self, request: HttpRequest, path: str) -> Any:
        wanted = b"POST" if path == CONTROL else b"GET"
        if request.method != wanted:
            return _text(request, 405, f"{wanted.decode()} only.\n")
        if path == CONTROL:
            return self._steer(request)
        if path == PLOTLY:
            request.setHeader(b"Cache-Control", b"private, max-age=86400")
        work = self._work(request, path)
        if work is None:
            return _text(request, 404, "There is nothing here.\n")
        return self._later(request, *work)

    def _work(self, request: HttpRequest, path: str) -> tuple[Work, str] | None:
        """Return what the thread has to do for a path and the type of what it returns."""
        if path in FILES:
            return FILES[path]
        step = _step(request)
        if path == "/state":
            return partial(self._view.state, self._state(), step), JSON
        views: dict[str, Callable[[int], bytes | None]] = {
            "/figures": self._view.figures,
            "/page": self._view.page,
        }
        return (partial(views[path], step), JSON) if path in views else None

    def _steer(self, request: HttpRequest) -> Any:
        """Do what is asked in JSON: {"do": "pause"}, resume, stop, seed or max with a "value"."""
        assert request.content is not None
        do, value = _asked(request.content.read())
        ways: dict[str, Callable[[], str]] = {
            "pause": self._control.pause,
            "resume": self._control.resume,
            "stop": self._control.stop,
            "seed": partial(self._control.add_seed, value),
            "max": partial(self._control.change_max, value),
        }
        if do not in ways:
            return _answer(request, 400, {"error": "What is asked is no request of this page"})
        try:
            return _answer(request, 200, {"said": ways[do]()})
        except ControlError as error:
            return _answer(request, 409, {"error": str(error)})

    def _later(self, request: HttpRequest, work: Work, kind: str) -> Any:
        """Answer with what the thread returns: nothing new where that is None."""
        gone: list[Failure] = []
        request.notifyFinish().addErrback(gone.append)

        def finish(done: Future[bytes | None]) -> None:
            if not gone:
                _finish(request, done, kind)

        def call(done: Future[bytes | None]) -> None:
            self._reactor.callFromThread(finish, done)

        self._thread.submit(work).add_done_callback(call)
        return NOT_DONE_YET


def site(page: LivePage) -> ThrottlingFactory:
    """Return what listens: no log of its own, few connections, no traceback to anybody."""
    site = Site(page, requestFactory=BoundedRequest)
    site.displayTracebacks = False
    return ThrottlingFactory(site, maxConnectionCount=CONNECTIONS)


def _finish(request: HttpRequest, done: Future[bytes | None], kind: str) -> None:
    try:
        body = done.result()
    except RecordError as error:
        body = _answer(request, 503, {"error": str(error)})
    except Exception:
        logger.exception("The live page could not be told of the crawl")
        body = _answer(request, 500, {"error": "This cannot be shown: the crawl's log says why"})
    else:
        request.setHeader(b"Content-Type", kind.encode())
        if body is None:
            request.setResponseCode(204)
    request.write(body or b"")
    request.finish()


def _answer(request: HttpRequest, code: int, value: dict[str, str]) -> bytes:
    request.setResponseCode(code)
    request.setHeader(b"Content-Type", JSON.encode())
    return json.dumps(value).encode()


def _asked(body: bytes) -> tuple[str, str]:
    """Return what is asked and its value, "" where that is nothing that could be asked."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""
    values = [asked.get(name, "") for name in ("do", "value")] if isinstance(asked, dict) else []
    do, value = values if all(isinstance(value, str) for value in values) and values else ("", "")
    return do, value


def _text(request: HttpRequest, code: int, text: str) -> bytes:
    request.setResponseCode(code)
    request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
    return text.encode()


def _step(request: HttpRequest) -> int:
    """Return the step that a request names, -1 without one."""
    given = (request.args or {}).get(b"step", [b""])[0]
    return int(given) if given.isdigit() and len(given) < 16 else -1
