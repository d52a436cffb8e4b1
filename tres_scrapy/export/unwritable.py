"""What happens when a file of the output can no longer be written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tres_scrapy.extensions.job import Job
from tres_scrapy.url.message import plainly

OUTPUT_FAILED: Final = "output_failed"

logger = logging.getLogger(__name__)


def end_crawl(
    path: Path | str, error: OSError, job: Job | None, stop: Callable[[str], None]
) -> None:
    """Stop the crawl with one line; a resumed job exports the items that are missing."""
    if job is not None:
        job.hold_items()
    logger.error("%s cannot be written (%s): the crawl stops", path, plainly(error, named=True))
    stop(OUTPUT_FAILED)
