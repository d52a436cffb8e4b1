"""Why one page was fetched: its path, leaf, features and Q, and the rivals of its link."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from difflib import get_close_matches
from textwrap import fill
from typing import Final

from tres_scrapy.config.visit import ALWAYS, DAY, NO_LIMIT, Hours, SiteRule
from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.crawl.visit import REQUESTS
from tres_scrapy.frontier.feature import TABLE
from tres_scrapy.page.kind import WALLS
from tres_scrapy.report.record import Record
from tres_scrapy.run.forgotten import DISTRUSTED
from tres_scrapy.run.reason import sentence
from tres_scrapy.run.run_file import Fetch, RecordError, reading
from tres_scrapy.url.canonical import domain_of
from tres_scrapy.url.message import counted

WIDTH: Final = 100
RULES: Final = "TRES_SITE_RULES"
HOP: Final = ("url", "final_url", "anchor", "step", "outcome")  # of the path, in JSON
MOVED: Final = (
    " The link matched this rule when it entered the leaf; the features of its domain have changed."
)
OUTCOMES: Final = {
    "relevant": "relevant",
    "irrelevant": "not relevant",
    "copy": "same text as an earlier page",
    DISTRUSTED: "taken out of the output: its site is distrusted",
} | {kind: f"failed: {what}" for kind, what in WALLS.items()}


class FetchExplanation:
    """Explains the fetch of a URL, while its record is open.

    Raise RecordError, with the reason, if it was not fetched.
    """

    def __init__(self, record: Record, url: str) -> None:
        page = record.find(url)
        if page is None:
            raise RecordError(f"{url} was not fetched{_why_not(record, url)}")
        self._record = record
        self._page = page
        self._rule = record.rule(page.leaf, page.splits)
        self._rivals = [
            (rival, record.rule(rival.leaf, page.splits)) for rival in record.rivals(page.step)
        ]

    @property
    def address(self) -> str:
        """The URL of the page, after redirects."""
        return self._page.final_url or self._page.url

    def as_json(self) -> str:
        """Return the explanation as JSON."""
        record, page = self._record, self._page
        found = asdict(page) | {
            "link": [part._asdict() for part in page.link],
            "outcome": page.outcome,
            "scores": record.scores(page),
            "remark": record.remark(page),
            "why": record.why(page),
            "rule": self._rule,
            "path": [{name: getattr(hop, name) for name in HOP} for hop in record.trail(page)],
            "rivals": [rival._asdict() | {"rule": rule} for rival, rule in self._rivals],
        }
        return json.dumps(found, ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        """Return the explanation as text, in paragraphs."""
        page, shards = self._page, self._record.shards()
        reason = sentence(page.chosen, page.q_value, "", page.samples or 0, page.leaves or 0)
        moved = MOVED if self._record.has_moved(page) else ""
        parts = [
            self._head(),
            wrapped("Why: ", reason),
            *([wrapped("Leaf: ", f"{self._rule}.{moved}")] if self._rule else []),
            *([self._shard(shards)] if shards > 1 else []),
            *([self._link()] if self._page.link else []),
            self._path(),
            self._features(),
            *([self._other_leaves()] if self._rivals else []),
        ]
        return "\n\n".join(parts)

    def _head(self) -> str:
        page = self._page
        lines = [plain(page.url)]
        if page.final_url:
            lines.append(f"redirected to {plain(page.final_url)}")
        if page.title:
            lines.append(f'"{plain(page.title)}"')
        sure = "" if page.probability is None else f", P(relevant) {page.probability:.3f}"
        found, remark = self._record.scores(page), self._record.remark(page)
        scores = ", ".join(f"{topic} {value:.3f}" for topic, value in found.items())
        more = "".join(f"; {plain(said)}" for said in (scores, remark) if said)
        return "\n".join([*lines, f"Step {page.step}: {_outcome(page)}{sure}{more}{self._now()}"])

    def _now(self) -> str:
        """Return where the last model has moved the page, "" if it is where it was."""
        is_in = self._record.is_in_output(self._page)
        if is_in == self._page.relevant:
            return ""
        return "; in the output now" if is_in else "; not in the output now"

    def _shard(self, shards: int) -> str:
        """Return which shard fetched the page, whose own record has the rule of its leaf."""
        shard = self._page.row % shards
        own = f"{self._record.path.parent}/shard-{shard}"
        return (
            f"Shard: {shard} of {shards}. For its leaf: tres explain {own} {plain(self._page.url)}"
        )

    def _path(self) -> str:
        trail = self._record.trail(self._page)
        lines = ["Path:" if trail[0].parent is None else "Path (the record has only a part):"]
        for number, hop in enumerate(trail):
            moved = f" -> {plain(hop.final_url)}" if hop.final_url else ""
            lines.append(f"{number:4} {plain(hop.url)}{moved}")
            by = f'by "{plain(hop.anchor)}", ' if hop.anchor else ""
            lines.append(f"     {by}{_outcome(hop)}")
        return "\n".join(lines)

    def _link(self) -> str:
        lines = ["What the link says, and what that adds to the logit of its P(relevant):"]
        lines += [f"  {part.adds:+6.2f}   {plain(part.label)}" for part in self._page.link]
        return "\n".join(lines)

    def _features(self) -> str:
        lines = ["Features of the link when it was chosen:"]
        for feature in TABLE:
            value = self._page.x[feature.name]
            lines.append(f"  {feature.name:18} {value:6.3f}   {feature.meaning}")
        return "\n".join(lines)

    def _other_leaves(self) -> str:
        q = "none" if self._page.q_value is None else f"{self._page.q_value:.3f}"
        lines = [f"Rivals: the best other links at that step, one a leaf, by Q (this link: {q}):"]
        for rival, rule in self._rivals:
            by = f'   by "{plain(rival.anchor)}"' if rival.anchor else ""
            lines.append(f"  {rival.q_value:6.3f}   {plain(rival.url)}{by}")
            lines += [wrapped(" " * 11, rule)] if rule else []  # a joined record has no tree
        return "\n".join(lines)


def _why_not(record: Record, url: str) -> str:
    """Return the rest of a sentence about a URL that was not fetched, from what the record has."""
    if (refusal := record.refusal(url)) is not None:
        return f": the scope refuses it by {refusal.rule}: {refusal.said}"
    rules = [f"{rule} {count:,}" for rule, count in record.refused().items()]
    refused = [f"refused by the scope: {', '.join(rules)}"] if rules else []
    known = [*(list(_waiting(record, url)) or refused), *_of_domain(record, url)]
    if known and known != refused:
        end = record.meta().get("reason", "")
        ended = f"the crawl has ended ({end})" if end else "the crawl has not ended"
        return f": {'; '.join([*known, ended])}"
    near = get_close_matches(url, [page.url for page in record.last(1000)], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f" in this crawl{hint}{''.join(f'; {said}' for said in refused)}"


def _waiting(record: Record, url: str) -> Iterator[str]:
    """Yield how a link waited: with its Q if it was the best of its leaf at a recorded choice."""
    found = record.waiting(url)
    if found is not None:
        page, rival = found
        q = "" if page.q_value is None else f", Q {page.q_value:.3f}"
        yield (
            f"it waited in the frontier; at step {page.step} its Q was {rival.q_value:.3f} and the "
            f"choice was {plain(page.url)}{q}"
        )


def _of_domain(record: Record, url: str) -> Iterator[str]:
    """Yield what kept the crawl from its domain: MAX, its hours, or fetches that failed."""
    settings = record.settings()
    domain = domain_of(url)
    outcomes = record.outcomes(domain)
    pages = outcomes.pop(PAGE, 0)
    cap = settings.get("TRES_MAX_PER_DOMAIN", "").rpartition("_")[2]
    if cap.isdigit() and pages >= int(cap):
        yield f"{domain} has had its {counted(pages, 'page')} (max_per_domain)"
    yield from _of_site(record, domain)
    if outcomes:
        kinds = ", ".join(f"{kind} {count}" for kind, count in outcomes.items())
        yield f"fetches of {domain} that failed: {kinds}"


def _of_site(record: Record, domain: str) -> Iterator[str]:
    """Yield when a site is crawled and how many requests it gets a day, if that is limited."""
    settings, meta = record.settings(), record.meta()
    with reading(record.path):
        rules = [*map(SiteRule.parse, filter(None, settings.get(RULES, "").split(", ")))]
        own = SiteRule(domain)
        for rule in rules:
            own = rule if domain_of(f"http://{rule.site}/") == domain else own
        hours = own.hours or Hours.parse(settings.get("TRES_CRAWL_BETWEEN", ALWAYS))
        most = own.per_day or int(settings.get("TRES_MAX_PER_DAY", NO_LIMIT))
        day, requests = map(int, meta.get(f"{REQUESTS}{domain}", "0 0").split(" "))
        date = datetime.fromtimestamp(day * DAY, UTC).date()
    if hours != Hours():
        yield f"{domain} is crawled at {hours} UTC only (crawl_between)"
    if most <= requests:
        yield f"{domain} has had its {most:,} requests of {date} (max_per_day)"
    elif most != NO_LIMIT:
        yield f"{domain} gets at most {most:,} requests a day (max_per_day)"


def plain(text: str) -> str:
    """Return a text with a space for each control character."""
    return "".join(character if character.isprintable() else " " for character in text)


def wrapped(start: str, text: str) -> str:
    """Return a text in lines of WIDTH characters, indented by the length of `start`."""
    bound = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = fill(bound, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def _outcome(page: Fetch) -> str:
    failed = f"failed: {page.outcome.replace('_', ' ')}"
    return OUTCOMES.get(page.outcome, failed)
