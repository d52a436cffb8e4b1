"""The HTTP server of the live page: few paths, all of which need the token."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from socket import AF_INET, SO_REUSEADDR, SOL_SOCKET, socket
from typing import Any, Final

from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.http import Request as HttpRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.output import WatchOptions
from tres_scrapy.config.typed import named, typed
from tres_scrapy.live.steering import ControlError, Steering
from tres_scrapy.live.token import HEADERS, HOSTS, PageAccess
from tres_scrapy.live.view import View
from tres_scrapy.report.chart import plotly_file
from tres_scrapy.run.run_file import RecordError

LONGEST: Final = 16 * 1024  # bytes of a request's body
CONNECTIONS: Final = 64  # at a time: a browser opens six
JSON: Final = "application/json; charset=utf-8"
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
CLOSED: Final = "Open the address in the crawl's log: it contains the token of this page.\n"
CONTROL: Final = "/control"
ANSWERS: Final = ("yes", "no")
LONGEST_SEARCH: Final = 200  # characters
PLOTLY: Final = "/plotly.min.js"

Work = Callable[[], bytes | None]

logger = logging.getLogger(__name__)


FILES: Final[Mapping[str, tuple[Work, str]]] = {
    "/": (files(__package__).joinpath("page.html").read_bytes, "text/html; charset=utf-8"),
    "/page.js": (files(__package__).joinpath("page.js").read_bytes, JAVASCRIPT),
    "/page.css": (files(__package__).joinpath("page.css").read_bytes, "text/css; charset=utf-8"),
    PLOTLY: (lambda: plotly_file().read_bytes(), JAVASCRIPT),
}


class BoundedRequest(Request):
    """Keeps at most LONGEST bytes of a body, in memory."""

    def gotLength(self, length: int | None) -> None:  # noqa: D102, N802 - Twisted's
        super().gotLength(0)  # type: ignore[no-untyped-call]

    def handleContentChunk(self, data: bytes) -> None:  # noqa: D102, N802 - Twisted's
        assert self.content is not None
        room = LONGEST - self.content.tell()
        super().handleContentChunk(data[: max(0, room)])  # type: ignore[no-untyped-call]


class LivePage(Resource):
    """Answers all requests; slow work runs in a separate thread.

    `state` returns the numbers of the crawl and is called in the reactor's thread.
    """

    isLeaf = True  # noqa: N815 - Twisted's

    def __init__(
        self,
        control: Steering,
        view: View,
        state: Callable[[], dict[str, Any]],
        reactor: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._access = PageAccess()
        self._control = control
        self._view = view
        self._state = state
        self._reactor = reactor
        self._thread = ThreadPoolExecutor(1, "live-page")
        self._port: Any = None
        self._closed = False

    def serve(self, listener: socket) -> None:
        """Answer on a socket that listens, from now on, and log the address."""
        logger.info("Live page: %s", self._access.address(listener.getsockname()[1]))
        self._port = self._reactor.adoptStreamPort(listener.fileno(), AF_INET, site(self))
        listener.close()

    def stop(self) -> None:
        """Take no more connections."""
        if self._port is not None:
            self._port.stopListening()

    def close(self) -> None:
        """End the thread and close the record."""
        self._closed = True
        self._thread.submit(self._view.close)
        self._thread.shutdown(wait=True)

    def render(self, request: HttpRequest) -> Any:
        """Answer a request, if it has the right host and the token."""
        for name, value in HEADERS.items():
            request.setHeader(name, value)
        request.responseHeaders.removeHeader(b"Server")
        path = (request.path or b"").decode("latin-1")
        if not self._access.knows_host(request):
            return _text(request, 421, "This page is for browsers on this machine only.\n")
        if path == "/" and request.method == b"GET" and self._access.introduces(request):
            self._access.welcome(request)
        elif path in FILES:
            if not self._access.may_open(request):
                return _text(request, 403, CLOSED)
        elif not self._access.may_steer(request):
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
            return _text(request, 404, "Not found.\n")
        return self._later(request, *work)

    def _work(self, request: HttpRequest, path: str) -> tuple[Work, str] | None:
        """Return the thread's task for a path, and the content type of its result."""
        if path in FILES:
            return FILES[path]
        step = _step(request)
        if path == "/state":
            return partial(self._view.state, self._state(), step), JSON
        works: dict[str, Work] = {
            "/figures": partial(self._view.figures, step),
            "/page": partial(self._view.page, step),
            "/relevant": partial(self._view.relevant, step, _words(request)),
            "/questions": self._view.questions,
        }
        return (works[path], JSON) if path in works else None

    def _steer(self, request: HttpRequest) -> Any:
        """Do what the JSON body says: {"do": "pause"}, resume or stop; others with a "value"."""
        assert request.content is not None
        do, value = _asked(request.content.read())
        ways: dict[str, Callable[[], str]] = {
            "pause": self._control.pause,
            "resume": self._control.resume,
            "stop": self._control.stop,
            "seed": partial(self._control.add_seed, value),
            "max": partial(self._control.change_max, value),
            "distrust": partial(self._control.distrust, value),
        }
        if do in ANSWERS:  # the record is read in the thread
            return self._later(
                request, partial(self._view.answer, value, relevant=do == "yes"), JSON
            )
        if do not in ways:
            known = ", ".join([*ways, *ANSWERS])
            return _answer(request, 400, {"error": f'"do" must be one of {known}'})
        try:
            return _answer(request, 200, {"said": ways[do]()})
        except ControlError as error:
            return _answer(request, 409, {"error": str(error)})

    def _later(self, request: HttpRequest, work: Work, kind: str) -> Any:
        """Answer with the result of the thread, or 204 if that is None."""
        gone: list[Failure] = []
        request.notifyFinish().addErrback(gone.append)

        def finish(done: Future[bytes | None]) -> None:
            if not gone:
                _finish(request, done, kind)

        def call(done: Future[bytes | None]) -> None:
            self._reactor.callFromThread(finish, done)

        self._thread.submit(work).add_done_callback(call)
        return NOT_DONE_YET


