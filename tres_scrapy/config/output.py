"""Options of the output of a crawl: files, archives, metrics, and what it shows while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tres_scrapy.config.declaration import Group, setting
from tres_scrapy.config.parser import (
    flag,
    one_of,
    paths,
    port,
    prom_file,
    some_of,
    whole,
)


@dataclass(frozen=True)
class OutputOptions:
    """The files that a crawl writes, and where it publishes its metrics."""

    file: Path | None = setting(
        Path,
        None,
        "JSON lines file for the relevant pages; unset: output/TOPIC-TIME.jsonl",
        name="output",
        group=Group.EVERYDAY,
    )
    fields: tuple[str, ...] = setting(
        some_of("language", "html", "markdown", "date", "headings"),
        (),
        "further fields of each item: html, markdown, date, headings; its language is always there",
    )
    use: tuple[str, ...] = setting(
        some_of("search", "ai-input", "ai-train"),
        (),
        "what the output is for: pages that are reserved for it are kept out of it",
        see="rights.md",
    )
    tdmrep: bool = setting(
        flag,
        False,
        "read the file tdmrep.json of each host that gave a relevant page; always with `use`",
        see="rights.md",
    )
    csv: bool = setting(
        flag, False, "also write tables of the relevant pages and their domains (CSV)"
    )
    known: tuple[Path, ...] = setting(
        paths, (), "files of URLs or domains that are already known, separated by commas"
    )
    retract: bool = setting(
        flag,
        False,
        "with `keywords` or answers, send pipelines and feeds an item with `retracted` at the end "
        "for each page that is not relevant any more",
        see="formats.md",
    )
    warc: str = setting(
        one_of("none", "relevant", "all"), "none", "which responses to archive as WARC"
    )
    metrics_port: int | None = setting(
        whole(0, 65535),
        None,
        "port where Prometheus can read metrics; 0: any free port; unset: off",
    )
    metrics_host: str = setting(str, "127.0.0.1", "address on which `metrics_port` listens")
    metrics_file: Path | None = setting(
        prom_file,
        None,
        "file for the same metrics, for the textfile collector of node_exporter",
    )


@dataclass(frozen=True)
class WatchOptions:
    """What a crawl shows while it runs and writes down for later."""

    record: bool = setting(flag, True, "record the run in a file", see="report.md")
    texts: bool = setting(
        flag,
        True,
        "keep the texts of all pages fetched, relevant or not, in that file",
        see="run-file.md",
    )
    report: bool = setting(flag, True, "write an HTML report when the crawl ends; needs the record")
    dashboard: int | None = setting(
        port,
        None,
        "port of the live page on this machine; 1: any free port",
        see="live.md",
        group=Group.EVERYDAY,
    )
