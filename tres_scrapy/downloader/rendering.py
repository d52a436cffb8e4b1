"""The extension that decides which pages are rendered, and limits what the browser can reach."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.http import HtmlResponse, Response

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.download import ALWAYS, NEVER
from tres_scrapy.config.typed import named, typed
from tres_scrapy.downloader.browser import find_browser
from tres_scrapy.downloader.gate import BrowserGate, GateRule, Parent
from tres_scrapy.downloader.private_address import PublicResolver
from tres_scrapy.downloader.request import LEASE
from tres_scrapy.page.kind import ClientRendered, Content, content_of, look_at
from tres_scrapy.page.language import UTF_8, decoded, encoding_of
from tres_scrapy.url.canonical import domain_of
from tres_scrapy.url.message import TresError, plainly, plural
from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    from tres_scrapy.downloader.render_handler import RenderHandler


NO_BROWSER = "no_browser"
MEMORY = "render.json"
SAVED_EVERY = 100  # renderings
REMOTE = ("PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL")
CERTAIN: Final = 3  # a domain is decided when its score is this, or minus this
RETRIAL: Final = 25  # a domain that needs no browser: one in so many pages is tried
LARGEST: Final = 100_000  # domains remembered; the least recently used is dropped
_LONGEST_NAME: Final = 253


logger = logging.getLogger(__name__)


class Seen(NamedTuple):
    """A response as the browser would get it; `shell` is None if it is not an HTML page."""

    response: Response
    shell: ClientRendered | None = None


class Rendering:
    """Decides for each page whether to render it, and learns for each domain if that helps.

    Applies to pages of the frontier, and to requests with a true `playwright` in their meta.
    """

    def __init__(self, crawler: Crawler, config: Config, browser: Path) -> None:
        self.config, self.browser = config, browser
        self.renderer: RenderHandler | None = None  # it owns the browser
        self._stats = crawler.stats
        self._gates: dict[Parent | None, tuple[BrowserGate, int]] = {}
        self._starting = asyncio.Lock()
        jobdir = crawler.settings["JOBDIR"]
        self._path = Path(jobdir, MEMORY) if jobdir else None
        self._memory = _memory(self._path)
        self._rendered = self._helped = 0
        self._compression: HttpCompressionMiddleware | None = None
        if crawler.settings.getbool("COMPRESSION_ENABLED"):
            self._compression = HttpCompressionMiddleware.from_crawler(crawler)
        self.home = TemporaryDirectory(prefix="tres-browser-", ignore_cleanup_errors=True)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.render.mode == NEVER:
            raise NotConfigured
        for name in REMOTE:
            if crawler.settings.get(name):
                raise ConfigError(
                    f"{name}: TRES renders only in a browser on this machine; unset it"
                )
        try:
            browser = find_browser(config.render.browser)
        except TresError as error:
            given, mode = config.render.browser, config.render.mode
            where = named("TRES_BROWSER") if given else typed("render", mode)
            raise ConfigError(f"{where}: {error}") from None
        extension = cls(crawler, config, browser)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(extension.engine_stopped, signal=signals.engine_stopped)
        return extension

    async def spider_opened(self) -> None:
        try:
            if self.renderer is None:
                raise OSError("DOWNLOAD_HANDLERS sets http or https: remove these handlers")
            await self.renderer.open()
        except OSError as error:
            logger.error("%s: %s", typed("render", self.config.render.mode), plainly(error))
            raise CloseSpider(NO_BROWSER) from None

    def concerns(self, request: Request) -> bool:
        """Return whether a request is for a page that may be rendered."""
        wanted = LEASE in request.meta or request.meta.get("playwright")
        return bool(wanted) and request.method == "GET"

    def look(self, request: Request, response: Response) -> Seen:
        """Decompress, decode and measure a response; runs in a thread."""
        if response.status != 200:
            return Seen(response)
        unpacked: Request | Response = response
        try:
            if self._compression is not None:
                unpacked = self._compression.process_response(request, response)
        except Exception:  # Scrapy's own middleware meets and reports the same error
            return Seen(response)
        if not isinstance(unpacked, HtmlResponse):
            return Seen(response)
        content_type = (unpacked.headers.get("Content-Type") or b"").decode("latin-1")
        body = unpacked.body
        html = decoded(body, encoding_of(body, content_type), len(body))
        read = unpacked.replace(body=html.encode(UTF_8, "replace"), encoding=UTF_8)
        return Seen(read, look_at(html[: self.config.reading.html]))

    def wants(self, request: Request, seen: Seen) -> bool:
        """Return whether to render a page."""
        if seen.shell is None:
            return False
        if self.config.render.mode == ALWAYS or request.meta.get("playwright"):
            return True
        return self._memory.wants(domain_of(request.url), looks_empty=seen.shell.is_empty)

    async def learn(self, request: Request, before: Content, html: str) -> None:
        """Record whether rendering a page helped."""
        after = await asyncio.to_thread(content_of, html[: self.config.reading.html])
        helped = after.is_much_more_than(before)
        self._memory.learn(domain_of(request.url), helped=helped)
        self._rendered += 1
        self._helped += helped
        self._stats.set_value("tres/rendered", self._rendered)
        self._stats.set_value("tres/rendering_helped", self._helped)
        if self._rendered % SAVED_EVERY == 0:
            self._save()

    async def port(self, request: Request) -> int:
        """Return the local port of the gate for a request, which leads to its proxy or the web."""
        parent = None
        if proxy := request.meta.get("proxy"):
            authorization = request.headers.get("Proxy-Authorization") or b""
            parent = Parent.parse(proxy, authorization.decode("latin-1"))
        async with self._starting:
            if parent not in self._gates:
                private = self.config.download.private_addresses
                resolve = _addresses if private else PublicResolver.installed().addresses
                gate = BrowserGate(GateRule(resolve, private), parent)
                self._gates[parent] = gate, await gate.start()
        return self._gates[parent][1]

    async def engine_stopped(self) -> None:
        for gate, _ in self._gates.values():
            await gate.stop()
        self.home.cleanup()

    def spider_closed(self) -> None:
        self._save()
        refused = sum(gate.refused.total() for gate, _ in self._gates.values())
        self._stats.set_value("tres/refused_in_browser", refused)
        logger.info(
            "Rendered %d %s, of which %d then held much more; domains that need a browser: %d, "
            "that do not: %d; requests of scripts to private addresses, refused: %d",
            self._rendered,
            plural(self._rendered, "page"),
            self._helped,
            self._memory.count_decided(to_need=True),
            self._memory.count_decided(to_need=False),
            refused,
        )

    def _save(self) -> None:
        if self._path is None:
            return
        try:
            self._memory.save(self._path)
        except OSError as error:
            logger.warning(
                "JOBDIR: could not save which domains need a browser: %s", plainly(error)
            )


def _memory(path: Path | None) -> DomainMemory:
    if path is None:
        return DomainMemory()
    try:
        return DomainMemory.load(path)
    except (OSError, ValueError) as error:
        raise TresError(f"JOBDIR: {plainly(error)}; delete {path}") from None


async def _addresses(host: str) -> list[str]:
    """Return all addresses of a host, private ones too."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class DomainMemory:
    """Scores each domain: +1 for each rendering that helped, -1 for each that did not.

    At CERTAIN, every page of the domain is rendered. At -CERTAIN, only one in RETRIAL of the pages
    that look empty is. In between, each page that looks empty is rendered.
    """

    def __init__(self, scores: dict[str, int] | None = None) -> None:
        self._scores = dict(scores or {})  # by domain, least recently used first
        self._passed: dict[str, int] = {}  # by domain, empty pages since it was decided

    def wants(self, domain: str, *, looks_empty: bool) -> bool:
        """Return whether to render a page; `looks_empty` is how it looks before rendering."""
        score = self._scores.get(domain, 0)
        if score >= CERTAIN:
            return True
        if not looks_empty or score > -CERTAIN:
            return looks_empty
        self._passed[domain] = self._passed.get(domain, 0) + 1
        return self._passed[domain] % RETRIAL == 0

    def learn(self, domain: str, *, helped: bool) -> None:
        """Record whether rendering a page of a domain helped."""
        score = self._scores.pop(domain, 0) + (1 if helped else -1)
        self._scores[domain] = max(-CERTAIN, min(CERTAIN, score))
        if score > -CERTAIN:
            self._passed.pop(domain, None)
        if len(self._scores) > LARGEST:
            oldest = next(iter(self._scores))
            del self._scores[oldest]
            self._passed.pop(oldest, None)

    def count_decided(self, *, to_need: bool) -> int:
        """Return how many domains are known to need a browser, or not to need one."""
        wanted = CERTAIN if to_need else -CERTAIN
        return sum(score == wanted for score in self._scores.values())

    def save(self, path: Path) -> None:
        """Save the scores; raise OSError if that fails."""
        with whole_file(path) as file:
            file.write(json.dumps(self._scores).encode())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote, empty if there is no file; raise ValueError if it is damaged."""
        if not path.exists():
            return cls()
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"{path.name} is not a plain file")
        try:
            scores = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            scores = None
        if not isinstance(scores, dict) or not all(_is_entry(*entry) for entry in scores.items()):
            raise ValueError(f"{path.name} is not a file of render scores")
        return cls(scores)


def _is_entry(domain: str, score: object) -> bool:
    return len(domain) <= _LONGEST_NAME and type(score) is int and abs(score) <= CERTAIN
