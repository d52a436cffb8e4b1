"""The attacks of sites on a crawl, and the states in which Ctrl-C is pressed."""

from __future__ import annotations

from hostility.site import Attack

MANY = tuple(f"www.honest{i}.com" for i in range(40))
ATTACKS = {
    "nothing": Attack(MANY),
    "network": Attack(MANY, tuple(f"h{i}.refusing.com" for i in range(60)), 0.5, 15.0),
    "slow": Attack(MANY, tuple(f"www.slow{i}.com" for i in range(48)), 0.5),
    "neighbours": Attack(tuple(f"www.honest{i}-at1.com" for i in range(5))),
    "patient": Attack(tuple(f"www.honest{i}-at1.com" for i in range(5)), ("patient-at1.com",), 0.2),
    "silent": Attack(MANY, tuple(f"www.silent{i}-at2.com" for i in range(400)), 0.9),
    "names": Attack(MANY, tuple(f"www.name{i}-hang.com" for i in range(400)), 0.9),
}

STATES = {
    "silent": Attack(MANY, tuple(f"www.silent{i}.com" for i in range(400)), 0.9),
    "slow": ATTACKS["slow"],
    "names": ATTACKS["names"],
    "many": ATTACKS["slow"]._replace(settings=("-s", "CONCURRENT_REQUESTS=100")),
    "paused": ATTACKS["slow"]._replace(settings=("-s", "HOSTILE_STATE=paused")),
    "judge": Attack(MANY, settings=("-a", "judge=hostility.judge:rate")),
    "ending": Attack(MANY, settings=("-a", "pages=40", "-s", "HOSTILE_STATE=ending")),
}
