"""Situations: what kubefleet.md says is to be seen, driven through the whole system and read from the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from controlplane.cluster import Cluster
from fleet.bed import Backend
from fleet.situations import columns, decisions, flows, members, naming, placements, working
from fleet.situations.playing import Group, Performance, Situation, perform
from fleet.situations.words import KNOWN, LATER, MOMENTS, OWN

GROUPS = tuple(each.GROUP for each in (placements, decisions, naming, columns, working, members, flows))
ALL = [(group, situation) for group in GROUPS for situation in group.situations]
SECONDS = 600  # the first test of a group plays all of it

pytestmark = pytest.mark.timeout(SECONDS)


def rows(*, only_real: bool = False) -> list[object]:
    return [pytest.param(group, one, id=one.id) for group, one in ALL if one.on_real or not only_real]


def performances(backend: Backend) -> Callable[[Group], Performance]:
    """What is to be seen of each group, played when it is first asked for."""
    played: dict[str, Performance] = {}

    def of(group: Group) -> Performance:
        if group.title not in played:
            played[group.title] = perform(group, backend)
        return played[group.title]

    return of


@pytest.fixture(scope="session")
def embedded() -> Callable[[Group], Performance]:
    return performances(Backend("embedded"))


@pytest.fixture(scope="session")
def real(real_fleet: Mapping[str, Cluster]) -> Callable[[Group], Performance]:
    return performances(Backend("real", real_fleet))


@pytest.mark.parametrize(("group", "situation"), rows())
def test_it_is_as_kubefleet_has_it(
    embedded: Callable[[Group], Performance], group: Group, situation: Situation
) -> None:
    assert embedded(group).of(situation) == situation.expected


@pytest.mark.real
@pytest.mark.timeout(2 * SECONDS)  # starting the clusters counts, too
@pytest.mark.parametrize(("group", "situation"), rows(only_real=True))
def test_it_is_so_on_real_clusters(real: Callable[[Group], Performance], group: Group, situation: Situation) -> None:
    assert real(group).of(situation) == situation.expected


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.title)
def test_nothing_is_ever_said_that_kubefleet_does_not_know(
    embedded: Callable[[Group], Performance], group: Group
) -> None:
    assert sorted(map(str, embedded(group).words - KNOWN - {OWN})) == []


def test_everything_that_can_be_said_was_said(embedded: Callable[[Group], Performance]) -> None:
    said = {word for group in GROUPS for word in embedded(group).words}
    assert sorted(str(word) for word in KNOWN - said if word.reason not in LATER | MOMENTS) == []
    assert sorted(str(word) for word in said if word.reason in LATER) == []


def test_there_are_at_least_sixty() -> None:
    assert len({situation.name for _, situation in ALL}) >= 60
