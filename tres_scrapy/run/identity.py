"""What a crawl must have in common with the one that it resumes."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

from tres_scrapy.config.config import Config
from tres_scrapy.config.guest import offered
from tres_scrapy.crawl.assembly import require_packs
from tres_scrapy.run.journal import Journal
from tres_scrapy.topic.shipped import TOPIC_FILE


def now() -> str:
    """Return the current UTC time, as used in file names."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")


def journal_kind(config: Config) -> type[Journal]:
    """Return the class of the journal of a crawl; a shard of a crawl has its own."""
    kinds: list[type[Journal]] = offered("shard_journal") if config.shard.count else [Journal]
    return kinds[0]


def identity_of(config: Config) -> dict[str, str]:
    """Return what a crawl must have in common with the crawl that it resumes."""
    shard, web = config.shard, config.web
    return {
        "topic": str(config.topic),
        "policy": config.policy,
        **_judge_of(config),
        "shard": f"{shard.number} of {shard.count}" if shard.count else "",
        "web": "the real one" if web.kind is None else f"{web.kind} {web.seed}",
    }


def _judge_of(config: Config) -> dict[str, str]:
    """Return what judges the pages of a crawl, by the word for it; "" for the other word."""
    if config.words.file is not None:
        text = config.words.file.read_bytes()
        return {"keywords": f"{len(text.splitlines())} lines, {_hash(text)}", "pack": ""}
    judge = f" judged by {config.judge}" if config.judge else ""
    found = [(place / TOPIC_FILE).read_bytes() for place in require_packs(config)]
    return {"keywords": "", "pack": "+".join(map(_hash, found)) + judge}


def _hash(text: bytes) -> str:
    return sha256(text).hexdigest()[:12]
