"""A crawl put together from its settings: pack, frontier and policy."""

from __future__ import annotations

from tres_scrapy.config.config import Config, ConfigError
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.setup import Labels, Setup
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.policies.registry import POLICIES, make_policy
from tres_scrapy.topic.bilstm import BiLstm
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.similarity import Similarity
from tres_scrapy.webs.search import SEARCH
from tres_scrapy.webs.server import open_web


def load_pack(config: Config) -> Pack:
    """Load the pack that judges for the policy; raise PackError if it is no pack."""
    return Pack.load(config.packs()[config.pack])


def make_crawl(config: Config, pack: Pack, labels: Labels | None = None) -> Crawl:
    """Return a new crawl; ConfigError says what the policy lacks.

    `labels` are those of the offline web, where it is open already.
    """
    try:
        setup = Setup(
            seed=config.random_seed,
            tree=config.tree,
            agent=config.agent,
            learning=config.learning,
            keywords=(str(config.topic), *pack.given),
            search=config.search_url or (SEARCH if config.web else None),
            similarity=_similarity(config, pack),
            labels=_labels(config, labels),
        )
        ledger = DomainLedger(
            config.max_per_domain,
            prior=config.domain_prior,
            inlinks=config.domain_inlinks,
            limits=config.frontier,
        )
        store = SampleStore(ledger)
        policy = make_policy(config.policy, store, setup)
    except (OSError, ValueError) as error:
        raise ConfigError(f"TRES_POLICY={config.policy}: {error}") from None
    return Crawl(store, policy, config.pages)


def _similarity(config: Config, pack: Pack) -> Similarity | None:
    if POLICIES[config.policy].needs != "similarity":
        return None
    if not isinstance(pack.classifier, BiLstm):
        raise ValueError(
            f"it needs a pack with word vectors: train {pack.name!r} with --classifier widebilstm"
        )
    return Similarity(pack.classifier.vectors, pack.given)


def _labels(config: Config, labels: Labels | None) -> Labels | None:
    if POLICIES[config.policy].needs != "labels" or labels is not None:
        return labels
    if config.web is None:
        raise ValueError("it reads the labels of an offline web: add -a web=synthetic")
    return open_web(
        config.web, str(config.topic), config.web_seed, config.web_data, config.web_labels
    ).labels
