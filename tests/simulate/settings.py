"""Settings: what else a fleet may have that makes its life harder; each seed draws one thing at most.

* two hubs, of which the one that holds the lease acts;
* two agents of a member at once, as while an old pod is going and a new one is there already;
* machines whose clocks are wrong all the time, each in another way;
* another placement beside the one that is judged, and a namespaced one with what it places;
* a member that lies wherever its credentials let it write;
* an etcd, of the hub or of a member, that is restored to an older state; a definition on a member that is deleted.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random

SKEW = 60.0  # seconds by which a clock is wrong at most


class Setting(StrEnum):
    """What is special about a fleet."""

    plain = "plain"
    two_hubs = "two hubs"
    two_agents = "two agents"
    skewed_clocks = "skewed clocks"
    more_placements = "more placements"
    hostile_member = "hostile member"
    restored_hub = "restored hub"
    restored_member = "restored member"
    deleted_definition = "deleted definition"


DRAWN = tuple(one for one in Setting if one is not Setting.plain)


def drawn_setting(rng: Random, *, is_network_fine: bool) -> Setting:
    """Mostly nothing special. Two agents only where both hear the same: else they undo what the other does."""
    drawn = Setting.plain if rng.random() < 0.6 else rng.choice(DRAWN)
    return Setting.plain if drawn is Setting.two_agents and not is_network_fine else drawn
