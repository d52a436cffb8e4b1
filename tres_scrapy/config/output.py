"""What leaves a crawl: files, archives and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, one_of, packed_warc, paths, textfile, whole


@dataclass(frozen=True)
class OutputOptions:
    """Which files a crawl writes, and where its metrics can be asked for."""

    file: Path | None = setting(Path, None, "JSON lines file of relevant pages", name="output")
    csv: bool = setting(
        flag, False, "write tables of relevant pages and of their domains beside the JSON lines"
    )
    known: tuple[Path, ...] = setting(
        paths, (), "files, comma between two, of URLs or domains that are not new"
    )
    warc: str = setting(
        one_of("none", "relevant", "all"), "none", "which fetches are archived as WARC"
    )
    warc_file: Path | None = setting(
        packed_warc, None, "that archive; unset: beside the JSON lines, as .warc.gz"
    )
    metrics_port: int | None = setting(
        whole(0, 65535), None, "where Prometheus may ask for metrics, 0: any that is free"
    )
    metrics_host: str = setting(str, "127.0.0.1", "address of this machine that it may ask at")
    metrics_file: Path | None = setting(
        textfile, None, "the same metrics as a file for the textfile collector of node_exporter"
    )
