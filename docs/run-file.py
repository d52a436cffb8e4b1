"""Writes docs/run-file.md from the code: `python docs/run-file.py`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from tres_scrapy.run.run_file import SCHEMA

MEANINGS: Final[dict[str, tuple[str, dict[str, str]]]] = {  # of each table and its columns
    "meta": (
        "Facts of the crawl: topic, policy and others that a resumed crawl must have in common, "
        "spider, "
        "output, started, starts (when it was started and each time it was resumed), written "
        "(when the "
        "curve was last brought up to date), changed (the settings that are not the default), "
        "forgotten (JSON: URLs and sites that [tres forget](forget.md) took out). At "
        "the "
        "end also ended, reason, left (links without a page, by rule), gone (hosts given up) and "
        "labels "
        "(what an offline web counted). Times are seconds since 1970, except started",
        {"name": "", "value": ""},
    ),
    "setting": ("The settings used", {"name": "", "value": "as text"}),
    "page": (
        "Each booked fetch, in order",
        {
            "step": "order of booking",
            "row": "number of the link in the frontier",
            "parent": "that of the page it was found on; NULL for a seed",
            "time": "when it was booked, seconds since 1970",
            "url": "the URL chosen",
            "final_url": "the URL that answered if it differs",
            "domain": "registrable domain of the URL that answered",
            "title": "the first 300 characters",
            "anchor": "the first 300 characters of the text of the link",
            "kind": "`page`, `query`, `data` (an answer that the spider used), "
            "`forgotten`, or why there was "
            "no page",
            "relevant": "the verdict",
            "copy": "whether it has the text of an earlier page",
            "reward": "the reward given to the agent",
            "probability": "P(relevant)",
            "grade": "the part of the reward that the link model learns from, 0 to 1",
            "x": "the nine features when it was chosen, float32, little-endian; the last one is "
            "P(relevant) "
            "of the link",
            "chosen": "the [kind of choice](report.md#why-a-page-was-fetched)",
            "leaf": "its leaf",
            "splits": "how many splits the tree had: with `leaf` they give the rule",
            "q_value": "Q",
            "samples": "among how many links it was chosen",
            "leaves": "of how many leaves these were",
            "link": "the strongest parts for the link, then those against it: JSON `[[group, "
            "text, what it "
            "adds], …]`; NULL without a link model",
            "text": "the first 300 characters of the text of the page",
            "url_number": "number of the URL that answered, in the order of `batch`",
            "host": "number of its host, in the same order",
            "first": "row of its first new link",
            "outlinks": "how many new links it had; their rows follow each other",
            "sampled": "row of the link chosen next, by which the agent learns",
            "mark": "the fingerprint of its text",
        },
    ),
    "text": (
        "The text of each page fetched, relevant or not, as the judge read it; none with `texts=0`",
        {
            "row": "",
            "mark": "a hash of the text",
            "value": "NULL if an earlier page has the same text and so the same mark; else JSON, "
            "packed by zlib: title, main text, and the texts of its links, which are mostly menus; "
            "[`tres export`](#the-pages-of-a-run) unpacks it",
        },
    ),
    "score": (
        "P(relevant) of a page by topic, in a crawl with several; 0.5 is the threshold of each",
        {"row": "", "topic": "", "value": ""},
    ),
    "rights": (
        "What was said about the [use](rights.md) of a page",
        {"row": "", "value": "JSON `[[signal, value, where, when], …]`"},
    ),
    "remark": ("Why the scope keeps a page from being relevant", {"row": "", "text": ""}),
    "rivals": (
        "The best other links of ten leaves at a choice, of the last 10,000 steps",
        {"step": "", "value": "JSON `[[leaf, Q, URL, anchor], …]`"},
    ),
    "curve": (
        "The progress of the crawl: a point for each two-hundredth of the pages",
        {
            "step": "",
            "time": "",
            "pages": "",
            "relevant": "",
            "domains": "relevant ones",
            "frontier": "waiting links",
            "leaves": "",
            "rate": "pages a second since the last point",
            "loss": "of the agent",
        },
    ),
    "health": (
        "Every ten seconds or more, and at the end",
        {
            "time": "",
            "memory": "bytes",
            "answers": "JSON: how often each status code and error was counted since the last "
            "start",
        },
    ),
    "split": (
        "The splits of the tree in their order",
        {
            "number": "from 0",
            "step": "by which it existed",
            "leaf": "keeps its number for x < threshold; the other side of split *i* is leaf *i* "
            "+ 1",
            "feature": "from 0",
            "threshold": "",
            "reduction": "of variance",
        },
    ),
    "snapshot": (
        "What was learned, every ten seconds or more, and at the end",
        {
            "name": "",
            "step": "",
            "value": "JSON. `tree`: the number of splits, and for each leaf its fetches, the sum "
            "of their "
            "rewards, the waiting links. `dependence`: by feature (value, mean Q). `links`: by "
            "group, the "
            "strongest weights of the link model as `[text, weight, fetched, relevant]`",
        },
    ),
    "name": (
        "The texts of the codes that the link model knows, in JOBDIR",
        {"code": "group and code of a text", "text": ""},
    ),
    "batch": (
        "In JOBDIR: links that were new in the frontier when it was written, with URLs and hosts",
        {
            "number": "",
            "samples": "records of `frontier/store.py`, SAVED",
            "anchors": "JSON",
            "urls": "JSON; URLs are numbered in the order of all batches",
            "hosts": "JSON; numbered in the same way",
            "cues": "codes of what the links say, uint32",
            "counts": "how many of them each link has, uint16",
        },
    ),
    "state": (
        "In JOBDIR: both Q-networks, Adam's moments, the random generator, the counters of the "
        "stats, links that a "
        "topic from keywords described again; every 1,000 fetches the link model",
        {"name": "", "value": ""},
    ),
    "lease": (
        "What is being fetched, in JOBDIR",
        {"row": "", "leaf": "by which it was chosen", "q_value": ""},
    ),
    "redirect": (
        "The URLs that a fetch was redirected to, until its page is booked, in JOBDIR",
        {"number": "", "row": "", "url": "its number"},
    ),
    "item": (
        "Items that the pipelines may not have processed yet, in JOBDIR",
        {"row": "of the page", "place": "on its page", "value": "JSON"},
    ),
    "request": (
        "Requests of your own spider that wait in the frontier, in JOBDIR",
        {"row": "", "value": "JSON"},
    ),
    "guest": (
        "In a [crawl in shards](cluster.md): a page of another shard on which a link was found",
        {"row": "", "url": ""},
    ),
    "guest_path": (
        "In a shard: the path to such a page",
        {"row": "", "reward": "of the page", "length": "", "relevant": "", "distance": ""},
    ),
    "outbox": (
        "In a shard: links on their way to other shards",
        {"shard": "", "number": "", "value": "the packed links"},
    ),
    "peer": (
        "In a shard: the numbers of the last batches to and from another shard",
        {"shard": "", "sent": "", "received": ""},
    ),
}


def page() -> str:
    """Return the page; KeyError if the file has a table or column that is not described here."""
    template = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA.tables)
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = [name for (name,) in found]
        parts = [_described(connection, name) for name in sorted(tables, key=[*MEANINGS].index)]
    template = template.replace("{VERSION}", str(SCHEMA.version))
    return template.replace("{TABLES}", "\n\n".join(parts))


def _described(connection: sqlite3.Connection, table: str) -> str:
    meaning, columns = MEANINGS[table]
    lines = [
        f"### `{table}`",
        "",
        f"{meaning}.",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
    ]
    for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
        lines.append(f"| `{name}` | {kind} | {columns[name]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
