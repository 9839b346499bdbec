"""Pod counts: how many pods a revision runs on each cluster, and how many of them it may take away while it moves in.

Counted are workloads that say how many pods they run: Deployments, StatefulSets, ReplicaSets, CloneSets and kinds of
plug-ins. How many pods a DaemonSet runs only its cluster knows; how many it may take away at once its manifest says as
well, if its maxUnavailable is a number. The pods of a Job are not replaced: it is left out. The counts of a revision
are kept in an annotation of its first snapshot, so that whoever sees the snapshot's metadata knows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from kedge.api.fleet import POD_COUNTS
from kedge.api.meta import ObjectMeta
from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, group_of, name_of, text
from kedge.plan.workloads import WorkloadHandler, find_handler
from kedge.plan.workloads.handler import ON_DELETE
from kedge.plan.workloads.jobs import Jobs
from kedge.plan.workloads.registry import BrokenHandler, installed_handlers

LONGEST: Final = 100_000
"""How many characters an annotation of counts may have; all workloads of a longer one count as one."""
_DIGEST: Final = 12  # characters of it


class WorkloadCounts(Struct, frozen=True, array_like=True):
    """One workload."""

    pods: int
    takes: int
    """How many of them it may take away at once while it replaces them."""
    digest: str
    """Of its spec: with the same one nothing is replaced."""
    is_uncounted: bool = False
    """Whether only a cluster knows how many pods it runs; here they are none."""
    is_unbounded: bool = False
    """Whether what it may take away is a share of pods that are not counted."""


class PodCounts(Struct, frozen=True):
    """The workloads of one revision, by what they are called."""

    workloads: Mapping[str, WorkloadCounts] = {}

    @property
    def pods(self) -> int:
        return sum(one.pods for one in self.workloads.values())

    @property
    def is_uncounted(self) -> bool:
        """Whether it runs pods that are not counted."""
        return any(one.is_uncounted for one in self.workloads.values())

    def takes_after(self, before: PodCounts | None) -> int:
        """How many pods may be lacking at once while a cluster moves here; None: from what is not known."""
        return sum(one.takes for _, one in self._changed(before))

    def unbounded_after(self, before: PodCounts | None) -> tuple[str, ...]:
        """The workloads that change while a cluster moves here, and of which nobody knows how many pods may lack."""
        return tuple(name for name, one in self._changed(before) if one.is_unbounded)

    def _changed(self, before: PodCounts | None) -> Iterator[tuple[str, WorkloadCounts]]:
        known = before.workloads if before is not None else {}
        for name, one in self.workloads.items():
            if name not in known or known[name].digest != one.digest:
                yield name, one


def count_pods(manifests: Iterable[Object]) -> PodCounts:
    """The counts of these objects."""
    found = ((name_of(one), _counts(one)) for one in manifests)
    return PodCounts({name: counts for name, counts in found if counts is not None})


def _counts(manifest: Object) -> WorkloadCounts | None:
    handler = find_handler(group_of(manifest), text(manifest, "kind"))
    if handler is None or isinstance(handler, BrokenHandler | Jobs):
        return None
    spec = digest(at(manifest, "spec"))[:_DIGEST]
    takes = 0 if handler.strategy(manifest).type == ON_DELETE else handler.limits(manifest).max_unavailable
    if handler.scale(1) is None:
        return WorkloadCounts(0, takes, spec, is_uncounted=True, is_unbounded=_takes_a_share(handler, manifest))
    pods = handler.replicas(manifest).desired
    return WorkloadCounts(pods, min(takes, pods), spec)


def _takes_a_share(handler: WorkloadHandler, manifest: Object) -> bool:
    """Whether what it may take away at once depends on how many pods it runs."""
    strategy = handler.strategy(manifest)
    given = str(strategy.max_unavailable)
    return strategy.type != ON_DELETE and given.endswith("%") and given != "0%"


# The annotation


def counts_text(counts: PodCounts) -> str:
    """The annotation, in the order of names."""
    text_ = msgspec.json.encode(dict(sorted(counts.workloads.items()))).decode()
    if len(text_) <= LONGEST:
        return text_
    every = counts.workloads.values()
    as_one = WorkloadCounts(
        counts.pods,
        sum(one.takes for one in every),
        digest(text_)[:_DIGEST],
        is_uncounted=any(one.is_uncounted for one in every),
        is_unbounded=any(one.is_unbounded for one in every),
    )
    return counts_text(PodCounts({"all": as_one}))


def read_counts(snapshot: ObjectMeta) -> PodCounts | None:
    """The counts that a snapshot has; None if it has none, or none that can be read."""
    try:
        found = msgspec.json.decode(snapshot.annotations.get(POD_COUNTS, ""), type=dict[str, WorkloadCounts])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return PodCounts(found)


installed_handlers()  # reads files, which no event loop may wait for: so it is done before one runs
