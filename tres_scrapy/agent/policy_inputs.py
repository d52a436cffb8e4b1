"""What policies are created with, and how they are declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tres_scrapy.agent.policy import Policy
from tres_scrapy.config.learning import AgentOptions, LearningOptions, LinkOptions, TreeOptions
from tres_scrapy.links.model import NO_PRIOR, LinkPrior


@dataclass(frozen=True)
class PolicyInputs:
    """The arguments that policies are created with."""

    seed: int = 0
    tree: TreeOptions = field(default_factory=TreeOptions)
    agent: AgentOptions = field(default_factory=AgentOptions)
    learning: LearningOptions = field(default_factory=LearningOptions)
    links: LinkOptions = field(default_factory=LinkOptions)
    link_prior: LinkPrior = NO_PRIOR


@dataclass(frozen=True)
class Kind:
    """A crawler: how to make its policy and what the policy needs.

    `make` gets the frontier and the inputs. `classifier` is the kind of pack that judges its pages,
    "" for the topic's default pack. With `reads_cues` the policy receives what links say. If not
    `rewarded`, its choices do not depend on rewards and features. `extra` names the optional
    packages that it uses. `prepare` adds further inputs: it gets the inputs, the configuration, the
    pack, and the offline web if that is open already.
    """

    make: Callable[..., Policy]
    classifier: str = ""
    reads_cues: bool = False
    rewarded: bool = True
    prepare: Callable[..., PolicyInputs] | None = None
    extra: str = ""

    @property
    def reads_text(self) -> bool:
        """Whether the policy receives the text of pages, and the words around links."""
        return bool(getattr(self.make, "reads_text", False))
