"""Options of rendering: how pages are opened in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, number, one_of, options, some_of, whole

NEVER, AUTO, ALWAYS = "never", "auto", "always"


@dataclass(frozen=True)
class RenderOptions:
    """Which pages are rendered, by which browser, and for how long."""

    mode: str = setting(
        one_of(NEVER, AUTO, ALWAYS),
        NEVER,
        "which pages to open in a browser; auto: those that are empty without scripts",
        name="render",
    )
    browser: Path | None = setting(Path, None, "path of Chromium; unset: search for it")
    browser_options: tuple[str, ...] = setting(
        options, (), "command line options of Chromium, such as --NAME=VALUE"
    )
    browser_sandbox: bool | None = setting(
        flag,
        None,
        "use Chromium's sandbox; unset: yes, except as root, where it cannot run",
    )
    timeout: float = setting(
        number(1, 600),
        30.0,
        "seconds to wait for a page to load; after that, the page is read as it is",
        name="render_timeout",
    )
    idle: float = setting(
        number(0, 60),
        5.0,
        "further seconds to wait until the page stops making requests; 0: do not wait",
        name="render_idle",
    )
    pages: int = setting(
        whole(1, 100), 4, "most pages open in the browser at once", name="render_pages"
    )
    block: tuple[str, ...] = setting(
        some_of("image", "font", "media", "style"),
        ("image", "font", "media"),
        "kinds of files not to load for a page, separated by commas, or none",
        name="render_block",
    )
