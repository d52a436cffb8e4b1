"""Options of a topic that starts from keywords, without a topic pack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tres_scrapy.config.declaration import Group, setting


@dataclass(frozen=True)
class WordOptions:
    """The keywords of a new topic, and the file of answers about its pages."""

    file: Path | None = setting(
        Path,
        None,
        "file of keywords, one a line: the crawl makes a new topic from them and learns it",
        name="keywords",
        group=Group.EVERYDAY,
    )
    answers: Path | None = setting(
        Path,
        None,
        "with `keywords`, file of answers, lines of `yes URL` or `no URL`, read when it changes, "
        "beside answers.txt in the topic's folder",
        group=Group.EVERYDAY,
    )

    @property
    def topic(self) -> str | None:
        """The name of the new topic unless another is given: that of the file."""
        return None if self.file is None else re.sub(r"[^\w-]+", "-", self.file.stem)
