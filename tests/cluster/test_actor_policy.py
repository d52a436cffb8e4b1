import numpy as np
import pytest
from judged import judged

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.actor_policy import AWAY, ActorPolicy
from tres_scrapy.cluster.learner import Learner
from tres_scrapy.cluster.router import LinkBatch, Router
from tres_scrapy.cluster.shard_crawl import ShardCrawl
from tres_scrapy.cluster.transition import Transition
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import FEATURES, LINK
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.links.code import CueGroup, RaggedArray, coded

SETUP = PolicyInputs(learning=LearningOptions(replay_capacity=50, batch_size=8))
GOOD, BAD = (coded(CueGroup.ANCHOR, [word])[0] for word in ("leek", "login"))
ROUTER = Router(0, 2)
OWN, OTHER = (
    [
        url
        for url in (f"http://d{number}.test/" for number in range(40))
        if ROUTER.owner(url) == shard
    ]
    for shard in (0, 1)
)


def crawl_of():
    store = SampleStore(DomainLedger())
    return ShardCrawl(store, ActorPolicy(store, SETUP), router=Router(0, 2))


def links_of(urls, codes):
    actions = np.full((len(urls), 3), 0.5, dtype=np.float32)
    cues = RaggedArray.of([[code] for code in codes])
    return Outlinks(list(urls), [""] * len(urls), actions, cues)


def begun(pages=12):
    """Return a crawl in which links with the code GOOD led to relevant pages."""
    crawl = crawl_of()
    crawl.add_seeds(links_of(OWN[:1], [GOOD]))
    row = crawl.next().row
    links = [f"{OWN[number % 10]}{number}" for number in range(4 * pages)]
    crawl.book(row, judged(True), links_of(links, [GOOD, BAD] * (2 * pages)))
    for _ in range(pages):
        fetch(crawl)
    return crawl


def fetch(crawl, links=()):
    row = crawl.next().row
    is_good = GOOD in crawl.store.cues.take(np.array([row])).codes
    return crawl.book(row, judged(bool(is_good)), links_of(links, [GOOD] * len(links)))


def transitions_of(crawl):
    return [Transition.unpacked(data) for data in crawl.policy.transitions(0, 1000)]


def update_by(crawl):
    learner = Learner(SETUP, 1)
    learner.learn(0, 0, crawl.policy.transitions(0, 1000))
    return learner.update_since()


def test_each_fetch_is_a_transition():
    crawl = begun()
    transitions = transitions_of(crawl)
    assert len(transitions) == crawl.policy.noted == crawl.pages
    assert [transition.target for transition in transitions].count(1.0) == crawl.relevant
    assert transitions[0].earned > 1, "the first relevant page of a domain"
    assert len(transitions[0].candidates) == 48 + 1


def test_pupil_knows_what_was_taught():
    crawl = begun()
    policy, update = crawl.policy, update_by(crawl)
    policy.take(update)
    x = np.random.default_rng(1).random((5, len(FEATURES)), dtype=np.float32)
    actor = ActorPolicy(SampleStore(DomainLedger()), SETUP)
    assert not np.array_equal(actor.value(x), policy.value(x))
    actor.take(update)
    assert np.array_equal(actor.value(x), policy.value(x))
    model = actor.link_learner.model
    assert model.weights[update.where].tolist() == update.weights.tolist()
    assert model.precisions[update.where].tolist() == update.precisions.tolist()
    assert policy.figures()["updates"] == update.updates > 0


def test_other_network_is_refused():
    update = update_by(begun())
    with pytest.raises(ValueError, match="another network"):
        crawl_of().policy.take(update._replace(parameters=update.parameters[1:]))


def test_pupil_learns_links_at_once():
    """Weights come later than links: until then it knows what it has seen itself."""
    policy = begun().policy
    weights = policy.link_learner.model.weights
    assert weights[GOOD] > 0.1
    assert weights[BAD] <= 0
    policy.take(update_by(begun()))
    assert weights[GOOD] > 0.1


def test_worth_is_q_of_best_links():
    crawl = crawl_of()
    assert crawl.policy.worth() == 1, "seeds come first"
    crawl = begun()
    policy, store = crawl.policy, crawl.store
    rows = store.pending_rows()
    values = np.sort(policy.value(store.features(rows)))
    assert values.mean() < policy.worth() <= values[-1]
    poor = links_of([f"{OWN[11]}{number}" for number in range(9)], [BAD] * 9)
    crawl.receive([LinkBatch(OTHER[0], store.path_to(0), poor)])
    assert policy.worth() > values.mean(), "links that are worth less change nothing"
    while any(GOOD in store.cues.take(np.array([row])).codes for row in store.pending_rows()):
        fetch(crawl)
    for _ in range(5):
        fetch(crawl)
    assert policy.worth() < values[-1], "it has seen the others"


def test_worth_is_of_links_that_can_be_fetched_now():
    """Links on a host that answers a request are not what the next page of a shard is worth."""
    crawl = begun()
    policy, store = crawl.policy, crawl.store
    rows = store.pending_rows()
    values, hosts = policy.value(store.features(rows)), store["host"].take(rows)
    best = hosts[values.argmax()]
    assert policy.worth(Availability([best])) < policy.worth()
    assert policy.worth(Availability(np.unique(hosts).tolist())) == policy.worth(), (
        "they are free soon"
    )


def test_links_to_other_shards_are_candidates():
    crawl = begun()
    crawl.policy.take(update_by(crawl))
    fetch(crawl, [f"{url}x" for url in OTHER[:9]] + [OWN[15]])
    transition = transitions_of(crawl)[-1]
    assert len(transition.candidates) == 1 + AWAY, "own outlinks and the best of the others"
    own, *away = transition.candidates[:, LINK].tolist()
    assert min(away) > 0.5
    assert np.allclose(away, own, atol=0.2)


def test_received_links_are_chosen_by_what_is_known():
    crawl = begun()
    while crawl.store.pending:
        if crawl.next() is None:
            break
    urls = [f"{OWN[12]}a", f"{OWN[13]}b"]
    crawl.receive([LinkBatch(OTHER[0], crawl.store.path_to(0), links_of(urls, [BAD, GOOD]))])
    assert crawl.store.url(crawl.next().row) == urls[1]
