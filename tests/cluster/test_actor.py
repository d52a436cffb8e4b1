"""What the processes of a crawl do when others are away, or a file is missing or damaged."""

from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

pytest.importorskip("ray", reason="needs the extra cluster")
from judged import judged
from ray.exceptions import RayActorError

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster import actor, shard_actor
from tres_scrapy.cluster.actor import COORDINATOR, CoordinatorActor
from tres_scrapy.cluster.actor_policy import ActorPolicy
from tres_scrapy.cluster.call import Calls
from tres_scrapy.cluster.coordinator import FAILED
from tres_scrapy.cluster.learner import Learner
from tres_scrapy.cluster.learner_actor import LearnerActor
from tres_scrapy.cluster.plan import RUN, Plan
from tres_scrapy.cluster.shard import Shard
from tres_scrapy.cluster.shard_actor import ShardActor
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.url.message import TresError

SETUP = PolicyInputs()
PAGES = 30


@pytest.fixture
def plan(tmp_path):
    plan = Plan(tmp_path / "job", 2, 10, {}, {}, {}, run="today")
    plan.share()
    return plan


@pytest.fixture
def crawl():
    """Return a crawl of a shard that has fetched some pages."""
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, ActorPolicy(store, SETUP))
    urls = [f"http://{number}.test/" for number in range(PAGES)]
    crawl.add_seeds(Outlinks(urls, urls, np.zeros((PAGES, 3), dtype=np.float32)))
    for number, url in enumerate(urls):
        links = Outlinks([f"{url}link"], ["link"], np.full((1, 3), 0.5, dtype=np.float32))
        crawl.book(crawl.next().row, judged(number % 3 == 0), links)
    return crawl


@pytest.fixture
def shard(crawl, monkeypatch):
    """Return a shard of the crawl; `learner` is what it calls."""
    learner = SimpleNamespace(crawl=crawl, job=SimpleNamespace(failed=False))
    settings = Settings({"CONCURRENT_REQUESTS": 16})
    crawler = SimpleNamespace(settings=settings, signals=SignalManager())
    crawler.get_extension = lambda kind: learner
    shard = Shard(crawler, SimpleNamespace(), 0, 2)

    def learn(*arguments, asks):
        answer = Future()
        answer.set_result(shard.learner.learn(0, *arguments, asks))
        return answer

    shard._wire.learn = learn
    monkeypatch.setattr(Calls, "_in_reactor", Calls.end)
    return shard


@pytest.mark.parametrize("damage", [lambda state: b"", lambda state: state[:-100], bytes.upper])
def test_damaged_learner_learns_all_again(plan, crawl, shard, caplog, damage):
    shard.learner = LearnerActor(plan, SETUP)
    shard._send_transitions()
    shard.learner.checkpoint()
    state = plan.job / "learner" / "state.safetensors"
    assert Learner(SETUP, 2).restore(state.read_bytes()) is None
    state.write_bytes(damage(state.read_bytes()))
    weights = crawl.policy._learner._agent.online.parameters.copy()
    shard.learner = LearnerActor(plan, SETUP)
    assert "state.safetensors is left out" in caplog.text
    shard._asked = 0.0
    shard._send_transitions()
    assert (shard.learner._learner.steps, shard._next_transition) == (0, 0)
    assert (crawl.policy._learner._agent.online.parameters == weights).all(), "it knows more"
    shard._send_transitions()
    again = Learner(SETUP, 2)
    again.learn(0, 0, crawl.policy.transitions(0, PAGES))
    assert again.positions == [PAGES, 0]
    assert shard.learner._learner.state() == again.state()
    assert shard._seen.run == shard.learner._run


@pytest.fixture
def told(monkeypatch):
    """Return what the coordinator is told."""
    told = []
    monkeypatch.setattr(shard_actor, "insist", lambda *call: told.append(call))
    return told


@pytest.mark.parametrize("found", [None, "yesterday"])
def test_folder_that_is_not_shared_ends_the_crawl(plan, told, found):
    (plan.job / RUN).unlink()
    if found is not None:
        (plan.job / RUN).write_text(found)
    complaint = f"--job {plan.job} is another folder on this node: it must be shared"
    for start in (CoordinatorActor, lambda plan: LearnerActor(plan, SETUP)):
        with pytest.raises(TresError) as raised:
            start(plan)
        assert str(raised.value) == complaint
    shard = ShardActor(plan, 1)
    shard._thread.join(60)
    assert told == [("begin", 1), ("end", FAILED, f"shard 1: {complaint}")]
    assert not plan.folder(1).exists()


class Away:
    """Ray without a coordinator for some calls; then it answers."""

    def __init__(self, *errors):
        self.errors = [*errors]

    def get_actor(self, name):
        assert name == COORDINATOR
        if isinstance(self.errors[0], ValueError):
            raise self.errors.pop(0)
        return SimpleNamespace(begin=SimpleNamespace(remote=lambda shard: shard))

    def get(self, shard):
        if (error := self.errors.pop(0)) is not None:
            raise error
        return 10 + shard


def test_shard_waits_for_the_coordinator(monkeypatch):
    errors = ValueError("not known"), RayActorError(), ValueError("not known"), None
    ray = Away(*errors)
    monkeypatch.setattr(actor, "ray", ray)
    monkeypatch.setattr(actor, "sleep", lambda seconds: None)
    assert actor.insist("begin", 3) == 13
    assert not ray.errors


def test_shard_ends_without_a_coordinator(monkeypatch):
    clock, waits = SimpleNamespace(now=0.0), []
    monkeypatch.setattr(actor, "ray", Away(*map(ValueError, range(10_000))))
    monkeypatch.setattr(actor, "monotonic", lambda: clock.now)
    monkeypatch.setattr(actor, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds))
    monkeypatch.setattr(actor.os, "_exit", waits.append)
    actor.insist("begin", 3)
    assert (waits, clock.now) == ([1], actor.PATIENCE)
