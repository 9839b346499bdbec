"""Properties: the amounts by which clusters are selected and sorted.

A name such as `resources.kubernetes-fleet.io/available-cpu` is read from what the cluster has and has left; any other
from what it reports under that name. Amounts are whole billionths, which is as fine as a quantity goes: they compare
and divide exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kedge.api.cluster import MemberCluster, ResourceUsage
from kedge.api.numbers import Quantity

RESOURCES: Final = "resources.kubernetes-fleet.io/"
_USAGES: Final = ("total", "allocatable", "available")


def problem_of(name: str) -> str | None:
    """Why this cannot be the name of a property; None if it can."""
    usage, dash, resource = name.removeprefix(RESOURCES).partition("-")
    if not name.startswith(RESOURCES) or (usage in _USAGES and dash and resource):
        return None if name else "a property needs a name"
    return f"{name!r} names no property: write {RESOURCES}, then {', '.join(_USAGES[:-1])} or {_USAGES[-1]}, then -cpu"


def amount(member: MemberCluster, name: str) -> int | None:
    """What the member has of a property; None if it has none, or says something that is no quantity."""
    text = reported(member, name)
    return None if text is None else billionths(text)


def reported(member: MemberCluster, name: str) -> str | int | None:
    """What the member says of a property, as it says it."""
    if name.startswith(RESOURCES):
        return _usage(member.status.resource_usage, name[len(RESOURCES) :])
    found = member.status.properties.get(name)
    return None if found is None else found.value


@lru_cache(maxsize=65_536)  # the same few texts come again with every look, and reading one costs
def billionths(text: str | int) -> int | None:
    """The amount a text means; None if it means none."""
    try:
        return int(Quantity.parse(text).amount.scaleb(9))
    except ValueError:
        return None


def _usage(usage: ResourceUsage | None, wanted: str) -> str | int | None:
    if usage is None:
        return None
    kind, _, resource = wanted.partition("-")
    amounts = {"total": usage.capacity, "allocatable": usage.allocatable, "available": usage.available}
    return amounts.get(kind, {}).get(resource)
