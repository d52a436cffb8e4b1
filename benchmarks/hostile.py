"""Attack the crawler with an embedded hostile web; print what the attack costs.

    python benchmarks/hostile.py sites [--rows network slow neighbour silent ...] [--seconds 60]
    python benchmarks/hostile.py honest [--topics food sports hardware] [--max none 10]
        [--web-seeds 61 62 63 64 65] [--pages 1000] [--data FOLDER] [--models FOLDER]
    python benchmarks/hostile.py links [--kinds nothing ports names robots images ...]
    python benchmarks/hostile.py stop [--states silent slow names many paused judge ending]
    python benchmarks/hostile.py traps [--kinds host subdomains domains expired earning]
        [--shares .004 .02 .16] [--texts pieces words chain names] [--topics food sports]
        [--max none 10] [--pages 1000] [--delay 0] [--believing] [-s TRES_NAME=VALUE]

`traps`: a share of the pages of the synthetic web links to endless generated pages in the words of
the topic. The crawl is simulated, with one request at a time. Printed are the share of pages that
the trap took, and the harvest rate by true labels. `--believing` crawls as if trust in sites and
what their pages repeat did not count. With `--delay SECONDS` the program itself crawls a served
web, with Scrapy's 16 requests at a time and this delay between two requests to a host.

`honest`: nothing is hostile. Printed are the relevant pages by the web's labels of crawls as they
are and `--believing`, the difference in points, and what a report would have warned of, looked at
every 50 pages. Where neither trust nor repetition told anything, the second crawl would be the
first one and is left out. With --data, the recorded webs of `real_webs.py` are crawled too;
--models has the packs that it trains.

`sites`: honest sites and hostile ones answer on addresses of this machine. After some seconds the
crawl is stopped with Ctrl-C. Printed are the pages of the honest and of the hostile hosts, how
often the network seemed gone, the longest stall of the reactor, and the seconds to stop.

`links`: one page has links to honest sites that the crawl has not found yet, which fail there or
lead to copies. Printed is how many of the pages of the honest sites are items.

`stop`: presses Ctrl-C in states in which a crawl has much to wait for. Printed are the seconds to
the end of the process, its exit status, and the items, none of which may be torn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

from comparing.library import Library
from comparing.simulation import Simulation, World
from hostility.accuser import KINDS as ACCUSED
from hostility.accuser import PAGES as PAGES_OF_SITE
from hostility.accuser import SITES
from hostility.accuser import crawl as accuse
from hostility.attack import ATTACKS, STATES
from hostility.honest import believe, generated, recorded
from hostility.honest import crawl as crawl_honest
from hostility.site import crawl
from hostility.trap import KINDS, KNOWING, TEXTS, TRAP, TrappedWeb, is_trap

from tres_scrapy.config.config import Config
from tres_scrapy.lab.webs.web import PAGES

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run one attack and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    attacks = parser.add_subparsers(required=True, metavar="ATTACK")
    traps = attacks.add_parser("traps", help="endless pages in the words of the topic")
    traps.add_argument("--kinds", nargs="+", choices=KINDS + KNOWING, default=KINDS)
    traps.add_argument("--shares", nargs="+", type=float, default=[0.004, 0.02, 0.16])
    traps.add_argument("--texts", nargs="+", choices=TEXTS, default=TEXTS[:2])
    traps.add_argument("--delay", type=float, default=0.0)
    traps.add_argument("--believing", action="store_true")
    traps.add_argument("--topics", nargs="+", default=["food", "sports"])
    traps.add_argument("--max", nargs="+", default=["none", "10"])
    traps.add_argument("--pages", type=int, default=1000)
    traps.add_argument("--web-seed", type=int, default=61)
    traps.add_argument("-s", dest="settings", action="append", default=[])
    traps.set_defaults(run=compare_traps)
    honest = attacks.add_parser("honest", help="webs without an attacker")
    honest.add_argument("--topics", nargs="*", default=["food", "sports", "hardware"])
    honest.add_argument("--max", nargs="+", default=["none", "10"])
    honest.add_argument("--web-seeds", nargs="+", type=int, default=[61, 62, 63, 64, 65])
    honest.add_argument("--pages", type=int, default=1000)
    honest.add_argument("--data", type=Path)
    honest.add_argument("--models", default=str(ROOT / "models"))
    honest.set_defaults(run=compare_honest)
    sites = attacks.add_parser("sites", help="hosts that fail, are slow or silent")
    sites.add_argument("--rows", nargs="+", choices=ATTACKS, default=[*ATTACKS])
    sites.add_argument("--seconds", type=float, default=60)
    sites.set_defaults(run=compare_sites)
    links = attacks.add_parser("links", help="links that fail on honest sites")
    links.add_argument("--kinds", nargs="+", choices=ACCUSED, default=[*ACCUSED])
    links.set_defaults(run=compare_links)
    stop = attacks.add_parser("stop", help="press Ctrl-C in states that are hard to end")
    stop.add_argument("--states", nargs="+", choices=STATES, default=[*STATES])
    stop.add_argument("--seconds", type=float, default=30)
    stop.set_defaults(run=compare_stops)
    options = parser.parse_args()
    if options.run is compare_traps and options.delay and options.believing:
        parser.error("--believing has no --delay")
    options.run(options)


def compare_sites(options: argparse.Namespace) -> None:
    """Print a row for each attack."""
    print("| attack | honest pages | hostile pages | network gone | stall, s | Ctrl-C, s |")
    print("|---|---|---|---|---|---|")
    for name in options.rows:
        attack = ATTACKS[name]
        found = crawl(attack, options.seconds)
        pages = f"{found.served(attack.honest)} | {found.served(attack.hostile)}"
        ends = f"{found.stall:.2f} | {found.seconds_to_stop:.0f}"
        print(f"| {name} | {pages} | {found.outages} | {ends} |", flush=True)


def compare_links(options: argparse.Namespace) -> None:
    """Print a row for each kind of links."""
    print("| links | honest items | of |")
    print("|---|---|---|")
    for name in options.kinds:
        cap = ["max_per_domain=16"] if name == "copies" else []
        print(f"| {name} | {accuse(name, *cap)} | {SITES * PAGES_OF_SITE} |", flush=True)


def compare_stops(options: argparse.Namespace) -> None:
    """Print a row for each state in which Ctrl-C is pressed."""
    print("| state | pages | Ctrl-C, s | exit status | whole items |")
    print("|---|---|---|---|---|")
    for name in options.states:
        found = crawl(STATES[name], options.seconds)
        ended = f"{found.seconds_to_stop:.0f} | {found.status} | {found.items}"
        print(f"| {name} | {found.pages.total()} | {ended} |", flush=True)


def compare_honest(options: argparse.Namespace) -> None:
    """Print a row for each crawl of a web without an attacker."""
    crawls = [*generated(options.topics, options.max, options.web_seeds)]
    crawls += [] if options.data is None else recorded(options.data, options.models)
    print("| web | topic | MAX | pages | relevant, believing | relevant | points | warnings |")
    print("|---|---|---|---|---|---|---|---|")
    for settings in crawls:
        settings["TRES_PAGES"] = options.pages
        believe(all_of_it=False)
        now = before = crawl_honest(settings)
        if not now.is_the_same:
            believe(all_of_it=True)
            before = crawl_honest(settings)
        web = settings.get("TRES_WEB_SEED") or Path(settings["TRES_WEB_DATA"]).name.split(".")[0]
        points = 100 * (now.relevant / now.pages - before.relevant / before.pages)
        row = web, settings["TRES_TOPIC"], settings["TRES_MAX_PER_DOMAIN"], now.pages
        found = before.relevant, now.relevant, f"{points:+.1f}", ", ".join(now.warnings)
        print(f"| {' | '.join(map(str, [*row, *found]))} |", flush=True)


def compare_traps(options: argparse.Namespace) -> None:
    """Print a row for each trap, first one without a trap."""
    believe(all_of_it=options.believing)
    print("| topic | MAX | trap | text | links to it | its pages | true harvest | the judge's |")
    print("|---|---|---|---|---|---|---|---|")
    traps = [("none", "", 0.0), *product(options.kinds, options.texts, options.shares)]
    for topic, cap, (kind, text, share) in product(options.topics, options.max, traps):
        settings = {
            "TRES_WEB": "synthetic",
            "TRES_TOPIC": topic,
            "TRES_WEB_SEED": options.web_seed,
            "TRES_RANDOM_SEED": options.web_seed,
            "TRES_MAX_PER_DOMAIN": cap,
            "TRES_PAGES": options.pages,
        } | dict(each.split("=", 1) for each in options.settings)
        crawled = served if options.delay else trapped
        trap = (kind, text, share) if share else (KINDS[0], TEXTS[0], 0.0)
        taken, harvest, judged = crawled(settings | {"DOWNLOAD_DELAY": options.delay}, *trap)
        cells = f"{taken:.1%} | {harvest:.1%} | {judged:.1%}"
        print(f"| {topic} | {cap} | {kind} | {text} | {share:.1%} | {cells} |", flush=True)


def trapped(settings: dict[str, Any], kind: str, text: str, share: float) -> tuple[float, ...]:
    """Return the share of pages that a trap took, the true harvest rate and the judge's."""
    config = Config.from_settings(settings)
    world = World(config, user_agent="tres")
    world.web = TrappedWeb(world.web, kind, share, text=text)
    world.library = Library(world.web, world.pack, config.reading)
    crawl = Simulation(world, config)
    crawl.run()
    taken = sum(map(is_trap, crawl.order)) / max(crawl.count.pages, 1)
    return taken, crawl.count.harvest, crawl.crawl.harvest_rate


def served(settings: dict[str, Any], kind: str, text: str, share: float) -> tuple[float, ...]:
    """Return the same of a crawl by the program itself; raise CalledProcessError if it fails."""
    with TemporaryDirectory() as folder:
        log, output = Path(folder, "web.jsonl"), Path(folder, "pages.jsonl")
        own = {"TRES_WEB": "hostility.trap:served_trap", "TRES_WEB_LOG": log, "TRES_OUTPUT": output}
        given = settings | own | {"TRES_RECORD": 0, "LOG_LEVEL": "ERROR"}
        pairs = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
        command = [sys.executable, "-m", "scrapy", "crawl", "tres", *pairs]
        environment = os.environ | {TRAP: f"{kind} {text} {share}"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
        subprocess.run(command, cwd=ROOT, env=environment, check=True)  # noqa: S603 - our own
        rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        pages = [row for row in rows if row["kind"] in PAGES and not row["duplicate"]]
        found = len(output.read_text(encoding="utf-8").splitlines()) if output.exists() else 0
        taken = sum(is_trap(row["url"]) for row in pages)
        relevant = sum(row["relevant"] for row in pages)
        return tuple(count / max(1, len(pages)) for count in (taken, relevant, found))


if __name__ == "__main__":
    main()
