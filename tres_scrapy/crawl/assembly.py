"""Creation of a crawl from its settings: pack, frontier and policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError, suggestion
from tres_scrapy.config.extra import require
from tres_scrapy.config.guest import offered
from tres_scrapy.config.typed import typed
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import kind_of, make_policy
from tres_scrapy.crawl.scout import Scout
from tres_scrapy.crawl.verdict import Verdicts
from tres_scrapy.frontier.admission import Scope
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.topic.pack import OWN_THRESHOLD, Pack
from tres_scrapy.topic.shipped import packs, topics
from tres_scrapy.url.message import TresError, plainly


def require_packs(config: Config) -> list[Path]:
    """Return the directories of the packs that judge pages, one for each topic.

    Some policies need another classifier. Raise ConfigError if there is no topic, no such policy,
    or no pack for them, or if the policy needs a package that is not installed.
    """
    if not config.topics:
        known = ", ".join(topics(config.models))
        raise ConfigError(f"no topic: add {typed('topic', 'NAME')}, one of {known}")
    if extra := kind_of(config.policy).extra:
        require(extra, f"policy {config.policy!r}")
    return [_require(config, topic) for topic in config.topics]


def require_pack(config: Config) -> Path:
    """Return the directory of the pack of the only topic, as `require_packs` does."""
    found = require_packs(config)
    if len(found) > 1:
        raise ConfigError(f"topic {config.topic!r}: give one topic here")
    return found[0]


def _require(config: Config, topic: str) -> Path:
    classifier = kind_of(config.policy).classifier
    found = packs(config.models)
    place = f"{'models' if config.models is None else config.models.name}/"
    if topic not in found:
        known = topics(config.models)
        hint = suggestion(topic.lower(), known)
        raise ConfigError(
            f"unknown topic {topic!r}{f'{hint} The' if hint else ': the'} packs in {place} are "
            f"{', '.join(known)}; train one with `tres train`"
        )
    name = f"{topic}-{classifier}" if classifier else topic
    if name not in found:
        raise ConfigError(
            f"policy {config.policy!r} needs the pack {name!r}, which is not in "
            f"{place}: train it with `tres train {name} --classifier {classifier}`"
        )
    return found[name]


def load_pack(config: Config) -> Pack:
    """Load the pack that judges pages; raise TresError if that fails."""
    return Pack.load(require_pack(config))


def threshold_of(judge: str | None, pack: Pack) -> float:
    """Return P(relevant) from which a page is relevant, by the user's own `judge` if there is one.

    Raise ConfigError if the pack names a function that judges pages and the user did not ask for
    it: code that comes with a pack runs only then.
    """
    if judge is None and pack.judged_by:
        raise ConfigError(
            f"topic pack {pack.name!r} is judged by code, {pack.judged_by}: if you trust it, "
            f"add {typed('judge', pack.judged_by)}"
        )
    return pack.threshold if judge in {None, pack.judged_by} else OWN_THRESHOLD


def make_crawl(config: Config, pack: Pack, web: Any = None) -> Crawl:
    """Return a new crawl; raise ConfigError if the policy lacks an input.

    `web` is the offline web, if that is open already.
    """
    prepare = kind_of(config.policy).prepare
    try:
        setup = learning_setup(config, pack)
        if prepare is not None:
            setup = prepare(setup, config, pack, web)
        ledger = DomainLedger(
            config.max_per_domain,
            prior=config.domain_prior,
            inlinks=config.domain_inlinks,
            limits=config.frontier,
        )
        store = SampleStore(ledger, Scope.of(config.scope))
        options: dict[str, Any] = {
            "trusted_seeds": config.trusted_seeds,
            "verdicts": Verdicts(
                threshold_of(config.judge, pack),
                language=pack.language,
                detect_copies=config.detect_copies,
            ),
            "scout": None if config.words.file is None else Scout(store, config.random_seed),
        }
        if config.shard.count:
            (make_shard_crawl,) = offered("shard_crawl")
            shard: Crawl = make_shard_crawl(config, store, setup, **options)
            return shard
        return Crawl(store, make_policy(config.policy, store, setup), config.pages, **options)
    except (OSError, TresError) as error:
        raise ConfigError(f"{typed('policy', config.policy)}: {plainly(error)}") from None


def learning_setup(config: Config, pack: Pack) -> PolicyInputs:
    """Return what learning depends on; the learner of a crawl in shards needs no more."""
    return PolicyInputs(
        seed=config.random_seed,
        tree=config.tree,
        agent=config.agent,
        learning=config.learning,
        links=config.links,
        link_prior=pack.link_prior,
    )
