"""Affinity: which clusters a policy requires, and which it prefers.

`read_affinity` turns a policy into an `Affinity`, or raises `InvalidPolicy` with the field and what is wrong with it. A
cluster that reports a property that is no quantity does not match, and its reason says so. Other clusters are not
affected.

A property such as `resources.kubernetes-fleet.io/available-cpu` is read from the cluster's resource usage. Any other is
read from the properties that the cluster reports. Amounts are whole billionths, which is as fine as a quantity goes: so
they compare and divide exactly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from kedge.api.cluster import MemberCluster, ResourceUsage
from kedge.api.numbers import Quantity
from kedge.api.scheduling import (
    ClusterAffinity,
    ClusterSelectorTerm,
    PlacementPolicy,
    PreferredClusterSelector,
    PropertySelectorRequirement,
    PropertySorter,
    SortOrder,
)
from kedge.api.selector import InvalidSelector, LabelSelector

_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "Gt": operator.gt,
    "Ge": operator.ge,
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Lt": operator.lt,
    "Le": operator.le,
}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_AT: Final = "spec.policy.affinity.clusterAffinity"
_NO_MATCH: Final = "cluster does not match with any of the required cluster affinity terms"


class InvalidPolicy(ValueError):
    """A policy that cannot be followed. The message says which field is wrong, and how to correct it."""


class PropertyRequirement(Struct, frozen=True):
    """One thing that must hold of a property."""

    name: str
    holds: Callable[[int, int], bool]
    than: int

    def fits(self, member: MemberCluster) -> bool:
        found = property_amount(member, self.name)
        return found is not None and self.holds(found, self.than)


class SelectorTerm(Struct, frozen=True):
    """Clusters by labels and properties: everything must hold."""

    labels: LabelSelector | None
    requirements: tuple[PropertyRequirement, ...]

    def fits(self, member: MemberCluster) -> bool:
        if self.labels is not None and not self.labels.matches(member.metadata.labels):
            return False
        return all(requirement.fits(member) for requirement in self.requirements)


class Preference(Struct, frozen=True):
    """Clusters that are preferred, with a weight. A sorter scales it by where a cluster is between least and most."""

    weight: int
    term: SelectorTerm
    sorter: PropertySorter | None


class Affinity(Struct, frozen=True):
    """What a policy asks of clusters."""

    required: tuple[SelectorTerm, ...] = ()
    preferred: tuple[Preference, ...] = ()

    def why_not(self, member: MemberCluster) -> str | None:
        """Why this cluster does not fit; None if it does."""
        if not self.required or any(term.fits(member) for term in self.required):
            return None
        unread = self._unread(member)
        return f"{_NO_MATCH}: {unread}" if unread else _NO_MATCH

    def ranges(self, members: Sequence[MemberCluster]) -> Mapping[str, tuple[int, int]]:
        """The least and the most over all clusters, of each property that clusters are sorted by."""
        names = {preference.sorter.name for preference in self.preferred if preference.sorter}
        found = {name: [a for each in members if (a := property_amount(each, name)) is not None] for name in names}
        return {name: (min(amounts), max(amounts)) for name, amounts in found.items() if amounts}

    def score(self, member: MemberCluster, ranges: Mapping[str, tuple[int, int]]) -> int:
        """The affinity score of this cluster."""
        return sum(_preference_score(each, member, ranges) for each in self.preferred if each.term.fits(member))

    @property
    def reads_properties(self) -> bool:
        """Whether a change of a cluster's properties can matter."""
        terms = (*self.required, *(each.term for each in self.preferred))
        return any(term.requirements for term in terms) or any(each.sorter for each in self.preferred)

    def _unread(self, member: MemberCluster) -> str | None:
        """The first property that is asked for and that the cluster reports as no quantity."""
        for name in dict.fromkeys(each.name for term in self.required for each in term.requirements):
            text = reported_property(member, name)
            if text is not None and to_billionths(text) is None:
                return f"its property {name} is {text!r}, which is not a quantity"
        return None


def reads_properties(policy: PlacementPolicy | None) -> bool:
    """Whether a change of a cluster's properties can matter to this policy."""
    try:
        return read_affinity(policy).reads_properties
    except InvalidPolicy:
        return False


