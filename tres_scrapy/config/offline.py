"""Options of the offline web that a crawl can start and use instead of the real one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tres_scrapy.config.declaration import Group, setting
from tres_scrapy.config.parser import callable_name, one_of, proxy_url, whole

KINDS: Final = ("synthetic", "corpus", "recorded")


def web_kind(text: str) -> str:
    """Accept synthetic, corpus, recorded or package.module:NAME."""
    return callable_name(text) if ":" in text else one_of(*KINDS, "package.module:NAME")(text)


@dataclass(frozen=True)
class WebOptions:
    """The offline web; without a `kind`, the crawl uses the real web."""

    kind: str | None = setting(
        web_kind,
        None,
        "offline web to start and crawl; unset: the real web; `package.module:NAME` is a web of "
        "your own, made from a topic and a seed",
        name="web",
        group=Group.EVERYDAY,
    )
    seed: int = setting(
        whole(0, 2**31 - 1),
        0,
        "seed of the synthetic web, or of your own: another seed, another web",
        name="web_seed",
    )
    data: Path | None = setting(
        Path,
        None,
        "file of documents (corpus web), WARC file or folder of WARC files (recorded web)",
        name="web_data",
    )
    labels: Path | None = setting(
        Path,
        None,
        "file of the recorded web's relevant pages: URLs, or JSON lines of another crawl",
        name="web_labels",
    )
    proxy: str | None = setting(
        proxy_url,
        None,
        "address of an offline web that runs already, such as http://127.0.0.1:8000; unset: start "
        "one",
        name="web_proxy",
    )
    log: Path | None = setting(
        Path, None, "file for the offline web's log of fetches (JSON lines)", name="web_log"
    )

    def spoken(self, url: str) -> str:
        """Return a URL with the scheme that the web speaks: most offline webs have no https."""
        has_https = self.kind in {None, "recorded"}
        return url if has_https else url.replace("https://", "http://", 1)
