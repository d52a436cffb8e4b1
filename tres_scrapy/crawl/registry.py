"""The policies by name: TRES, and those of other modules."""

from __future__ import annotations

from typing import Final

from tres_scrapy.agent.policy import Policy
from tres_scrapy.agent.policy_inputs import Kind, PolicyInputs
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.guest import load
from tres_scrapy.config.parser import one_of
from tres_scrapy.config.typed import named
from tres_scrapy.frontier.store import SampleStore

POLICIES: Final = {"tres": Kind(TresPolicy, reads_cues=True)}


def kind_of(name: str) -> Kind:
    """Return a policy's kind: one of POLICIES, or that at `module:NAME`; raise ConfigError."""
    try:
        if ":" not in name:
            return POLICIES[one_of(*POLICIES, "package.module:NAME")(name)]
        if not isinstance(kind := load(name), Kind):
            one = type(kind).__name__
            raise ValueError(f"is a {one}, must be a Kind of agent/policy_inputs.py")
        return kind
    except (AttributeError, ImportError, ValueError) as error:
        raise ConfigError(f"{named('TRES_POLICY')} {name!r}: {error}") from None


def make_policy(name: str, store: SampleStore, setup: PolicyInputs) -> Policy:
    """Return a new policy over `store`."""
    return kind_of(name).make(store, setup)
