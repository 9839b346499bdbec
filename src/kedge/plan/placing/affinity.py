"""Affinity: which clusters a policy requires, and how much it likes each.

`read` turns a policy into this, or into the sentence that says what is wrong with it. A cluster that reports nonsense
is that cluster's problem alone: it does not match, and its reason says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kedge.api.cluster import MemberCluster
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
from kedge.plan.placing.properties import amount, billionths, problem_of, reported

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


class BadPolicy(ValueError):
    """A policy that means nothing: says which field, and how to put it right."""


class Requirement(Struct, frozen=True):
    """One thing that must hold of a property."""

    name: str
    holds: Callable[[int, int], bool]
    than: int

    def fits(self, member: MemberCluster) -> bool:
        found = amount(member, self.name)
        return found is not None and self.holds(found, self.than)


class Term(Struct, frozen=True):
    """Clusters by labels and properties: everything must hold."""

    labels: LabelSelector | None
    requirements: tuple[Requirement, ...]

    def fits(self, member: MemberCluster) -> bool:
        if self.labels is not None and not self.labels.matches(member.metadata.labels):
            return False
        return all(requirement.fits(member) for requirement in self.requirements)


class Preference(Struct, frozen=True):
    """Clusters that are liked, by so much; with a sorter, by where they stand between the least and the most."""

    weight: int
    term: Term
    sorter: PropertySorter | None


class Affinity(Struct, frozen=True):
    """What a policy asks of clusters."""

    required: tuple[Term, ...] = ()
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
        found = {name: [a for each in members if (a := amount(each, name)) is not None] for name in names}
        return {name: (min(amounts), max(amounts)) for name, amounts in found.items() if amounts}

    def score(self, member: MemberCluster, ranges: Mapping[str, tuple[int, int]]) -> int:
        """How much the policy likes this cluster."""
        return sum(_liking(each, member, ranges) for each in self.preferred if each.term.fits(member))

    @property
    def reads_properties(self) -> bool:
        """Whether a change of a cluster's properties can matter."""
        terms = (*self.required, *(each.term for each in self.preferred))
        return any(term.requirements for term in terms) or any(each.sorter for each in self.preferred)

    def _unread(self, member: MemberCluster) -> str | None:
        """The first property that is asked for and that the cluster reports as no quantity."""
        for name in dict.fromkeys(each.name for term in self.required for each in term.requirements):
            text = reported(member, name)
            if text is not None and billionths(text) is None:
                return f"its property {name} is {text!r}, which is not a quantity"
        return None


def reads_properties(policy: PlacementPolicy | None) -> bool:
    """Whether a change of a cluster's properties can matter to this policy."""
    try:
        return read(policy).reads_properties
    except BadPolicy:
        return False


def read(policy: PlacementPolicy | None) -> Affinity:
    """What the policy asks of clusters. Raises BadPolicy if it means nothing."""
    affinity = policy.affinity.cluster_affinity if policy is not None and policy.affinity else None
    if affinity is None:
        return Affinity()
    return Affinity(tuple(_required(affinity)), tuple(_preferred(affinity)))


def _required(affinity: ClusterAffinity) -> Iterable[Term]:
    selector = affinity.required_during_scheduling_ignored_during_execution
    for n, term in enumerate(selector.cluster_selector_terms if selector else ()):
        yield _term(term, f"{_AT}.{_REQUIRED}[{n}]")


def _preferred(affinity: ClusterAffinity) -> Iterable[Preference]:
    for n, each in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield _preference(each, f"{_AT}.{_PREFERRED}[{n}].preference")


def _preference(each: PreferredClusterSelector, where: str) -> Preference:
    sorter = each.preference.property_sorter
    if sorter is not None and (wrong := problem_of(sorter.name)):
        raise BadPolicy(f"{where}.propertySorter.name: {wrong}")
    return Preference(each.weight, _term(each.preference, where), sorter)


def _term(term: ClusterSelectorTerm, where: str) -> Term:
    if term.label_selector is not None:
        try:
            term.label_selector.matches({})
        except InvalidSelector as error:
            raise BadPolicy(f"{where}.labelSelector: {error}") from error
    expressions = term.property_selector.match_expressions if term.property_selector else ()
    at = f"{where}.propertySelector.matchExpressions"
    return Term(term.label_selector, tuple(_requirement(each, f"{at}[{n}]") for n, each in enumerate(expressions)))


def _requirement(each: PropertySelectorRequirement, where: str) -> Requirement:
    if wrong := problem_of(each.name):
        raise BadPolicy(f"{where}.name: {wrong}")
    if each.operator not in _COMPARE:
        raise BadPolicy(f"{where}.operator: {each.operator!r} is none of {', '.join(_COMPARE)}")
    if len(each.values) != 1:
        raise BadPolicy(f"{where}.values: {len(each.values)} values are given: give exactly one quantity")
    than = billionths(each.values[0])
    if than is None:
        raise BadPolicy(f"{where}.values: {each.values[0]!r} is not a quantity: write a number, such as 4, 500m or 1Gi")
    return Requirement(each.name, _COMPARE[each.operator], than)


def _liking(preference: Preference, member: MemberCluster, ranges: Mapping[str, tuple[int, int]]) -> int:
    if preference.sorter is None:
        return preference.weight
    found = amount(member, preference.sorter.name)
    least, most = ranges.get(preference.sorter.name, (0, 0))
    if found is None or least == most:
        return 0
    ahead = found - least if preference.sorter.sort_order is SortOrder.descending else most - found
    return _rounded(ahead * preference.weight, most - least)


def _rounded(share: int, whole: int) -> int:
    """share / whole as a whole number; halves go away from zero."""
    size = (2 * abs(share) + whole) // (2 * whole)
    return size if share >= 0 else -size
