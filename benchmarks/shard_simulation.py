"""One crawl in many shards, simulated in one process: discrete events, no HTTP, no Ray.

Fetches take random times, and messages between shards, learner and coordinator arrive after a
delay. Everything else is the code that a crawl on many machines runs. The same seed gives the same
crawl. With one shard there are no messages: it is today's crawl with several fetches at once.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
from comparing.simulation import Simulation, World

from tres_scrapy.cluster.actor_policy import ActorPolicy
from tres_scrapy.cluster.budget import Budget
from tres_scrapy.cluster.learner import NEWS, Learner
from tres_scrapy.cluster.message import Orders, Status
from tres_scrapy.cluster.outbox import EVERY, SendSchedule
from tres_scrapy.cluster.router import LinkBatch
from tres_scrapy.cluster.shard_crawl import ShardCrawl
from tres_scrapy.cluster.transition import WeightUpdate
from tres_scrapy.config.config import Config, ShardOptions
from tres_scrapy.crawl.assembly import learning_setup
from tres_scrapy.frontier.ledger import Availability
from tres_scrapy.lab.webs.web import Count


class Agenda:
    """Calls functions at their times; those of one time in the order in which they were added."""

    def __init__(self) -> None:
        self.now = 0.0  # seconds
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function in so many seconds."""
        heapq.heappush(self._calls, (self.now + seconds, next(self._number), call))

    def every(self, seconds: float, call: Callable[[], None], first: float) -> None:
        """Call a function again and again, for the first time in `first` seconds."""

        def again() -> None:
            call()
            self.after(seconds, again)

        self.after(first, again)

    def step(self) -> None:
        """Make the next call."""
        self.now, _, call = heapq.heappop(self._calls)
        call()


STALLED = 600.0  # simulated seconds without a page after which the simulation gives up
SOON = 16  # transitions that a shard sends at once
MOST_TRANSITIONS = 1_000  # of one message


@dataclass(frozen=True)
class Timing:
    """Durations in simulated seconds, and the number of fetches that a shard does at once.

    A fetch takes from `shortest` to `longest`. A message takes `delay`. Every `looks` seconds a
    shard looks at what is due. To each other shard it sends batches every `batches` seconds, and
    earlier if much is new. It sends transitions and gets weights every `weights` seconds, and
    earlier if there is news. It reports every `reports` seconds, and at each look while it has no
    pages.
    """

    slots: int = 16
    shortest: float = 0.05
    longest: float = 0.5
    delay: float = 0.05
    looks: float = 0.25
    batches: float = EVERY
    weights: float = 1.0
    reports: float = 1.0


@dataclass
class Traffic:
    """What travelled between processes."""

    batches: int = 0
    batch_bytes: int = 0
    transitions: int = 0
    transition_bytes: int = 0
    weight_bytes: int = 0


@dataclass(frozen=True)
class ShardResult:
    """A simulated crawl: pages and relevant pages as the web counts them, simulated seconds.

    `course` holds the number of relevant pages after every tenth of the page limit.
    """

    pages: int
    relevant: int
    domains: int
    seconds: float
    hurried: int
    traffic: Traffic
    course: tuple[int, ...]