def read_affinity(policy: PlacementPolicy | None) -> Affinity:
    """What the policy asks of clusters. Raises InvalidPolicy if it cannot be followed."""
    affinity = policy.affinity.cluster_affinity if policy is not None and policy.affinity else None
    if affinity is None:
        return Affinity()
    return Affinity(tuple(_required(affinity)), tuple(_preferred(affinity)))


def _required(affinity: ClusterAffinity) -> Iterable[SelectorTerm]:
    selector = affinity.required_during_scheduling_ignored_during_execution
    for n, term in enumerate(selector.cluster_selector_terms if selector else ()):
        yield _term(term, f"{_AT}.{_REQUIRED}[{n}]")


def _preferred(affinity: ClusterAffinity) -> Iterable[Preference]:
    for n, each in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield _preference(each, f"{_AT}.{_PREFERRED}[{n}].preference")


def _preference(each: PreferredClusterSelector, where: str) -> Preference:
    sorter = each.preference.property_sorter
    if sorter is not None and (wrong := property_problem(sorter.name)):
        raise InvalidPolicy(f"{where}.propertySorter.name: {wrong}")
    return Preference(each.weight, _term(each.preference, where), sorter)


def _term(term: ClusterSelectorTerm, where: str) -> SelectorTerm:
    if term.label_selector is not None:
        try:
            term.label_selector.matches({})
        except InvalidSelector as error:
            raise InvalidPolicy(f"{where}.labelSelector: {error}") from error
    expressions = term.property_selector.match_expressions if term.property_selector else ()
    at = f"{where}.propertySelector.matchExpressions"
    return SelectorTerm(
        term.label_selector, tuple(_requirement(each, f"{at}[{n}]") for n, each in enumerate(expressions))
    )


def _requirement(each: PropertySelectorRequirement, where: str) -> PropertyRequirement:
    if wrong := property_problem(each.name):
        raise InvalidPolicy(f"{where}.name: {wrong}")
    if each.operator not in _COMPARE:
        raise InvalidPolicy(f"{where}.operator: {each.operator!r} is none of {', '.join(_COMPARE)}")
    if len(each.values) != 1:
        raise InvalidPolicy(f"{where}.values: {len(each.values)} values are given: give exactly one quantity")
    than = to_billionths(each.values[0])
    if than is None:
        raise InvalidPolicy(
            f"{where}.values: {each.values[0]!r} is not a quantity: write a number, such as 4, 500m or 1Gi"
        )
    return PropertyRequirement(each.name, _COMPARE[each.operator], than)


def _preference_score(preference: Preference, member: MemberCluster, ranges: Mapping[str, tuple[int, int]]) -> int:
    if preference.sorter is None:
        return preference.weight
    found = property_amount(member, preference.sorter.name)
    least, most = ranges.get(preference.sorter.name, (0, 0))
    if found is None or least == most:
        return 0
    ahead = found - least if preference.sorter.sort_order is SortOrder.descending else most - found
    return _rounded(ahead * preference.weight, most - least)


def _rounded(share: int, whole: int) -> int:
    """share / whole as an integer; halves are rounded away from zero."""
    size = (2 * abs(share) + whole) // (2 * whole)
    return size if share >= 0 else -size


# Properties


RESOURCE_PREFIX: Final = "resources.kubernetes-fleet.io/"
_USAGES: Final = ("total", "allocatable", "available")


def property_problem(name: str) -> str | None:
    """Why this cannot be the name of a property; None if it can."""
    usage, dash, resource = name.removeprefix(RESOURCE_PREFIX).partition("-")
    if not name.startswith(RESOURCE_PREFIX) or (usage in _USAGES and dash and resource):
        return None if name else "a property needs a name"
    usages = f"{', '.join(_USAGES[:-1])} or {_USAGES[-1]}"
    return f"{name!r} names no property: write {RESOURCE_PREFIX}, then {usages}, then -cpu"


def property_amount(member: MemberCluster, name: str) -> int | None:
    """What the member has of a property; None if it has none, or says something that is no quantity."""
    text = reported_property(member, name)
    return None if text is None else to_billionths(text)


def reported_property(member: MemberCluster, name: str) -> str | int | None:
    """What the member says of a property, as it says it."""
    if name.startswith(RESOURCE_PREFIX):
        return _usage(member.status.resource_usage, name[len(RESOURCE_PREFIX) :])
    found = member.status.properties.get(name)
    return None if found is None else found.value


@lru_cache(maxsize=65_536)  # the same few texts come again with every look, and reading one costs
def to_billionths(text: str | int) -> int | None:
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
