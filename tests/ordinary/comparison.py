"""Crawl the ordinary spiders with and without the add-on, and list what differs.

    python tests/ordinary/comparison.py [plain] [NAME ...]

With `plain`, both crawls are without it: a spider that differs then is no measure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ordinary_spiders import SPIDERS
from small_web import Asked, SmallWeb, small_webs

USUAL = {"Accept", "Accept-Encoding", "Accept-Language", "Content-Length", "Host", "User-Agent"}
RUN = Path(__file__).with_name("ordinary_run.py")


@dataclass
class Crawled:
    """All that is compared of the crawls of one spider."""

    runs: list[dict[str, Any]]
    files: dict[str, str]
    requests: list[str]  # as the web received them


def crawl_both(
    python: str | Path, names: Sequence[str] = (), modes: tuple[str, str] = ("plain", "addon")
) -> tuple[dict[str, Crawled], dict[str, Crawled]]:
    """Run spiders in two modes, without and with the add-on; return both by name."""
    chosen = list(names or SPIDERS)
    with small_webs() as (first, second), TemporaryDirectory() as folder:
        parts = [(modes[0], first, chosen)]
        parts += [(modes[1], second, part) for part in (chosen[::2], chosen[1::2]) if part]
        outputs = [Path(folder) / f"{i}.json" for i in range(len(parts))]
        processes = [
            _started(python, mode, web, output, part)
            for (mode, web, part), output in zip(parts, outputs, strict=True)
        ]
        for process in processes:
            _, said = process.communicate(timeout=900)
            assert process.returncode == 0, said
        found: tuple[dict[str, Crawled], dict[str, Crawled]] = ({}, {})
        for (_, web, _), output in zip(parts, outputs, strict=True):
            for name, told in json.loads(output.read_text(encoding="utf-8")).items():
                requests = list(map(_shown, web.log[name]))
                found[web is second][name] = Crawled(told["runs"], told["files"], requests)
        return found


def _started(
    python: str | Path, mode: str, web: SmallWeb, output: Path, names: Sequence[str]
) -> subprocess.Popen[str]:
    environment = {**os.environ, "ORDINARY_PORT": str(web.port)}
    command = [python, RUN, mode, web.address, output, *names]
    return subprocess.Popen(
        list(map(str, command)), env=environment, stderr=subprocess.PIPE, text=True
    )


def _shown(asked: Asked) -> str:
    rest = sorted(asked.headers.items(), key=lambda header: (header[0] in USUAL, header))
    headers = " ".join(f"{name}={value}" for name, value in rest)
    return f"{asked.method} {asked.host}{asked.target} {asked.body.decode('latin-1')!r} {headers}"


def differences(plain: Crawled, ours: Crawled, *, ordered: bool = False) -> dict[str, list[str]]:
    """Return what differs, by kind: each difference in one line."""
    found: dict[str, list[str]] = {}
    for number, (before, after) in enumerate(zip(plain.runs, ours.runs, strict=True), start=1):
        run = f"run {number}: " if len(plain.runs) > 1 else ""
        for name in ("raised", "failed", "late"):
            if before[name] != after[name]:
                found.setdefault(name, []).append(f"{run}{before[name]} -> {after[name]}")
        items = [list(map(_text, each["items"])) for each in (before, after)]
        found |= {"items": lines} if (lines := _compared(*items, ordered, run)) else {}
        for name in sorted(before["stats"].keys() | after["stats"].keys()):
            values = before["stats"].get(name), after["stats"].get(name)
            if values[0] != values[1]:
                found.setdefault(name, []).append(f"{run}{values[0]} -> {values[1]}")
        if len(after["errors"]) != len(before["errors"]):
            found.setdefault("log_count/ERROR", []).extend(after["errors"][:2])
    if lines := _compared(plain.requests, ours.requests, ordered, ""):
        found["requests"] = lines
    files = [
        [f"{name}: {line}" for name, text in each.files.items() for line in text.splitlines()]
        for each in (plain, ours)
    ]
    if lines := _compared(*files, False, ""):
        found["files"] = lines
    return found


def _text(item: object) -> str:
    return json.dumps(item, sort_keys=True)


def _compared(before: Iterable[str], after: Iterable[str], ordered: bool, run: str) -> list[str]:
    before, after = list(before), list(after)
    missing, more = Counter(before) - Counter(after), Counter(after) - Counter(before)
    lines = [f"{run}missing {times} x {text[:240]}" for text, times in missing.items()]
    lines += [f"{run}added {times} x {text[:240]}" for text, times in more.items()]
    if not lines and ordered and before != after:
        place = next(
            i for i, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1
        )
        lines = [f"{run}another order from {place}: {before[place][:90]} -> {after[place][:90]}"]
    return lines


def report(names: Sequence[str]) -> None:
    """Print what differs; after the word `plain`, between two runs without the add-on."""
    second = "plain" if names[:1] == ["plain"] else "addon"
    names = names[1:] if second == "plain" else names
    sys.path.insert(0, str(RUN.parents[1]))
    from preloaded import Interpreter  # noqa: PLC0415 - of the folder above

    with TemporaryDirectory() as folder:
        interpreter = Interpreter(Path(folder))
        try:
            plain, ours = crawl_both(interpreter.path, names, ("plain", second))
        finally:
            interpreter.close()
    same = 0
    for name, before in plain.items():
        found = differences(before, ours[name], ordered=SPIDERS[name].ordered)
        seconds = [sum(run["seconds"] for run in each.runs) for each in (before, ours[name])]
        same += not found
        print(f"{name}: {'differs' if found else 'same'} ({seconds[0]:.1f} s, {seconds[1]:.1f} s)")
        for kind, lines in found.items():
            for line in lines[:4]:
                print(f"    {kind}: {line}")
    print(f"{same} of {len(plain)} spiders do the same")


if __name__ == "__main__":
    report(sys.argv[1:])
