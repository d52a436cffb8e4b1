"""What the ordinary spiders share: the address of their site."""

from __future__ import annotations

import os
from typing import ClassVar
from urllib.parse import urljoin

PORT = int(os.environ.get("ORDINARY_PORT", "0"))


def address(name: str, path: str = "/", host: str = "") -> str:
    """Return the URL of a path on the site of a spider or on a host below it."""
    below = f"{host}." if host else ""
    return urljoin(f"http://{below}{name}.test:{PORT}", path)


class Local:
    """Gives a spider class a site of its own, and its `paths` as start_urls.

    `ordered` says that the order of items and requests is promised. `arguments` are those of each
    run. A spider runs in an empty folder; what it leaves there in `files` is compared.
    """

    name = ""
    paths: ClassVar[tuple[str, ...]] = ()
    ordered = False
    arguments: ClassVar[tuple[dict[str, str], ...]] = ({},)
    files: ClassVar[tuple[str, ...]] = ()  # patterns
    stats: ClassVar[tuple[str, ...]] = ()  # patterns of further stats to compare

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.name:
            cls.start_urls = [cls.at(path) for path in cls.paths]

    @classmethod
    def at(cls, path: str = "/", host: str = "") -> str:
        """Return the URL of a path on the spider's site or a host below it."""
        return address(cls.name, path, host)


def product(response, **more):
    """Return the item of a product page."""
    return {
        "url": response.url,
        "title": response.css("title::text").get(),
        "price": response.css(".price::text").get(),
        **more,
    }
