"""What an agent's answers bring: crawls through `tres mcp`, with answers and without.

    python benchmarks/agents.py --data FOLDER [--topics course food] [--pages 150]

The folder holds sites.warc.gz, sites-TOPIC.txt and sites-seeds.txt. A client of the official SDK
starts a crawl from ten words through `tres mcp`, with the recorded web. The agent reads the text of
each page that the crawl asks about and says yes where at least LEAST words of its list occur; it
knows no label. The other client answers nothing. Both export at the end. Prints and writes
results/agents.md: how many pages of the output are relevant by the labels of the web.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

RESULTS = Path(__file__).parent / "results"
SEED = "http://directory.test/"
KEYWORDS = {
    "course": "course,lecture,homework,syllabus,students,class,exam,assignment,schedule,instructor",
    "hardware": "computer,processor,motherboard,memory,graphics card,hardware,cpu,gpu,keyboard",
    "sports": "sport,team,football,basketball,match,league,player,coach,season,tournament",
    "food": "food,recipe,cooking,dish,ingredients,kitchen,soup,salad,bake,meal",
}
KNOWN = {  # what the agent knows of a topic: its page must have LEAST of these words
    "course": "syllabus homework lecture lectures assignment assignments instructor exam exams "
    "midterm grading textbook prerequisites semester readings quiz lab project office hours",
    "hardware": "motherboard cpu gpu ram ssd pcie usb bios processor soldering firmware chipset "
    "voltage pcb oscilloscope keyboard monitor overclock arduino fpga circuit schematic",
    "sports": "league season playoffs coach tournament championship match goals striker team "
    "quarterback innings batting scored players football basketball hockey cricket",
    "food": "tablespoon teaspoon cup cups tbsp tsp oven bake simmer chopped garlic onion butter "
    "flour salt pepper ingredients recipe minutes stir",
}
LEAST = 4
BUDGET = 60  # answers of a crawl


class Outcome(NamedTuple):
    """The output of a crawl by the labels, and the longest reply in bytes."""

    topic: str
    is_answering: bool
    answers: int
    kept: int
    right: int
    longest: int


class Agent:
    """A scripted client; `call` returns the parsed reply of a tool."""

    def __init__(self, session: ClientSession, topic: str) -> None:
        self.session, self.words = session, set(KNOWN[topic].split())
        self.longest = self.answers = 0

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; raise RuntimeError with its message if it fails."""
        result = await self.session.call_tool(tool, arguments)
        text = str(getattr(result.content[0], "text", ""))
        if result.isError:
            raise RuntimeError(text)
        self.longest = max(self.longest, len(text.encode()))
        return dict(json.loads(text))

    async def answer(self) -> None:
        """Answer the questions of the crawl from the texts of the pages."""
        try:
            asked = (await self.call("questions", name="run", count=5)).get("results", [])
        except RuntimeError:
            return  # no question yet
        told: dict[str, list[str]] = {"yes": [], "no": []}
        for each in asked[: BUDGET - self.answers]:
            page = await self.call("page_text", name="run", url=each["url"])
            found = self.words & set(re.findall(r"[a-z]+", page["text_data"].lower()))
            told["yes" if len(found) >= LEAST else "no"].append(each["url"])
        if any(told.values()):
            await self.call("answer", name="run", **told)
            self.answers += sum(map(len, told.values()))


async def crawl(data: Path, topic: str, pages: int, *, is_answering: bool) -> Outcome:
    """Run one crawl as an agent does."""
    with TemporaryDirectory() as folder:
        web = {"web": "recorded", "web_data": data / "sites.warc.gz", "random_seed": 3}
        given = [part for name, value in web.items() for part in ("-a", f"{name}={value}")]
        words = ["-m", "tres_scrapy.cli.main", "mcp", folder, *given]
        server = StdioServerParameters(command=sys.executable, args=words)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            agent = Agent(session, topic)
            keywords = KEYWORDS[topic].split(",")
            await agent.call(
                "start_crawl", name="run", seeds=[SEED], keywords=keywords, pages=pages
            )
            while True:
                await asyncio.sleep(0.5)
                crawls = await agent.call("list_crawls")
                is_running = crawls["results"][0]["is_running"]
                if is_answering and agent.answers < BUDGET:
                    await agent.answer()
                if not is_running:
                    break
            exported = await agent.call("export", name="run")
            file = Path(exported["file"])
            lines = file.read_text(encoding="utf-8").splitlines()
        urls = {json.loads(line)["url"] for line in lines}
    labels = set((data / f"sites-{topic}.txt").read_text(encoding="utf-8").split())
    return Outcome(topic, is_answering, agent.answers, len(urls), len(urls & labels), agent.longest)


def report(outcomes: list[Outcome], pages: int) -> list[str]:
    """Return the lines of the report."""
    lines = [
        "# Answers of an agent",
        "",
        f"Made by `python benchmarks/agents.py`: crawls of {pages} pages from ten words.",
        "",
        "| topic | agent | answers | pages in the output | relevant | precision |",
        "|---|---|---|---|---|---|",
    ]
    for each in outcomes:
        who = "answers" if each.is_answering else "silent"
        share = f"{100 * each.right / max(1, each.kept):.0f} %"
        lines.append(
            f"| {each.topic} | {who} | {each.answers} | {each.kept} | {each.right} | {share} |"
        )
    longest = max(each.longest for each in outcomes)
    return [*lines, "", f"The longest reply had {longest:,} bytes."]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--topics", nargs="+", choices=KEYWORDS, default=["course", "food"])
    parser.add_argument("--pages", type=int, default=150)
    options = parser.parse_args()
    outcomes = [
        asyncio.run(crawl(options.data, topic, options.pages, is_answering=is_answering))
        for topic in options.topics
        for is_answering in (False, True)
    ]
    lines = report(outcomes, options.pages)
    text = "\n".join([*lines, ""])
    print(text)
    (RESULTS / "agents.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
