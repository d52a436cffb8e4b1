"""The download handler that runs the scripts of pages in a browser, with scrapy-playwright."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from playwright.async_api import Error as BrowserError
from playwright.async_api import Page
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy_playwright.handler import BrowserContextWrapper, ScrapyPlaywrightDownloadHandler

from tres_scrapy.config.typed import typed
from tres_scrapy.downloader.browser import Rotation, context_options, launch_options
from tres_scrapy.downloader.handler import BoundedHandler
from tres_scrapy.downloader.refusal import FetchRefusedError
from tres_scrapy.downloader.rendering import Rendering
from tres_scrapy.downloader.request import RECEIVED, RENDERED, header_pairs
from tres_scrapy.downloader.tab import FetchedPage, Rendered, RenderError, Tab, TabLimits
from tres_scrapy.url.message import first_line

STARTING: Final = 60.0  # seconds for the browser to start
OPENING: Final = 30.0  # seconds for a tab: one opened while the browser ends never appears
CLOSING: Final = 5.0
ATTEMPTS: Final = 3  # to render a page, if the browser ends meanwhile
PAUSE: Final = 0.5  # seconds between attempts
LONGEST: Final = 32 * 1024 * 1024  # characters of a rendered page, whatever DOWNLOAD_MAXSIZE is
NO_SANDBOX: Final = re.compile("No usable sandbox|SUID sandbox|without --no-sandbox")

logger = logging.getLogger(__name__)


class RenderHandler(ScrapyPlaywrightDownloadHandler, BoundedHandler):  # type: ignore[misc]
    """Fetches each page as usual, and hands it to the browser if its scripts are to run.

    The page itself is fetched once, by the crawler and under all its rules; the browser fetches
    what the page loads. Meanwhile the page keeps its place in the downloader slot of its host. The
    delay of the host starts again when the rendering ends.
    """

    lazy = False

    def __init__(self, crawler: Crawler, rendering: Rendering) -> None:
        super().__init__(crawler)
        render, settings = rendering.config.render, crawler.settings
        self._rendering = rendering
        self._rotation = Rotation()
        self._tabs = asyncio.Semaphore(render.pages)
        self._user_agent: str = settings["USER_AGENT"]
        self._language: str = settings.getdict("DEFAULT_REQUEST_HEADERS").get("Accept-Language", "")
        self._closed = False
        self._archives = rendering.config.output.warc != "none"
        longest = min(settings.getint("DOWNLOAD_MAXSIZE") or LONGEST, LONGEST)
        self._limits = TabLimits(idle=render.idle, longest=longest)
        sandbox = render.browser_sandbox
        self._sandbox = os.geteuid() != 0 if sandbox is None else sandbox
        self.config.launch_options |= launch_options(
            rendering.browser,
            Path(rendering.home.name),
            self.config.launch_options.get("args", ()),
            sandbox=self._sandbox,
        )
        self.config.max_pages_per_context = 2 * render.pages  # a crash counts twice

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return one handler for http and https, which share a browser."""
        rendering = crawler.get_extension(Rendering)
        assert rendering is not None  # the add-on installs both
        if not isinstance(rendering.renderer, cls):
            rendering.renderer = cls(crawler, rendering)
        return rendering.renderer

    async def open(self) -> None:
        """Start the browser; raise OSError with the reason if it does not start."""
        if not self._sandbox:
            logger.warning("Chromium's sandbox is off: it needs a user other than root")
        try:
            async with asyncio.timeout(STARTING):
                await self._launch()
                await self._maybe_launch_browser()
        except (BrowserError, TimeoutError, OSError) as error:
            raise OSError(_why(error, self._rendering.browser)) from None

    async def close(self) -> None:
        if not self._closed:  # Scrapy calls this once for each scheme
            self._closed = True
            with suppress(BrowserError):
                await super().close()

    async def download_request(self, request: Request) -> Response:
        response = await BoundedHandler.download_request(self, request)
        if not self._rendering.concerns(request):
            return response
        seen = await asyncio.to_thread(self._rendering.look, request, response)
        if not self._rendering.wants(request, seen):
            return response  # still compressed, for the archive; Scrapy decompresses it
        assert isinstance(seen.response, HtmlResponse)
        assert seen.shell is not None
        try:
            rendered = await self._rendered(request, seen.response)
        except RenderError as error:
            raise FetchRefusedError(f"{error}: {request.url}", error.kind) from None
        finally:
            self._restart_delay(request)
        if self._archives:
            request.meta[RECEIVED] = response
        if rendered.leads_to:
            headers = {"Location": rendered.leads_to}
            return Response(request.url, 302, headers, request=request, flags=[RENDERED])
        await self._rendering.learn(request, seen.shell.content, rendered.html)
        return _response(seen.response, rendered.html)

    async def _maybe_launch_in_thread(self) -> None:
        """Do nothing: the browser was started when the spider opened."""

    async def _rendered(self, request: Request, response: HtmlResponse) -> Rendered:
        document = FetchedPage(request.url, header_pairs(response.headers), response.text)
        async with self._tabs:
            for _ in range(ATTEMPTS):
                try:
                    return await self._in_tab(document, await self._rendering.port(request))
                except BrowserError as error:
                    if hasattr(self, "browser") and self.browser.is_connected():
                        said = f"Rendering failed: {first_line(error)}"
                        raise RenderError("render_error", said) from None
                    logger.warning("The browser ended at %s: starting it again", request.url)
                await asyncio.sleep(PAUSE)
        raise RenderError("render_crash", "Rendering crashed the browser")

    async def _in_tab(self, document: FetchedPage, port: int) -> Rendered:
        kind = str(port)
        name = self._rotation.enter(kind)
        options = context_options(port, self._user_agent, self._language)
        meta = {"playwright_context": name, "playwright_context_kwargs": options}
        page = None
        try:
            async with asyncio.timeout(OPENING):
                page = await self._create_page(Request(document.url, meta=meta), None)
            return await Tab(page, document, self._limits).render()
        except TimeoutError:
            raise RenderError("render_timeout", "Rendering timed out") from None
        finally:
            await _close(page)
            if self._rotation.leave(kind, name) and name in self.context_wrappers:
                await _close(self.context_wrappers[name].context)

    async def _create_browser_context(
        self, name: str, context_kwargs: dict[str, object], spider: Spider | None = None
    ) -> BrowserContextWrapper:
        wrapper = await super()._create_browser_context(name, context_kwargs, spider)
        wrapper.context.on("page", _close_popup)
        return wrapper


async def _close(closing: object) -> None:
    with suppress(BrowserError, TimeoutError):
        async with asyncio.timeout(CLOSING):
            if closing is not None:
                await closing.close()  # type: ignore[attr-defined]


async def _close_popup(page: Page) -> None:
    with suppress(BrowserError):
        if await page.opener() is not None:
            await page.close()


def _response(response: HtmlResponse, html: str) -> Response:
    headers = response.headers.copy()
    headers["Content-Type"] = "text/html; charset=utf-8"
    return response.replace(
        headers=headers,
        body=html.encode("utf-8", "replace"),
        encoding="utf-8",
        flags=[*response.flags, RENDERED],
    )


def _why(error: Exception, browser: Path) -> str:
    if isinstance(error, TimeoutError):
        return f"{browser} did not start within {STARTING:.0f} seconds"
    if NO_SANDBOX.search(str(error)):
        return f"{browser} cannot start its sandbox here: set {typed('browser_sandbox', False)}"
    path = typed("browser", "PATH")
    return f"{browser} does not start ({first_line(error)}): install Chromium or set {path}"
