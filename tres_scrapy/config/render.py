"""How pages are run in a browser."""

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
        "which pages are run in a browser; auto: empty ones",
        name="render",
    )
    browser: Path | None = setting(Path, None, "Chromium to render with; unset: it is looked for")
    browser_options: tuple[str, ...] = setting(options, (), "options to start it with, --NAME=X")
    browser_sandbox: bool | None = setting(
        flag,
        None,
        "whether Chromium's sandbox is on; unset: unless run as root, where it cannot be",
    )
    timeout: float = setting(
        number(1, 600),
        30.0,
        "seconds in which a page must load; then what is there is read",
        name="render_timeout",
    )
    idle: float = setting(
        number(0, 60),
        5.0,
        "seconds more for its network to fall quiet; 0: it is read once loaded",
        name="render_idle",
    )
    pages: int = setting(whole(1, 100), 4, "pages in the browser at once", name="render_pages")
    block: tuple[str, ...] = setting(
        some_of("image", "font", "media", "style"),
        ("image", "font", "media"),
        "what is not loaded for a page, comma between two, or none",
        name="render_block",
    )
