"""Beside a Karmada whose every part is as late as it likes: the budget is kept at every instant, and it ends."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from msgspec import Struct, convert

from kedge.api.condition import FALSE, TRUE
from kedge.api.karmada.bindings import BindingSpec, BoundResource, TargetCluster
from kedge.api.karmada.keys import SEQUENCE, TEMPLATE_GENERATION
from kedge.api.karmada.policies import ResourceSelector
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.beside import BesideInput, plan_beside
from kedge.plan.aligning.beside_policies import policy_problem
from kedge.plan.aligning.interpreter import aim_of, calculate_template_hash
from kedge.plan.aligning.ledger import Spec
from kedge.plan.aligning.turns import Turn, TurnCode, TurnRecord, read_turns, turns_text
from kedge.plan.aligning.wait_text import wait_sentence
from plan.aligning.members import DeploymentMember

STEPS = 60_000
_SINCE = {"lastTransitionTime": "2030-01-01T00:00:00Z", "reason": "x", "message": ""}
_PATHS = {"/spec/strategy": "strategy", "/spec/replicas": "replicas", "/spec/paused": "paused"}


class Case(Struct, frozen=True):
    replicas: tuple[int, ...]
    unavailable: int
    surge: int


CASES = [Case((4, 6), 2, 1), Case((1, 1, 1, 1, 1), 1, 0), Case((3, 3, 4), 0, 2), Case((5, 5, 5), 3, 2)]


class Site:
    """One cluster: its Work, who brings it there, its Deployment, and what is reported of that."""

    def __init__(
        self, name: str, replicas: int, manifest: dict[str, Any], *, tells_seq: bool, is_new: bool = False
    ) -> None:
        """A new one is suspended, and nothing was sent there yet."""
        self.name, self.tells_seq, self.is_new = name, tells_seq, is_new
        self.member = DeploymentMember(name, 0 if is_new else replicas, calculate_template_hash(manifest))
        self.manifest, self.suspended, self.version = manifest, is_new, 1
        self.dispatching = FALSE if is_new else TRUE
        self.seen: tuple[dict[str, Any], bool] | None = None  # what the binding controller looked at
        self.in_hand: dict[str, Any] | None = None  # what the execution controller brings to the cluster
        self.there, self.generation, self.observed = manifest, 1, 1
        self.under_way: list[dict[str, Any]] = []
        self.status = {} if is_new else self._status()

    @property
    def work(self) -> Work:
        conditions = [{"type": "Dispatching", "status": self.dispatching, **_SINCE}]
        identifier = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web"}
        applied = [{"type": "Applied", "status": TRUE, **_SINCE}]
        body = {
            "metadata": {"name": "web", "namespace": f"karmada-es-{self.name}", "generation": self.version},
            "spec": {"workload": {"manifests": [self.manifest]}, "suspendDispatching": self.suspended},
            "status": {
                "conditions": [*conditions, *([] if self.is_new else applied)],
                "manifestStatuses": [{"identifier": identifier, "status": self.status}] if self.status else [],
            },
        }
        return convert(body, Work)

    def written(self) -> None:
        """The binding controller writes what it looked at some time ago."""
        if self.seen is not None and self.seen != (self.manifest, self.suspended):
            self.manifest, self.suspended = self.seen
            self.version += 1
        self.seen = None

    def execute(self) -> None:
        """The execution controller takes a version of the Work, or is done with the one it has."""
        if self.in_hand is None:
            self.dispatching = FALSE if self.suspended else TRUE
            self.in_hand = None if self.suspended else self.manifest
            return
        if self.in_hand["spec"] != self.there["spec"]:
            self.generation += 1
        self.is_new = False
        self.there, self.in_hand = self.in_hand, None
        self.member.stored = _spec(self.there, self.generation)

    def work_on(self) -> None:
        """Its controller gets on."""
        if not self.there["spec"]["paused"]:
            self.member.work()

    def observe(self) -> None:
        if not self.is_new:
            self.observed = self.generation
            self.member.observe()

    def send(self) -> None:
        if not self.is_new:
            self.under_way.append(self._status())

    def deliver(self) -> None:
        if self.under_way:
            self.status = self.under_way.pop(0)

    def _status(self) -> dict[str, Any]:
        found, notes = self.member.status(), self.there["metadata"]["annotations"]
        seq = {"alignmentSeq": int(notes[SEQUENCE])} if self.tells_seq and SEQUENCE in notes else {}
        return {
            "generation": self.generation,
            "observedGeneration": self.observed,
            "resourceTemplateGeneration": int(notes[TEMPLATE_GENERATION]),
            "replicas": found.pods,
            "updatedReplicas": found.updated,
            "availableReplicas": found.available,
            **seq,
        }


def _spec(manifest: Mapping[str, Any], seq: int) -> Spec:
    found = aim_of(manifest, manifest["spec"]["replicas"])
    return Spec(seq, calculate_template_hash(manifest), found.replicas, found.unavailable, found.surge)


class Karmada:
    """A binding with its clusters, and Kedge beside it."""

    def __init__(self, case: Case, seed: int, *, tells_seq: bool, is_new: bool = False) -> None:
        self.random, self.case = Random(seed), case
        self.wanted = {f"c{number}": replicas for number, replicas in enumerate(case.replicas)}
        self.image, self.edits, self.is_paused = "v1", 1, False
        self.record, self.overrides = TurnRecord(), dict[str, Any]()
        self.suspended: set[str] = set(self.wanted) if is_new else set()
        self.sites = [
            Site(name, number, self._propagated(name), tells_seq=tells_seq, is_new=is_new)
            for name, number in self.wanted.items()
        ]

    def template(self, replicas: int) -> dict[str, Any]:
        rolling = {"maxUnavailable": self.case.unavailable, "maxSurge": self.case.surge}
        containers = [{"name": "app", "image": self.image}]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "annotations": {TEMPLATE_GENERATION: str(self.edits)}},
            "spec": {
                "replicas": replicas,
                "paused": self.is_paused,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
                "template": {"spec": {"containers": containers}},
            },
        }

    def _propagated(self, cluster: str) -> dict[str, Any]:
        found = copy.deepcopy(self.template(self.wanted[cluster]))
        for path, value in self.overrides.get(cluster, ()):
            if path in _PATHS:
                found["spec"][_PATHS[path]] = value
            else:
                found["metadata"]["annotations"][SEQUENCE] = value
        return found

    def release(self, image: str) -> None:
        self.image, self.edits = image, self.edits + 1

    def pause(self, *, is_paused: bool) -> None:
        self.is_paused, self.edits = is_paused, self.edits + 1

    # What happens

    def align(self) -> None:
        """One look of Kedge. Sometimes it crashes between its two writes."""
        clusters = tuple(TargetCluster(name, number) for name, number in self.wanted.items())
        spec = BindingSpec(BoundResource("apps/v1", "Deployment", "web", "shop"), clusters=clusters)
        works = {site.name: site.work for site in self.sites}
        total = sum(self.wanted.values())
        found = plan_beside(BesideInput(spec, self.template(total), works, set(works), self.record))
        assert not found.problems
        self.record, self.overrides = found.record, dict(found.overrides)
        if self.random.random() < 0.8:
            self.suspended = set(works) - set(found.open)

    def look(self, site: Site) -> None:
        if site.seen is None:
            site.seen = (self._propagated(site.name), site.name in self.suspended)

    def step(self) -> None:
        site = self.random.choice(self.sites)
        acts = (
            *(self.align, lambda: self.look(site), site.written, site.execute, site.observe, site.work_on),
            *(lambda: site.member.become_available(self.random), site.send, site.deliver),
        )
        self.random.choice(acts)()

    @property
    def pods(self) -> list[tuple[str, bool]]:
        return [pod for site in self.sites for pod in site.member.pods]

    def check(self) -> None:
        total = sum(self.case.replicas)
        assert sum(is_available for _, is_available in self.pods) >= total - self.case.unavailable
        assert len(self.pods) <= total + self.case.surge

    @property
    def is_done(self) -> bool:
        new = calculate_template_hash(self.template(1))
        counts = {site.name: len(site.member.pods) for site in self.sites}
        return set(self.pods) == {(new, True)} and counts == self.wanted

    @property
    def is_at_rest(self) -> bool:
        return not self.record.turns and len(self.record.ledger.specs) == len(self.sites)


def play(karmada: Karmada, changes: Mapping[int, Any]) -> None:
    number, begun = 0, False
    while number < STEPS:
        karmada.step()
        karmada.check()
        begun = begun or karmada.is_at_rest  # what ran before is taken over
        if not begun:
            continue
        number += 1
        if number in changes:
            changes[number](karmada)
        if number > max(changes) and number % 20 == 0 and karmada.is_done and karmada.is_at_rest:
            return
    pytest.fail("it never ended")


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_budget_is_kept_at_every_instant(case: Case, seed: int, *, tells_seq: bool) -> None:
    play(Karmada(case, seed, tells_seq=tells_seq), {1: lambda karmada: karmada.release("v2")})


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_templates_that_change_midway_give_nobody_more(case: Case, seed: int, *, tells_seq: bool) -> None:
    moments = sorted(Random(seed).sample(range(2, 3000), 4))
    changes = {at: lambda karmada, at=at: karmada.release(f"v{at}") for at in (1, *moments)}
    play(Karmada(case, seed, tells_seq=tells_seq), changes)


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pause_midway_stops_no_cluster_for_ever(case: Case, seed: int, *, tells_seq: bool) -> None:
    """One that is paused in its turn would hear of it only with the next one that it is to go on."""
    moments = sorted(Random(seed).sample(range(2, 2000), 4))
    changes: dict[int, Any] = {1: lambda karmada: karmada.release("v2")}
    for number, moment in enumerate(moments):
        changes[moment] = lambda karmada, number=number: karmada.pause(is_paused=number % 2 == 0)
    play(Karmada(case, seed, tells_seq=tells_seq), changes)


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_replicas_that_move_midway_are_added_before_others_go(seed: int, *, tells_seq: bool) -> None:
    def move(karmada: Karmada) -> None:
        karmada.wanted["c0"] += 2
        karmada.wanted["c1"] -= 2

    changes = {1: lambda karmada: karmada.release("v2"), 1 + 100 * seed: move}
    play(Karmada(CASES[0], seed, tells_seq=tells_seq), changes)


MOVES = [Case((4, 6), 1, 0), Case((4, 6), 0, 1), Case((3, 3, 4), 2, 0), Case((4, 6), 2, 1)]


def _move(karmada: Karmada) -> None:
    """Two replicas of one cluster, if it has as many, are to run in another one."""
    here, there = karmada.random.sample(sorted(karmada.wanted), 2)
    number = min(2, karmada.wanted[here])
    karmada.wanted[here] -= number
    karmada.wanted[there] += number


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", MOVES, ids=str)
def test_replicas_move_whatever_the_budget_and_however_often_the_template_changes(
    case: Case, seed: int, *, tells_seq: bool
) -> None:
    moments = sorted(Random(seed).sample(range(2, 3000), 6))
    changes: dict[int, Any] = dict.fromkeys((1, *moments[::2]), _move)
    changes |= {moment: lambda karmada, moment=moment: karmada.release(f"v{moment}") for moment in moments[1::2]}
    play(Karmada(case, seed, tells_seq=tells_seq), changes)


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_new_clusters_never_run_too_many_pods_even_if_the_template_changes_at_once(
    case: Case, seed: int, *, tells_seq: bool
) -> None:
    karmada, most = Karmada(case, seed, tells_seq=tells_seq, is_new=True), sum(case.replicas) + case.surge
    changes = dict.fromkeys(Random(seed).sample(range(2000), 3))
    for number in range(STEPS):
        if number in changes:
            karmada.release(f"v{number}")
        karmada.step()
        assert len(karmada.pods) <= most
        if number > 2000 and karmada.is_done and karmada.is_at_rest:
            return
    pytest.fail("it never ended")


# What clusters wait for in their turns


def _waits(karmada: Karmada, **gone: None) -> dict[str, str]:
    """The codes, by cluster, if Karmada has no Work of those that are gone."""
    clusters = tuple(TargetCluster(name, number) for name, number in karmada.wanted.items())
    spec = BindingSpec(BoundResource("apps/v1", "Deployment", "web", "shop"), clusters=clusters)
    works = {site.name: site.work for site in karmada.sites if site.name not in gone}
    template = karmada.template(sum(karmada.wanted.values()))
    found = plan_beside(BesideInput(spec, template, works, set(works), karmada.record))
    karmada.record, karmada.overrides = found.record, dict(found.overrides)
    karmada.suspended = set(works) - set(found.open)
    return {name: wait.code for name, wait in found.waiting.items()}


def _written(karmada: Karmada) -> None:
    for site in karmada.sites:
        karmada.look(site)
        site.written()


def _executed(karmada: Karmada) -> None:
    for site in karmada.sites:
        site.execute()


def _reported(karmada: Karmada) -> None:
    for site in karmada.sites:
        site.observe()
        site.send()
        site.deliver()


def test_every_step_of_a_turn_says_what_of_karmada_it_waits_for() -> None:
    karmada = Karmada(Case((4,), 1, 0), 1, tells_seq=False)
    assert _waits(karmada, c0=None) == {"c0": TurnCode.no_work}
    assert _waits(karmada) == {"c0": TurnCode.taken_over}  # it is let through as Karmada does that
    _written(karmada)
    _executed(karmada)
    assert _waits(karmada) == {}  # it is suspended, and has what it is to have
    karmada.release("v2")
    _written(karmada)
    assert _waits(karmada) == {}  # it is granted now
    assert _waits(karmada) == {"c0": TurnCode.granted}
    _written(karmada)
    assert _waits(karmada) == {"c0": TurnCode.let_through}
    _written(karmada)
    _executed(karmada)
    _executed(karmada)
    assert _waits(karmada) == {"c0": TurnCode.let_through}
    _reported(karmada)
    assert _waits(karmada) == {"c0": TurnCode.closing}
    _written(karmada)
    assert _waits(karmada) == {"c0": TurnCode.closing}
    _executed(karmada)
    assert _waits(karmada) == {"c0": AlignCode.rolling}


def test_a_work_that_karmada_has_not_looked_at_is_waited_for() -> None:
    karmada = Karmada(Case((4,), 1, 0), 1, tells_seq=False, is_new=True)
    karmada.sites[0].dispatching = TRUE
    assert _waits(karmada) == {"c0": TurnCode.work_unseen}
    karmada.sites[0].dispatching = FALSE
    assert _waits(karmada) == {}


def test_a_cluster_that_is_not_heard_from_says_so_in_its_turn() -> None:
    karmada = Karmada(Case((4,), 1, 0), 1, tells_seq=False)
    spec = BindingSpec(BoundResource("apps/v1", "Deployment", "web", "shop"), clusters=(TargetCluster("c0", 4),))
    found = plan_beside(BesideInput(spec, karmada.template(4), {"c0": karmada.sites[0].work}, set(), karmada.record))
    assert {name: wait.code for name, wait in found.waiting.items()} == {"c0": AlignCode.unreachable}


def test_what_alignment_would_grant_and_a_turn_cannot_bring_waits_for_the_budget() -> None:
    karmada = Karmada(Case((4, 1, 3), 0, 2), 1, tells_seq=False)
    _waits(karmada)
    _written(karmada)
    _executed(karmada)
    assert _waits(karmada) == {}
    karmada.wanted["c1"] = 2
    karmada.release("v2")
    _written(karmada)
    clusters = tuple(TargetCluster(name, number) for name, number in karmada.wanted.items())
    spec = BindingSpec(BoundResource("apps/v1", "Deployment", "web", "shop"), clusters=clusters)
    works = {site.name: site.work for site in karmada.sites}
    found = plan_beside(BesideInput(spec, karmada.template(9), works, set(works), karmada.record))
    assert found.alignment is not None
    assert set(found.alignment.specs) == {"c1"}
    assert wait_sentence(found.waiting["c0"]) == (
        "at most 0 of 9 pods may be unavailable, and 2 may be extra: c1 holds that until new pods there are available"
    )


# The policy, and what is kept


DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}


def _bound(kind: str = "Deployment", version: str = "apps/v1", **placement: Any) -> BindingSpec:
    return BindingSpec(BoundResource(version, kind, "web", "shop"), placement=placement or DIVIDED)


def test_a_policy_of_its_own_may_let_clusters_through() -> None:
    assert policy_problem([ResourceSelector("apps/v1", "Deployment", name="web")], _bound()) == ""


@pytest.mark.parametrize(
    "selectors",
    [
        [ResourceSelector("apps/v1", "Deployment")],
        [ResourceSelector("apps/v1", "Deployment", name="web"), ResourceSelector("v1", "ConfigMap", name="web")],
        [ResourceSelector("v1", "ConfigMap", name="web")],
        [],
    ],
)
def test_a_policy_that_selects_more_is_refused(selectors: list[ResourceSelector]) -> None:
    assert "selects more than Deployment shop/web" in policy_problem(selectors, _bound())


def test_a_workload_that_runs_whole_in_each_cluster_is_refused() -> None:
    copied = _bound(replicaScheduling={"replicaSchedulingType": "Duplicated"})
    problem = policy_problem([ResourceSelector("apps/v1", "Deployment", name="web")], copied)
    assert problem == "its replicas are not divided over the clusters"


def test_other_kinds_are_refused() -> None:
    problem = policy_problem([ResourceSelector("apps/v1", "StatefulSet", name="web")], _bound("StatefulSet"))
    assert problem == "beside a Karmada only Deployments of apps/v1 are aligned, not StatefulSet of apps/v1"


def test_turns_are_read_as_they_were_written() -> None:
    turns = {"b": Turn(3, 1, "abc", is_open=False), "a": Turn(7, -2, "def")}
    assert read_turns(turns_text(turns)) == turns
    assert read_turns("") == {}
    with pytest.raises(ValueError, match="the turns of the alignment cannot be read"):
        read_turns("[1]")
