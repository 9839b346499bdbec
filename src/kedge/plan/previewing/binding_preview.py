"""Binding preview: in which order the clusters of an aligned workload would move, and what they keep all the while.

Made by the function with which the controller decides (`plan_binding`), again and again, on clusters that do what they
are asked for at once: in each wave, every cluster replaces as many pods as it was granted, and reports that they are
available. The order and the bounds hold whatever the clusters are really like; how long a wave takes is not foretold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kedge.api.karmada.works import ManifestStatus, ResourceIdentifier, Work, WorkloadTemplate, WorkSpec, WorkStatus
from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.alignment import Alignment
from kedge.plan.aligning.binding import BindingInput, BindingPlan, plan_binding
from kedge.plan.aligning.binding_story import BindingStory, PodShare, tell_binding, tell_refused
from kedge.plan.aligning.bounds import Bounds
from kedge.plan.aligning.ledger import Member, Spec
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.aligning.observed import AnyBinding
from kedge.plan.text import path_of

_MOST_WAVES = 10_000
_OBJECT = ResourceIdentifier(ordinal=0, version="", kind="", resource="", name="")


class ClusterPreview(Struct, frozen=True):
    """What one cluster would do."""

    name: str
    pods: int
    """How many replicas are scheduled to it."""
    moves: int = 0
    """How many pods it would replace or add."""
    begins: int | None = None
    """The wave in which it is first written to, counted from 1; None if it is not."""
    ends: int | None = None
    """The wave in which it changes for the last time."""
    granted: PodShare = PodShare()
    """The most it is granted at once."""
    is_done: bool = True
    why: str = ""
    """What it waits for in the end."""


class BindingPreview(Struct, frozen=True):
    """What one binding would do."""

    kind: str
    namespace: str
    name: str
    resource: str
    is_aligned: bool
    replicas: int = 0
    goal: int = 0
    """How many pods are to have the wanted template in the end."""
    fewest: int = 0
    """How many pods are to be available at every moment."""
    most: int = 0
    """How many pods there may be at every moment."""
    pods: int = 0
    """How many there are now."""
    sure: int = 0
    """The fewest pods that were sure to be available in any wave."""
    highest: int = 0
    """The most pods that could be there in any wave."""
    waves: int = 0
    clusters: tuple[ClusterPreview, ...] = ()
    """In the order in which they begin."""
    problems: tuple[str, ...] = ()
    why: str = ""
    """Why it does not end, if it does not."""
    is_done: bool = True

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    def as_json(self) -> dict[str, Any]:
        """The preview for programs."""
        return {**to_builtins(self), "done": self.is_done}


def binding_preview(binding: AnyBinding, seen: BindingInput, failing: Collection[str] = ()) -> BindingPreview:
    """What a binding would do. In the clusters that are `failing`, new pods never become available."""
    played = _Played(seen, failing)
    played.play()
    before, story = tell_binding(binding, seen), tell_binding(binding, played.seen)
    clusters = sorted(
        (played.cluster(before, story, name) for name in {one.name for one in (*before.clusters, *story.clusters)}),
        key=lambda one: (one.begins or _MOST_WAVES, one.ends or 0, one.name),
    )
    return BindingPreview(
        kind=story.kind,
        namespace=story.namespace,
        name=story.name,
        resource=story.resource,
        is_aligned=story.is_aligned,
        replicas=story.replicas,
        goal=story.goal,
        fewest=story.fewest,
        most=story.most,
        pods=before.total("pods"),
        sure=played.sure,
        highest=played.highest,
        waves=max((one.ends or 0 for one in clusters), default=0),
        clusters=tuple(clusters),
        problems=story.problems,
        why="" if story.is_done else story.why,
        is_done=story.is_done or not story.is_aligned,
    )


def refused_preview(binding: AnyBinding, problem: str) -> BindingPreview:
    """What a binding would do that nothing is done about: nothing."""
    story = tell_refused(binding, {}, problem)
    return BindingPreview(
        kind=story.kind,
        namespace=story.namespace,
        name=story.name,
        resource=story.resource,
        is_aligned=False,
        problems=story.problems,
        why=problem,
        is_done=False,
    )


class _Cluster(Struct, frozen=True):
    """The pods of one cluster, as they are assumed to be."""

    template: str = ""
    """The template that the updated pods have."""
    updated: int = 0
    others: int = 0
    broken: int = 0
    """Of the updated ones, those that are not available."""
    broken_others: int = 0
    seq: int = 0

    @property
    def pods(self) -> int:
        return self.updated + self.others

    def report(self) -> Mapping[str, int]:
        return {
            "generation": 1,
            "observedGeneration": 1,
            "alignmentSeq": self.seq,
            "replicas": self.pods,
            "updatedReplicas": self.updated,
            "availableReplicas": self.pods - self.broken - self.broken_others,
            "updatedAvailableReplicas": self.updated - self.broken,
        }

    def after(self, spec: Spec, *, fails: bool) -> _Cluster:
        """One wave by a spec: all it allows at once."""
        found = self if spec.template == self.template else replace(self, updated=0, others=self.pods, broken=0)
        found = replace(found, template=spec.template, seq=spec.seq, broken=found.broken if fails else 0)
        return found._scaled(spec, fails=fails)._moved(spec, fails=fails)

    def _scaled(self, spec: Spec, *, fails: bool) -> _Cluster:
        extra = min(spec.surge, self.broken)  # it stays until a new pod is available
        missing, over = max(0, spec.replicas - self.pods), max(0, self.pods - spec.replicas - extra)
        old = min(missing, max(0, spec.partition - self.others)) if self.others else 0
        fewer = min(over, self.others)
        return replace(
            self,
            others=self.others + old - fewer,
            updated=self.updated + missing - old - (over - fewer),
            broken=self.broken + (missing - old if fails else 0),
            broken_others=max(0, self.broken_others - fewer),
        )

    def _moved(self, spec: Spec, *, fails: bool) -> _Cluster:
        number = max(0, min(self.others - spec.partition, spec.unavailable + spec.surge - self.broken))
        if not fails:
            return replace(
                self,
                updated=self.updated + number,
                others=self.others - number,
                broken_others=max(0, self.broken_others - number),
            )
        taken = min(number, spec.unavailable)
        return replace(
            self,
            updated=self.updated + number,
            others=self.others - taken,
            broken=self.broken + number,
            broken_others=max(0, self.broken_others - taken),
        )


class _Played:
    """A binding whose clusters act wave by wave."""

    def __init__(self, seen: BindingInput, failing: Collection[str]) -> None:
        self.seen = seen
        self._failing = failing
        self._clusters: dict[str, _Cluster] = {}
        self._granted: dict[str, PodShare] = {}
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._held: list[Bounds] = []

    @property
    def sure(self) -> int:
        return min((one.fewest for one in self._held), default=0)

    @property
    def highest(self) -> int:
        return max((one.most for one in self._held), default=0)

    def play(self) -> None:
        """Until nothing changes any more."""
        for wave in range(1, _MOST_WAVES):
            before = self.seen
            plan = plan_binding(before)
            if plan.aim is None or plan.alignment is None:
                break
            self._note(plan.aim, plan.alignment, wave)
            self.seen = self._after(plan, wave)
            if self.seen == before:
                break

    def _note(self, aim: Aim, found: Alignment, wave: int) -> None:
        self._held.append(found.held)
        for name, spec in found.specs.items():
            self._begins.setdefault(name, wave)
            now = self._granted.get(name, PodShare())
            unavailable, surge = min(spec.unavailable, aim.unavailable), min(spec.surge, aim.surge)
            self._granted[name] = PodShare(max(now.unavailable, unavailable), max(now.surge, surge))

    def _after(self, plan: BindingPlan, wave: int) -> BindingInput:
        members, clusters = {one.name: one for one in plan.members}, dict(self.seen.clusters)
        for name, cluster in self.seen.clusters.items():
            specs = plan.ledger.specs.get(name)
            if name in plan.delete:
                clusters[name] = replace(cluster, work=None)
            elif specs and name in plan.manifests and cluster.is_reachable:
                before = self._clusters.get(name) or _now(members[name])
                self._clusters[name] = after = before.after(specs[-1], fails=name in self._failing)
                if before != after:
                    self._ends[name] = wave
                clusters[name] = replace(cluster, work=_reported(plan.manifests[name], after))
        return replace(self.seen, clusters=clusters, ledger=ledger_text(plan.ledger))

    def cluster(self, before: BindingStory, story: BindingStory, name: str) -> ClusterPreview:
        first = next((one for one in before.clusters if one.name == name), None)
        last = next((one for one in story.clusters if one.name == name), None)
        end, had = self._clusters.get(name), first.updated if first is not None else 0
        return ClusterPreview(
            name,
            last.wanted if last is not None else 0,
            moves=max(0, end.updated - had) if end is not None and name in self._begins else 0,
            begins=self._begins.get(name),
            ends=self._ends.get(name) if name in self._begins else None,
            granted=self._granted.get(name, PodShare()),
            is_done=last is None or not last.why,
            why=last.why if last is not None else "",
        )


def _now(member: Member) -> _Cluster:
    """A cluster as it reports itself. Pods of the template that are not available yet are taken to become so."""
    report, template = member.report, member.reported_template
    if not template:  # nobody knows of which template its pods are
        return _Cluster(others=report.pods, broken_others=report.pods - report.available)
    broken = report.updated - report.proven
    down = max(0, report.pods - report.available - broken)
    return _Cluster(template, report.updated, report.pods - report.updated, broken, down, report.seq)


def _reported(manifest: Mapping[str, Any], now: _Cluster) -> Work:
    status = WorkStatus(manifest_statuses=(ManifestStatus(identifier=_OBJECT, status=now.report()),))
    return Work(spec=WorkSpec(workload=WorkloadTemplate(manifests=(manifest,))), status=status)
