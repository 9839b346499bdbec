"""Alignment of clusters that apply, act and report as late as they like: the budget is kept at every instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest
from msgspec import Struct

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.alignment import align
from kedge.plan.aligning.ledger import Member
from plan.aligning.members import CloneSetMember, DeploymentMember, StatefulSetMember

STEPS = 60_000


class Case(Struct, frozen=True):
    kind: type[DeploymentMember]
    replicas: tuple[int, ...]
    unavailable: int
    surge: int = 0
    partition: int = 0


CASES = [
    Case(DeploymentMember, (4, 6), 2, 1),
    Case(DeploymentMember, (1,) * 10, 2),
    Case(DeploymentMember, (3, 3, 4), 0, 2),
    Case(DeploymentMember, (5, 5, 5, 5), 3, 2),
    Case(CloneSetMember, (3, 7), 2, 0, 4),
    Case(CloneSetMember, (1,) * 10, 3, 0, 5),
    Case(CloneSetMember, (5, 5, 10), 2, 2, 7),
    Case(StatefulSetMember, (3, 7), 2, 0, 4),
    Case(StatefulSetMember, (1,) * 10, 3, 0, 5),
    Case(StatefulSetMember, (2, 5, 4), 1, 0, 3),
]


class Fleet:
    """The clusters of a case, and a user who changes things midway."""

    def __init__(self, case: Case, seed: int) -> None:
        self.random = Random(seed)
        self.case = case
        self.members = [case.kind(f"c{n}", count, "v1") for n, count in enumerate(case.replicas)]
        self.wanted = {member.name: count for member, count in zip(self.members, case.replicas, strict=True)}
        self.template = "v2"
        self.partition = case.partition
        self.fewest = self.aim.fewest

    @property
    def aim(self) -> Aim:
        case = self.case
        total = sum(self.wanted.values())
        return Aim(total, case.unavailable, case.surge, self.partition, is_partitioned=case.kind.is_partitioned)

    def align(self) -> None:
        seen = [
            Member(
                one.name,
                self.wanted[one.name],
                self.template,
                one.specs,
                one.report,
                is_ordered=one.is_ordered,
                has_sets=one.has_sets,
            )
            for one in self.members
        ]
        found = align(self.aim, seen)
        for member in self.members:
            if member.name in found.specs:
                member.write(found.specs[member.name])

    def step(self, speeds: dict[str, int]) -> None:
        member, random = self.random.choice(self.members), self.random
        chance = random.random() * (1 if random.random() < 1 / speeds[member.name] else 0.75)
        for limit, act in (
            (0.12, self.align),
            (0.27, member.store),
            (0.45, member.observe),
            (0.60, member.work),
            (0.75, lambda: member.become_available(random)),
            (0.87, member.send),
            (1.01, member.deliver),
        ):
            if chance < limit:
                act()
                return

    def check(self) -> None:
        pods = [pod for member in self.members for pod in member.pods]
        assert sum(is_available for _, is_available in pods) >= min(self.fewest, self.aim.fewest)
        assert len(pods) <= self.aim.most
        if self.case.kind.is_partitioned:
            assert sum(name == self.template for name, _ in pods) <= self.aim.most_updated

    @property
    def is_done(self) -> bool:
        pods = [pod for member in self.members for pod in member.pods]
        updated = sum(pod == (self.template, True) for pod in pods)
        return updated == self.aim.moved and len(pods) == self.aim.replicas and all(ready for _, ready in pods)


Change = Callable[[Fleet], None]


def _run(fleet: Fleet, changes: Mapping[int, Change]) -> None:
    speeds = {member.name: fleet.random.choice([1, 1, 3, 8]) for member in fleet.members}
    last = max(changes, default=0)
    for number in range(STEPS):
        if number in changes:
            changes[number](fleet)
        fleet.step(speeds)
        fleet.check()
        if number > last and number % 20 == 0 and fleet.is_done:
            return
    pytest.fail("it never ended")


def _release(template: str) -> Change:
    def change(fleet: Fleet) -> None:
        fleet.template = template

    return change


def _move_replicas(fleet: Fleet) -> None:
    """Some replicas of one cluster go to another, perhaps all of them."""
    source, target = fleet.random.sample(list(fleet.wanted), 2)
    number = fleet.random.randint(0, fleet.wanted[source])
    fleet.wanted[source] -= number
    fleet.wanted[target] += number


def _grow(fleet: Fleet) -> None:
    """A cluster is to have some more pods. That they are not there at once is nobody's fault."""
    fleet.wanted[fleet.random.choice(list(fleet.wanted))] += fleet.random.randint(1, 3)
    fleet.fewest = 0


def _lower_partition(fleet: Fleet) -> None:
    fleet.partition = fleet.random.randint(0, fleet.partition)


def _end_partition(fleet: Fleet) -> None:
    """Replicas that move to a cluster that has only new pods wait for it: such a cluster creates no others."""
    fleet.partition = 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_budget_is_kept_at_every_instant(case: Case, seed: int) -> None:
    _run(Fleet(case, seed), {})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_template_that_changes_midway_gives_nobody_more(case: Case, seed: int) -> None:
    _run(Fleet(case, seed), {Random(seed).randrange(100, 900): _release("v3")})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_replicas_that_move_midway_are_added_before_others_go(case: Case, seed: int) -> None:
    moments = Random(seed).sample(range(1_500), 3)
    _run(Fleet(case, seed), dict.fromkeys(moments, _move_replicas) | {1_500: _end_partition})


@pytest.mark.parametrize("seed", [0, 1, 2, 8, 18])
@pytest.mark.parametrize("case", [case for case in CASES if case.partition], ids=str)
def test_pods_that_are_added_midway_get_no_more_of_the_template_than_the_partition_lets_through(
    case: Case, seed: int
) -> None:
    moments = Random(seed).sample(range(1_500), 3)
    _run(Fleet(case, seed), dict.fromkeys(moments, _grow) | {1_500: _end_partition})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", [case for case in CASES if case.partition], ids=str)
def test_a_partition_that_is_lowered_lets_more_pods_go(case: Case, seed: int) -> None:
    moments = Random(seed).sample(range(1_500), 2)
    _run(Fleet(case, seed), dict.fromkeys(moments, _lower_partition))