class NewestConnections(WrappingFactory):
    """Keeps the newest connections: idle ones cannot keep a browser out."""

    def registerProtocol(self, p: ProtocolWrapper) -> None:  # noqa: D102, N802 - Twisted's
        super().registerProtocol(p)  # type: ignore[no-untyped-call]
        for oldest in list(self.protocols)[:-CONNECTIONS]:
            oldest.transport.abortConnection()


def listening(watch: WatchOptions) -> socket:
    """Listen on the port that the live page is asked for on; raise ConfigError if it is taken.

    Then the crawl ends before it starts. So it does if it has no record, which the page shows.
    """
    assert watch.dashboard is not None
    if not watch.record:
        raise ConfigError(
            f"{named('TRES_DASHBOARD')} shows the record of the crawl: it needs "
            f"{typed('record', True)}"
        )
    listener = socket()
    try:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind((HOSTS[0], watch.dashboard))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{named('TRES_DASHBOARD')} {watch.dashboard}: {error.strerror}"
        ) from None
    listener.setblocking(False)
    return listener


def site(page: LivePage) -> NewestConnections:
    """Return the server: without a log, with few connections, without tracebacks in answers."""
    site = Site(page, requestFactory=BoundedRequest)
    site.displayTracebacks = False
    return NewestConnections(site)  # type: ignore[no-untyped-call]


def _finish(request: HttpRequest, done: Future[bytes | None], kind: str) -> None:
    try:
        body = done.result()
    except ControlError as error:
        body = _answer(request, 409, {"error": str(error)})
    except RecordError as error:
        body = _answer(request, 503, {"error": str(error)})
    except Exception:
        logger.exception("The live page failed to read the crawl")
        body = _answer(request, 500, {"error": "Internal error: see the crawl's log"})
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
    """Return "do" and "value" of a JSON body, each "" if the body is not valid."""
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


def _words(request: HttpRequest) -> str:
    """Return the words to search for in a request."""
    given: bytes = (request.args or {}).get(b"words", [b""])[0]
    return given.decode("utf-8", "replace")[:LONGEST_SEARCH]


def _step(request: HttpRequest) -> int:
    """Return the step in a request, -1 if it has none."""
    given = (request.args or {}).get(b"step", [b""])[0]
    return int(given) if given.isdigit() and len(given) < 16 else -1
