"""List the files of tres_scrapy/ that a fetched page and a choice pass in a running crawl.

    python benchmarks/way.py [--checkout PATH] [--first 40] [--count 9] [-- -a topic=food ...]

Crawls an offline web with a JOBDIR, a record and one request at a time. Profiles every call of a
Python function in the crawler's process, with its threads, and in the judge's process. From page
`--first` on, `--count` pages with an item are followed:

- a page begins when its response reaches the reward middleware and ends when its item has passed
  the pipelines and the feeds. All calls meanwhile count, in every process.
- a choice is one call of the scheduler's `next_request` that returns a request.

A file is passed if one of its functions is called; importing it and the methods that Python
generates (of a NamedTuple, of a dataclass) do not count. Prints both lists for the page and the
choice with the median number of files. `--checkout` measures the code of another folder.
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import mmap
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = "TRES_WAY"  # environment variable: where the processes of a crawl meet
PACKAGE = "tres_scrapy"
PAGE, CHOICE = 0, 1  # places in the switch; each holds the number of what is followed, or 0
MIDDLEWARE = f"{PACKAGE}.middlewares.reward:RewardMiddleware"
SERVER = "cli.main"  # `tres web`: the offline web is not part of the crawler
SCHEDULER = f"{PACKAGE}.scheduler:TreeFrontierScheduler"
CRAWL = ("-a", "topic=food", "-a", "web=synthetic", "-a", "random_seed=3")
ONE = ("-s", "CONCURRENT_REQUESTS=1", "-s", "LOG_LEVEL=ERROR")
START = "import sys; sys.path.append({folder!r}); import way; way.Tracer().follow()"

Files = dict[int, set[tuple[str, str]]]  # by page or choice, processes with files


class Tracer:
    """Writes each file that is passed while the switch, shared by all processes, is on."""

    def __init__(self) -> None:
        folder = Path(os.environ[FOLDER])
        with (folder / "switch").open("r+b") as file:
            self.switch = memoryview(mmap.mmap(file.fileno(), 8)).cast("I")
        self._log = (folder / "log").open("a", buffering=1)
        self._seen: set[tuple[int, int, str]] = set()
        self._main = threading.get_ident()
        self._process = " ".join(sys.orig_argv[1:3]).replace("-m ", "")

    def follow(self, process: str | None = None) -> None:
        """Profile all threads of this process from now on."""
        self._process = process or self._process
        if self._process.endswith(SERVER):
            return
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        atexit.register(sys.setprofile, None)

    def _note(self, frame: Any, event: str, argument: object) -> None:
        if event != "call":
            return
        kind, number = CHOICE, self.switch[CHOICE]
        if not number or threading.get_ident() != self._main:
            kind, number = PAGE, self.switch[PAGE]
        code = frame.f_code
        if not number or code.co_name == "<module>":
            return
        path = (kind, number, code.co_filename)
        if path not in self._seen:
            self._seen.add(path)
            self._log.write(f"{kind}\t{number}\t{self._process}\t{code.co_filename}\n")


class Follower:
    """Turns the switch on for some pages and choices of a crawl."""

    def __init__(self, switch: memoryview, first: int, count: int) -> None:
        self._switch = switch
        self._first = first
        self._count = count
        self._responses = 0
        self._calls = 0
        self.pages: list[int] = []  # the numbers of what was followed to its end
        self.choices: list[int] = []

    def patch(self, middleware: type[Any], scheduler: type[Any]) -> None:
        """Follow what passes the two classes."""
        judge, choose = middleware.process_spider_output, scheduler.next_request

        async def process_spider_output(
            this: object, response: object, result: AsyncIterator[Any]
        ) -> AsyncIterator[Any]:
            self._responses += 1
            is_followed = self._responses >= self._first and len(self.pages) < self._count
            self._switch[PAGE] = self._responses if is_followed else 0
            async for output in judge(this, response, result):
                yield output

        def next_request(this: object) -> Any:
            self._calls += 1
            is_followed = self._responses >= self._first and len(self.choices) < self._count
            self._switch[CHOICE] = self._calls if is_followed else 0
            try:
                request = choose(this)
            finally:
                self._switch[CHOICE] = 0
            if is_followed and request is not None:
                self.choices.append(self._calls)
            return request

        middleware.process_spider_output = process_spider_output
        scheduler.next_request = next_request

    def end_page(self) -> None:
        """End the page whose item has been scraped."""
        if self._switch[PAGE]:
            self.pages.append(self._switch[PAGE])
            self._switch[PAGE] = 0


def crawl(follower: Follower, arguments: Sequence[str]) -> None:
    """Run a crawl of the current project in this process."""
    # imported from the checkout's environment; pydispatch has no types
    from pydispatch import dispatcher  # type: ignore[import-untyped]  # noqa: PLC0415
    from scrapy import signals  # noqa: PLC0415
    from scrapy.cmdline import execute  # noqa: PLC0415
    from scrapy.utils.asyncio import call_later  # noqa: PLC0415

    def end_page() -> None:
        call_later(0, follower.end_page)  # once the other listeners, such as feeds, have run

    dispatcher.connect(end_page, signals.item_scraped, weak=False)
    try:
        execute(["scrapy", "crawl", "tres", *arguments])
    except SystemExit as error:
        if error.code:
            raise


def files_of(folder: Path, checkout: Path, kind: int) -> Files:
    """Return the files of the package that the log names, by number."""
    package = checkout / PACKAGE
    files: Files = defaultdict(set)
    for line in (folder / "log").read_text().splitlines():
        of, number, process, name = line.split("\t")
        if int(of) == kind and Path(name).is_relative_to(package):
            files[int(number)].add((process, str(Path(name).relative_to(package))))
    return files


def print_median(what: str, files: Files, numbers: Sequence[int]) -> None:
    """Print the files of the page or choice with the median count, by process and room."""
    if not numbers:
        raise SystemExit(f"No {what} was followed: crawl more pages, or begin at an earlier one")
    counts = {number: len({name for _, name in files[number]}) for number in numbers}
    chosen = sorted(numbers, key=counts.__getitem__)[len(numbers) // 2]
    lowest, highest = min(counts.values()), max(counts.values())
    print(f"{what}: {counts[chosen]} files (of {len(numbers)}: {lowest} to {highest})")
    for process in sorted({process for process, _ in files[chosen]}):
        rooms = defaultdict(list)
        for of, name in files[chosen]:
            if of == process:
                room, _, file = name.rpartition("/")
                rooms[f"{room}/"].append(file)
        print(f"  {process}: {sum(map(len, rooms.values()))} files")
        for room, names in sorted(rooms.items()):
            print(f"    {room} {len(names)}: {' '.join(sorted(names))}")


def main() -> None:
    """Run the crawl and print both lists."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--first", type=int, default=40, help="the first page to follow")
    parser.add_argument("--count", type=int, default=9, help="how many pages and choices")
    parser.add_argument("--middleware", default=MIDDLEWARE, help="module:class that gets responses")
    parser.add_argument("--scheduler", default=SCHEDULER, help="module:class with next_request")
    parser.add_argument("crawl", nargs="*", default=CRAWL, help="arguments of the crawl")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    sys.path.insert(0, str(checkout))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "switch").write_bytes(bytes(8))
        own = str(Path(__file__).resolve().parent)
        # Python imports this file when a process starts
        (folder / "sitecustomize.py").write_text(START.format(folder=own))
        sys.path.insert(0, name)  # the crawler hands its own path down to the judge
        os.environ[FOLDER] = name
        os.chdir(checkout)
        tracer = Tracer()
        follower = Follower(tracer.switch, options.first, options.count)
        follower.patch(_class_of(options.middleware), _class_of(options.scheduler))
        tracer.follow("crawler")
        pages = ("-a", f"pages={options.first + 10 * options.count}")
        places = ("-a", f"output={name}/items.jsonl", "-s", f"JOBDIR={name}/job")
        crawl(follower, [*options.crawl, *ONE, *pages, *places])
        sys.setprofile(None)
        print_median("page", files_of(folder, checkout, PAGE), follower.pages)
        print_median("choice", files_of(folder, checkout, CHOICE), follower.choices)


def _class_of(name: str) -> type[Any]:
    module, _, attribute = name.partition(":")
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


if __name__ == "__main__":
    main()
