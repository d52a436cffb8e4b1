"""The charts of errors and of memory over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tres_scrapy.report.chart import (
    BLUE,
    GREEN,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    PURPLE,
    Chart,
    layout,
    line,
)
from tres_scrapy.report.record_row import HealthPoint

OK: Final = "200"
NAMED: Final = 5  # kinds of answers with an area of their own
COLOURS: Final = (ORANGE, PURPLE, BLUE, GREEN, LIGHT_BLUE, GREY)
MIB: Final = 1024**2


def errors_chart(health: Sequence[HealthPoint], starts: Sequence[float]) -> Chart | None:
    """Return the shares of answers other than 200, and of errors, over time."""
    parts = list(_differences(health, starts))
    total = sum((found for _, found in parts), Counter[str]())
    kinds = [kind for kind, _ in total.most_common() if kind != OK]
    if not kinds:
        return None
    minutes = [round((time - health[0].time) / 60, 3) for time, _ in parts]
    named = {kind: [kind] for kind in kinds[:NAMED]} | {"others": kinds[NAMED:]}
    shares = {
        name: [
            round(100 * sum(found[kind] for kind in inside) / max(1, found.total()), 3)
            for _, found in parts
        ]
        for name, inside in named.items()
        if inside
    }
    return Chart(
        "errors",
        "Status codes and errors",
        f"Answers other than {OK}, by status code, and errors, by their name in Scrapy. "
        "Requests for robots.txt and repeated requests count too.",
        [
            line(minutes, values, name, colour, 1) | {"stackgroup": "all"}
            for (name, values), colour in zip(shares.items(), COLOURS, strict=False)
        ],
        layout("minutes", "of the requests, %", yaxis={"rangemode": "tozero"}),
    )


def memory_chart(health: Sequence[HealthPoint], starts: Sequence[float]) -> Chart | None:
    """Return the memory of the crawl over time, with a gap before each later start."""
    minutes, values = list[float](), list[float | None]()
    for before, now in zip([None, *health], health, strict=False):
        at = round((now.time - health[0].time) / 60, 3)
        if before is not None and _restarted(before, now, starts):
            minutes.append(at)
            values.append(None)
        minutes.append(at)
        values.append(None if now.memory is None else round(now.memory / MIB, 1))
    if sum(value is not None for value in values) < 2:
        return None
    return Chart(
        "memory",
        "Memory",
        "MiB of the crawl with its other processes: the judge, browsers, an offline web. A line "
        "that never stops rising will fill the machine.",
        [line(minutes, values, "MiB", GREY)],
        layout("minutes", "MiB", yaxis={"rangemode": "tozero"}, showlegend=False),
    )


def _differences(
    health: Sequence[HealthPoint], starts: Sequence[float]
) -> Iterator[tuple[float, Counter[str]]]:
    """Yield the answers since the note before; the counts of a resumed crawl begin at 0 again."""
    before = None
    for now in health:
        is_first = before is None or _restarted(before, now, starts)
        old = Counter[str]() if before is None or is_first else Counter(before.answers)
        yield now.time, Counter(now.answers) - old
        before = now


def _restarted(before: HealthPoint, now: HealthPoint, starts: Sequence[float]) -> bool:
    return any(before.time < start <= now.time for start in starts)
