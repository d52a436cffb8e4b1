"""Options of the link model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, number, some_of, whole

GROUPS: Final = (
    "url",
    "host",
    "anchor",
    "around",
    "heading",
    "path",
    "page",
    "fact",
    "siblings",
    "record",
)


@dataclass(frozen=True)
class LinkOptions:
    """What the link model reads of a link and how it learns."""

    enabled: bool = setting(
        flag,
        True,
        "learn from what links say; 0: decide by the eight features of the paper",
        name="link_model",
    )
    without: tuple[str, ...] = setting(
        some_of(*GROUPS), (), "groups that the link model does not read", name="link_without"
    )
    pretrained: bool = setting(
        flag, True, "begin with what the URLs and titles of the topic's training documents say"
    )
    exploration: float = setting(
        number(0, 20),
        2.0,
        "what is added to the logit of P(relevant) of links to a host never fetched",
        name="link_exploration",
    )
    lead: float = setting(
        number(0, 10),
        0.5,
        "weight of what the last pages of a host led to, beside P(relevant) of the link",
        name="link_lead",
    )
    variance: float = setting(
        number(1e-3, 100),
        0.05,
        "variance of each weight before anything is learned",
        name="link_variance",
    )
    rate: float = setting(number(0, 10), 0.2, "learning rate of AdaGrad", name="link_rate")
    shrinkage: float = setting(
        number(0, 1), 1e-3, "pull of each weight towards its prior", name="link_shrinkage"
    )
    replays: int = setting(
        whole(0, 1000),
        8,
        "most earlier experiences learned again at each step",
        name="link_replays",
    )
    replay_capacity: int = setting(
        whole(1, 10**6), 5_000, "most experiences kept to learn again", name="link_capacity"
    )
    rescored: int = setting(
        whole(0, 10**5), 50, "waiting links scored again for each fetch", name="link_rescored"
    )
