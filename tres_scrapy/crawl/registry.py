"""The policies by name: TRES, and those that guests offer."""

from __future__ import annotations

from typing import Final

from tres_scrapy.agent.policy import Policy
from tres_scrapy.agent.policy_inputs import Kind, PolicyInputs
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.guest import offered
from tres_scrapy.config.parser import one_of
from tres_scrapy.config.typed import named
from tres_scrapy.frontier.store import SampleStore

POLICIES: Final[dict[str, Kind]] = {
    "tres": Kind(TresPolicy, reads_cues=True),
    **{name: kind for more in offered("policies") for name, kind in more.items()},
}


def kind_of(name: str) -> Kind:
    """Return a policy's kind; raise ConfigError if no policy has the name."""
    try:
        return POLICIES[one_of(*POLICIES)(name)]
    except ValueError as error:
        raise ConfigError(f"{named('TRES_POLICY')} {name!r}: {error}") from None


def make_policy(name: str, store: SampleStore, setup: PolicyInputs) -> Policy:
    """Return a new policy over `store`."""
    return POLICIES[name].make(store, setup)
