"""Find Chromium, start it so that it can connect only to the gate, and rotate its contexts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tres_scrapy.config.typed import typed
from tres_scrapy.url.message import TresError

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OWN: Final = "chromium-*/chrome-linux*/chrome"  # where `playwright install chromium` puts it
INSTALL: Final = "install Chromium (`apt-get install chromium` or `playwright install chromium`)"
# Features that bypass a proxy are off: the gate resolves names, and it carries no UDP.
# A script may use half a gigabyte; beyond that its page crashes, not the machine.
FLAGS: Final = (
    "--deny-permission-prompts",
    "--disable-gpu",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--js-flags=--max-old-space-size=512",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
UNWANTED: Final = ("--disable-popup-blocking",)  # flags of Playwright's to leave out
PAGES: Final = 50  # per context; cookies and other data of sites end with it
KEPT: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DBUS_SESSION_BUS_ADDRESS")


def find_browser(path: Path | None = None) -> Path:
    """Return the browser at `path`, or an installed one; raise TresError without a browser."""
    if path is not None:
        if not os.access(path, os.X_OK) or path.is_dir():
            raise TresError(f"{str(path)!r} must be an executable of Chromium: {_remedy()}")
        return path
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    cache = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
    for own in sorted(Path(cache).glob(OWN), reverse=True):
        return own
    raise TresError(f"no Chromium is installed: {_remedy()}")


def _remedy() -> str:
    return f"{INSTALL} or give its path with {typed('browser', 'PATH')}"


def launch_options(
    browser: Path, home: Path, flags: Iterable[str], *, sandbox: bool
) -> dict[str, Any]:
    """Return Playwright's options for a browser that writes files only below `home`.

    Only the environment variables of KEPT are passed on: others may hold secrets.
    """
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {
        "executable_path": str(browser),
        "args": [*FLAGS, *flags],
        "ignore_default_args": list(UNWANTED),
        "chromium_sandbox": sandbox,
        "handle_sigint": False,  # Ctrl-C ends the crawl, and the crawl ends the browser
        "handle_sigterm": False,
        "handle_sighup": False,
        "env": environment | {"HOME": str(home), "TMPDIR": str(home)},
    }


def context_options(port: int, user_agent: str, language: str) -> dict[str, Any]:
    """Return Playwright's options for a context that sends every request through a local port."""
    return {
        "proxy": {"server": f"http://127.0.0.1:{port}"},
        "user_agent": user_agent,
        "locale": language or "en",
        "accept_downloads": False,
        "service_workers": "block",
        "ignore_https_errors": True,  # as Scrapy does: no secrets are sent
        "viewport": {"width": 1280, "height": 4000},  # tall: loads what needs scrolling
    }


class Rotation:
    """Chooses the context for each page, and reports when a context is no longer needed."""

    def __init__(self, pages: int = PAGES) -> None:
        self._pages = pages
        self._turns: dict[str, int] = {}  # by kind of context, pages opened in all, less one
        self._open: dict[str, int] = {}  # by context name, pages open in it

    def enter(self, kind: str) -> str:
        """Return the name of the context for one more page of a kind."""
        turn = self._turns[kind] = self._turns.get(kind, -1) + 1
        name = f"{kind}-{turn // self._pages}"
        self._open[name] = self._open.get(name, 0) + 1
        return name

    def leave(self, kind: str, name: str) -> bool:
        """Record that a page was closed; return whether to close its context too."""
        self._open[name] -= 1
        if self._open[name]:
            return False
        del self._open[name]
        return f"{kind}-{(self._turns[kind] + 1) // self._pages}" != name
