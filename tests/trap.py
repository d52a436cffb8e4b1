"""The building blocks of traps and honest pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

Bytes = Iterator[bytes]

DISH = "/dish"
FOODS = re.findall(
    r"\w+",
    """
    onions garlic butter cream cheddar pepper tomatoes chicken basil thyme carrots celery potatoes
    mushrooms flour eggs sugar yeast olive oil lemon parsley spinach leeks beef bacon rice noodles
    ginger cinnamon vanilla honey walnuts almonds raisins apples pears cabbage lentils beans
    """,
)
STEPS = re.findall(
    r"\w+", "chop fry simmer roast bake whisk knead stir peel grate boil season serve"
)


class ResetError(Exception):
    """Raised by a trap to end its connection with a TCP reset."""


@dataclass(frozen=True)
class Trap:
    """A hostile host: what it answers to a path, and where links lead into it."""

    answer: Callable[[str], Bytes]
    entrances: tuple[str, ...]
    dish: str


TRAPS: dict[str, Trap] = {}


def trap(
    *paths: str, dish: str | None = None
) -> Callable[[Callable[[str], Bytes]], Callable[[str], Bytes]]:
    """Register a function as the trap of its name, with entrances at paths or URLs and a dish."""

    def enter(answer: Callable[[str], Bytes]) -> Callable[[str], Bytes]:
        name = answer.__name__.replace("_", "-")
        base = f"http://{name}.test"
        entrances = tuple(base + path if path[0] == "/" else path for path in paths or ("/",))
        TRAPS[name] = Trap(answer, entrances, dish or base + DISH)
        return answer

    return enter


def head(status: int = 200, **headers: object) -> bytes:
    given = {"Content_Type": "text/html; charset=utf-8"} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Said", *lines, "Connection: close", "", ""]).encode()


def page(html: str | bytes, **headers: object) -> bytes:
    body = html.encode() if isinstance(html, str) else html
    return head(Content_Length=len(body), **headers) + body


def redirect(location: str) -> bytes:
    return head(302, Location=location, Content_Length=0)


def link(*urls: str) -> str:
    return "".join(f'<p><a href="{url}">recipe</a></p>' for url in urls)


def recipe(name: str) -> str:
    """Return the text of a dish, which shares no three words in a row with many others."""
    draw = Random(name)
    steps = (f"{draw.choice(STEPS)} the {' and '.join(draw.sample(FOODS, 3))}" for _ in range(100))
    return f"A recipe for {name} soup: " + ", then ".join(steps)


def dish(name: str) -> str:
    return f"<html lang=en><title>{name} soup recipe</title><p>{recipe(name)}</p>"


def endlessly(chunk: bytes) -> Bytes:
    for _ in count():
        yield chunk
