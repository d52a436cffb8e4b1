"""One page in the browser: gets its document, runs its scripts for a while, and is read."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from playwright.async_api import Error as BrowserError
from playwright.async_api import TimeoutError as BrowserTimeoutError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

RELOADS: Final = 2  # a page may reload itself, for example with a cookie that it has just set
# headers of the finished transfer, and one that would make the browser download the page
DROPPED: Final = frozenset(
    (
        "connection",
        "content-disposition",
        "content-encoding",
        "content-length",
        "content-type",
        "keep-alive",
        "trailer",
        "transfer-encoding",
    )
)
# A script that shows alerts in a loop cannot be stopped while one is open. Playwright's own way to
# block service workers leaves the function on the prototype. WebRTC would ask the local network for
# names.
WITHOUT: Final = """
  for (const name of ["alert", "confirm", "print", "prompt"]) window[name] = () => null;
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) delete window[name];
  delete Navigator.prototype.serviceWorker;
"""
# Runs in an isolated world, where the page cannot have replaced the browser's functions. Content of
# shadow roots is read too. Scripts and styles are removed: they are no longer needed.
READ: Final = """(limit, asked) => {
  const root = Document.prototype.querySelector.call(document, ":root");
  if (root === null) return "";
  const unfold = (tree) => {
    for (const host of tree.querySelectorAll("*")) {
      if (host.shadowRoot === null) continue;
      unfold(host.shadowRoot);
      host.append(...host.shadowRoot.childNodes);
    }
  };
  unfold(root);
  for (const done of root.querySelectorAll("script:not([type*=json]), style, noscript")) {
    done.remove();
  }
  const head = root.querySelector("head");
  if (head !== null && root.baseURI !== asked && root.querySelector("base[href]") === null) {
    const base = root.ownerDocument.createElement("base");
    base.setAttribute("href", root.baseURI);
    head.prepend(base);
  }
  const html = root.outerHTML;
  return html.length > limit ? null : html;
}"""

RenderFailure = Literal["render_timeout", "render_crash", "render_too_large", "render_error"]


class RenderError(Exception):
    """Raised with a one-line reason when rendering fails; `kind` is its name in the stats."""

    def __init__(self, kind: RenderFailure, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True)
class TabLimits:
    """Limits for rendering a page, times in seconds."""

    timeout: float = 30.0
    idle: float = 5.0  # after the load event, until the network has been quiet for half a second
    longest: int = 8 * 1024 * 1024  # characters of the rendered page
    blocked: tuple[str, ...] = ("Image", "Font", "Media")  # kinds of resources, as CDP calls them
    answer: float = 5.0  # for the browser to obey a command, such as stopping a script
    reading: float = 15.0  # to read the page


class FetchedPage(NamedTuple):
    """The response to the crawler's own request, decoded."""

    url: str
    headers: list[tuple[str, str]]
    text: str


class Rendered(NamedTuple):
    """A page after its scripts have run, or the URL that they navigated to."""

    html: str
    leads_to: str = ""


