"""Pod counts: how many pods a revision runs on each cluster, and how many of them it may take away while it moves in.

Counted are workloads that say how many pods they run: Deployments, StatefulSets, ReplicaSets, CloneSets and kinds of
plug-ins. How many pods a DaemonSet runs only its cluster knows, and the pods of a Job are not replaced: both are left
out. The counts of a revision are kept in an annotation of its first snapshot, so that whoever sees the snapshot's
metadata knows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


class PodCounts(Struct, frozen=True):
    """The workloads of one revision, by what they are called."""

    workloads: Mapping[str, WorkloadCounts] = {}

    @property
    def pods(self) -> int:
        return sum(one.pods for one in self.workloads.values())

    def takes_after(self, before: PodCounts | None) -> int:
        """How many pods may be lacking at once while a cluster moves here; None: from what is not known."""
        known = before.workloads if before is not None else {}
        return sum(
            one.takes for name, one in self.workloads.items() if name not in known or known[name].digest != one.digest
        )


def count_pods(manifests: Iterable[Object]) -> PodCounts:
    """The counts of these objects."""
    found = ((name_of(one), _counts(one)) for one in manifests)
    return PodCounts({name: counts for name, counts in found if counts is not None})


def _counts(manifest: Object) -> WorkloadCounts | None:
    handler = find_handler(group_of(manifest), text(manifest, "kind"))
    if handler is None or isinstance(handler, BrokenHandler | Jobs) or handler.scale(1) is None:
        return None
    pods = handler.replicas(manifest).desired
    return WorkloadCounts(pods, _takes(handler, manifest, pods), digest(at(manifest, "spec"))[:_DIGEST])


def _takes(handler: WorkloadHandler, manifest: Object, pods: int) -> int:
    if handler.strategy(manifest).type == ON_DELETE:
        return 0
    return min(handler.limits(manifest).max_unavailable, pods)


# The annotation


def counts_text(counts: PodCounts) -> str:
    """The annotation, in the order of names."""
    text_ = msgspec.json.encode(dict(sorted(counts.workloads.items()))).decode()
    if len(text_) <= LONGEST:
        return text_
    takes = sum(one.takes for one in counts.workloads.values())
    return counts_text(PodCounts({"all": WorkloadCounts(counts.pods, takes, digest(text_)[:_DIGEST])}))


def read_counts(snapshot: ObjectMeta) -> PodCounts | None:
    """The counts that a snapshot has; None if it has none, or none that can be read."""
    try:
        found = msgspec.json.decode(snapshot.annotations.get(POD_COUNTS, ""), type=dict[str, WorkloadCounts])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return PodCounts(found)


installed_handlers()  # reads files, which no event loop may wait for: so it is done before one runs