class ShardSimulation:
    """One crawl of a world in `shards` shards, with at most `config.pages` pages."""

    def __init__(
        self, world: World, config: Config, shards: int, timing: Timing | None = None
    ) -> None:
        assert config.pages is not None
        self.agenda = Agenda()
        self.count = Count()
        self.traffic = Traffic()
        self.under_way = 0  # batches
        self.timing = timing or Timing()
        self.random = np.random.default_rng(config.random_seed)
        self.total = config.pages
        options = (ShardOptions(number, shards) for number in range(shards))
        self.shards = [SimulatedShard(self, world, replace(config, shard=each)) for each in options]
        self.office = Office(self, Learner(learning_setup(config, world.pack), shards))

    @property
    def pages(self) -> int:
        """The pages that all shards have booked."""
        return sum(shard.crawl.pages for shard in self.shards)

    def run(self, progress: Callable[[int], None] = lambda pages: None) -> ShardResult:
        """Crawl until the last page or the last link; call `progress` with the new pages."""
        for shard in self.shards:
            shard.start()
        pages, last, course = 0, 0.0, [0]
        while pages < self.total and not self._is_over():
            self.agenda.step()
            if (new := self.pages - pages) > 0:
                progress(new)
                pages, last = pages + new, self.agenda.now
                course += [self.count.relevant] * (10 * pages // self.total + 1 - len(course))
            if self.agenda.now - last > STALLED:
                raise RuntimeError(f"no page for {STALLED:g} simulated seconds: {self._state()}")
        count, hurried = self.count, self.office.learner.hurried
        return ShardResult(
            count.pages,
            count.relevant,
            len(count.domains),
            round(self.agenda.now, 1),
            hurried,
            self.traffic,
            tuple(course[1:]),
        )

    def _is_over(self) -> bool:
        return not self.under_way and all(shard.is_idle for shard in self.shards)

    def _state(self) -> str:
        states = [(s.crawl.pages, s.crawl.leased, s.crawl.granted) for s in self.shards]
        return f"pages, leases and limits {states}"


class Office:
    """The learner and the coordinator of a simulated crawl."""

    def __init__(self, simulation: ShardSimulation, learner: Learner) -> None:
        count = len(simulation.shards)
        self.learner = learner
        self.budget = Budget(simulation.total, [0] * count)
        self._simulation = simulation
        self._statuses: dict[int, Status] = {}
        self._versions = [0] * count  # of the weights that each shard has
        self._steps = [0] * count  # transitions that they were learned from
        self._has_weights = [0.0] * count  # when it got them

    def learn(self, shard: SimulatedShard, first: int, transitions: list[bytes]) -> None:
        """Learn the transitions of a shard; send weights if it is time."""
        simulation, number = self._simulation, shard.number
        self.learner.learn(number, first, transitions)
        now = simulation.agenda.now
        is_due = now - self._has_weights[number] >= simulation.timing.weights
        if is_due or self.learner.has_news(self._steps[number]):
            self._steps[number] = self.learner.steps
            update = self.learner.update_since(self._versions[number])
            self._versions[number], self._has_weights[number] = self.learner.version, now
            simulation.traffic.weight_bytes += update.size
            simulation.agenda.after(simulation.timing.delay, lambda: shard.take(update))

    def report(self, shard: SimulatedShard, status: Status) -> None:
        """Answer the report of a shard."""
        self._statuses[shard.number] = status
        active = [each for each in self._statuses.values() if each.ready and not each.idle]
        limit = self.budget.ask(status, active)
        orders = Orders(limit, self.budget.spare(status, active))
        self._simulation.agenda.after(self._simulation.timing.delay, lambda: shard.obey(orders))


class SimulatedShard:
    """One shard of a simulated crawl."""

    def __init__(self, simulation: ShardSimulation, world: World, config: Config) -> None:
        self.number = config.shard.number
        self._fetching = Simulation(world, config, simulation.count)
        crawl = self._fetching.crawl
        assert isinstance(crawl, ShardCrawl)  # that of a config with shards
        self.crawl = crawl
        self.is_alone = config.shard.count == 1
        self._simulation = simulation
        self._seeds = world.seeds(config)
        self._busy: dict[int, int] = {}  # hosts of the fetches under way, by row
        self._outbox: dict[int, list[bytes]] = {}
        self._sent: Counter[int] = Counter()
        self._schedule = SendSchedule(simulation.timing.batches)
        self._idle = False
        self._reporting = False
        self._reported = self._asked = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether it is fetching nothing and knows nothing to fetch."""
        return not self._busy and (self._idle or not self.crawl.store.pending)

    def start(self) -> None:
        """Add the seeds and begin."""
        seeds = self._seeds
        if self.is_alone:
            self.crawl.add_seeds(seeds)
            self._fill()
            return
        self.crawl.add_seeds(
            seeds.take([place for place, url in enumerate(seeds.urls) if self.crawl.owns(url)])
        )
        self.crawl.granted = 0
        looks = self._simulation.timing.looks
        first = float(self._simulation.random.uniform(0, looks))
        self._simulation.agenda.every(looks, self._look, first)

    def receive(self, batches: list[bytes]) -> None:
        """Take batches of links."""
        self._simulation.under_way -= len(batches)
        self.crawl.receive([*map(LinkBatch.unpacked, batches)])
        self._idle = False
        self._fill()

    def take(self, update: WeightUpdate) -> None:
        """Take weights."""
        self._policy.take(update)

    def obey(self, orders: Orders) -> None:
        """Do what the coordinator answers to a report."""
        crawl, self._reporting = self.crawl, False
        crawl.granted = orders.limit
        if orders.spare is not None:
            crawl.granted = min(crawl.granted, crawl.pages + crawl.leased + orders.spare)
        self._fill()

    def _fill(self) -> None:
        """Begin fetches until there are no slots, no pages or no links left."""
        crawl, simulation, timing = self.crawl, self._simulation, self._simulation.timing
        while len(self._busy) < timing.slots and self._free > 0:
            decision = crawl.next(self._available)
            if decision is None:
                self._idle = not self._busy
                return
            row = decision.row
            self._busy[row] = crawl.store["host"][row]
            seconds = float(simulation.random.uniform(timing.shortest, timing.longest))
            simulation.agenda.after(seconds, partial(self._end, row))

    def _end(self, row: int) -> None:
        """End a fetch and send its links to their shards."""
        simulation, traffic = self._simulation, self._simulation.traffic
        self._fetching.fetch(row)
        del self._busy[row]
        for shard, data in self.crawl.router.take():
            simulation.under_way += 1
            traffic.batches += 1
            traffic.batch_bytes += len(data)
            self._outbox.setdefault(shard, []).append(data)
        self._idle = False
        self._fill()
        if not self.is_alone and not self._free:
            self._report()

    def _look(self) -> None:
        """Send what is due, as `Shard` does."""
        simulation = self._simulation
        now, timing = simulation.agenda.now, simulation.timing
        if self._free <= 0 or now - self._reported >= timing.reports:
            self._report()
        learned = simulation.office.learner.positions[self.number]
        new, is_late = self._policy.noted - learned, now - self._asked >= timing.weights
        if is_late or new >= SOON or new > NEWS * learned:
            self._asked = now
            self._send_transitions()
        self._send_batches()

    def _send_batches(self) -> None:
        """Send the batches for each shard in one message, if it is time."""
        simulation, agenda = self._simulation, self._simulation.agenda
        for shard, batches in [*self._outbox.items()]:
            if self._schedule.take_turn(shard, len(batches), self._sent[shard], agenda.now):
                del self._outbox[shard]
                self._sent[shard] += len(batches)
                receive = partial(simulation.shards[shard].receive, batches)
                agenda.after(simulation.timing.delay, receive)

    def _send_transitions(self) -> None:
        simulation, traffic = self._simulation, self._simulation.traffic
        first = simulation.office.learner.positions[self.number]
        transitions = self._policy.transitions(first, MOST_TRANSITIONS)
        traffic.transitions += len(transitions)
        traffic.transition_bytes += sum(map(len, transitions))
        learn = simulation.office.learn
        simulation.agenda.after(simulation.timing.delay, lambda: learn(self, first, transitions))

    def _report(self) -> None:
        """Report to the coordinator, if it has answered the report before."""
        if self._reporting:
            return
        self._reporting, self._reported = True, self._simulation.agenda.now
        crawl, simulation = self.crawl, self._simulation
        available, slots = self._available, simulation.timing.slots
        status = Status(
            self.number,
            crawl.pages,
            crawl.leased,
            crawl.granted,
            value=self._policy.worth(available),
            ready=True,
            idle=self.is_idle,
            busy=len(available.busy) >= slots or not crawl.store.may_be_ready(available),
            requests=slots,
        )
        report = simulation.office.report
        simulation.agenda.after(simulation.timing.delay, lambda: report(self, status))

    @property
    def _available(self) -> Availability:
        return Availability([*self._busy.values()])

    @property
    def _free(self) -> int:
        crawl = self.crawl
        return crawl.granted - crawl.pages - crawl.leased

    @property
    def _policy(self) -> ActorPolicy:
        policy = self.crawl.policy
        assert isinstance(policy, ActorPolicy)
        return policy