class Tab:
    """Renders one document in a new page of the browser; the caller closes the page.

    The browser fetches the document only if the page reloads itself. It may not navigate
    elsewhere: the target of a script or meta refresh is returned, for the crawler to fetch.
    Frames stay empty.
    """

    def __init__(self, page: Page, document: FetchedPage, limits: TabLimits) -> None:
        self._page = page
        self._document = document
        self._limits = limits
        self._session: CDPSession | None = None
        self._frame = ""
        self._asked: list[str] = []  # URLs that the page itself navigated to
        # the URL that the page navigates to; "" for a navigation that is refused
        self._ends: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    async def render(self) -> Rendered:
        """Return the page; raise RenderError if it crashes, does not answer or is too large."""
        self._page.on("crash", lambda _: self._crash())
        limits = self._limits
        try:
            async with asyncio.timeout(limits.timeout + 2 * limits.answer + limits.reading):
                await self._prepare()
                await self._settle()
                if self._ends.done() and self._ends.result():
                    return Rendered("", self._ends.result())
                if not self._asked:  # the browser was too busy to begin
                    raise TimeoutError
                await self._stop_scripts()
                return await self._read()
        except TimeoutError:
            raise RenderError("render_timeout", "Rendering timed out") from None
        finally:
            for task in self._tasks:
                task.cancel()

    async def _prepare(self) -> None:
        self._session = await self._page.context.new_cdp_session(self._page)
        tree = await self._session.send("Page.getFrameTree")
        self._frame = tree["frameTree"]["frame"]["id"]
        self._session.on("Fetch.requestPaused", self._start_answer)
        kinds = ("Document", *self._limits.blocked)
        await self._session.send("Page.enable")
        await self._session.send("Page.addScriptToEvaluateOnNewDocument", {"source": WITHOUT})
        patterns = [{"resourceType": kind} for kind in kinds]
        await self._session.send("Fetch.enable", {"patterns": patterns})

    async def _settle(self) -> None:
        """Wait until the page seems complete or navigates elsewhere."""
        loading = asyncio.create_task(self._load())
        try:
            waiting: set[asyncio.Future[Any]] = {loading, self._ends}
            limit = self._limits.timeout
            await asyncio.wait(waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if self._ends.done():
                self._ends.result()  # raises if the page has crashed
            elif loading.done():
                loading.result()
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    async def _load(self) -> None:
        await self._page.goto(self._document.url, wait_until="load", timeout=0)
        if self._limits.idle:
            with suppress(BrowserTimeoutError):
                limit = 1000 * self._limits.idle
                await self._page.wait_for_load_state("networkidle", timeout=limit)

    async def _stop_scripts(self) -> None:
        """Stop all scripts, so that the page does not change while it is read."""
        await self._send("Emulation.setScriptExecutionDisabled", value=True)
        await self._send("Runtime.terminateExecution")  # a script may run forever

    async def _read(self) -> Rendered:
        world = await self._send("Page.createIsolatedWorld", frameId=self._frame)
        arguments = f"{self._limits.longest}, {json.dumps(self._asked[0])}"
        answer = await self._send(
            "Runtime.evaluate",
            self._limits.reading,
            expression=f"({READ})({arguments})",
            contextId=world["executionContextId"],
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise RenderError("render_error", "Rendering failed: the page cannot be read")
        html = answer["result"].get("value")
        if html is None:
            longest = self._limits.longest
            raise RenderError("render_too_large", f"Rendering gave more than {longest} characters")
        return Rendered(html)

    async def _send(
        self, method: str, limit: float | None = None, **parameters: Any
    ) -> dict[str, Any]:
        assert self._session is not None  # `_prepare` comes first
        async with asyncio.timeout(self._limits.answer if limit is None else limit):
            answer: dict[str, Any] = await self._session.send(method, parameters)
        return answer

    def _crash(self) -> None:
        if not self._ends.done():
            error = RenderError("render_crash", "Rendering crashed the page")
            self._ends.set_exception(error)

    def _start_answer(self, event: dict[str, Any]) -> None:
        task = asyncio.create_task(self._answer(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, event: dict[str, Any]) -> None:
        with suppress(BrowserError, TimeoutError):  # the page is gone
            if event["resourceType"] == "Document" and event["frameId"] == self._frame:
                await self._navigate(event["requestId"], event["request"])
            else:
                await self._refuse(event["requestId"], "BlockedByClient")

    async def _navigate(self, number: str, request: dict[str, Any]) -> None:
        url, method = request["url"], request["method"]
        self._asked.append(url)
        if len(self._asked) == 1:
            await self._hand_over(number)
        elif url == self._asked[0] and method == "GET" and len(self._asked) <= 1 + RELOADS:
            await self._send("Fetch.continueRequest", requestId=number)
        else:
            leads = url != self._asked[0] and method == "GET"
            await self._refuse(number, "Aborted")  # the page stays as it is
            if not self._ends.done():
                self._ends.set_result(url if leads else "")

    async def _hand_over(self, number: str) -> None:
        kept = [
            (name, value) for name, value in self._document.headers if name.lower() not in DROPPED
        ]
        headers = [*kept, ("Content-Type", "text/html; charset=utf-8")]
        if "Image" in self._limits.blocked:  # Fetch does not see favicons
            headers.append(("Content-Security-Policy", "img-src 'none'"))
        await self._send(
            "Fetch.fulfillRequest",
            requestId=number,
            responseCode=200,
            responseHeaders=[{"name": name, "value": value} for name, value in headers],
            body=b64encode(self._document.text.encode("utf-8", "replace")).decode(),
        )

    async def _refuse(self, number: str, reason: str) -> None:
        await self._send("Fetch.failRequest", requestId=number, errorReason=reason)
