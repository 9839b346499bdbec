"""Words: every condition KubeFleet knows, by the object's kind, its type and its status (kubefleet.md §4.7, §7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from kedge.kube.codec import Untyped

_STEPS: Final = {
    "RolloutStarted": ("RolloutStarted", "RolloutNotStartedYet", "RolloutStartedUnknown"),
    "Overridden": ("NoOverrideSpecified OverriddenSucceeded", "OverriddenFailed", "OverriddenPending"),
}
_OF_PLACEMENTS: Final = {
    "Scheduled": (
        "SchedulingPolicyFulfilled",
        "SchedulingPolicyUnfulfilled InvalidResourceSelectors",
        "SchedulePending",
    ),
    **_STEPS,
    "RolloutStarted": (
        "RolloutStarted",
        "RolloutNotStartedYet",
        "RolloutStartedUnknown RolloutControlledByExternalController",
    ),
    "WorkSynchronized": ("WorkSynchronized", "WorkNotSynchronizedYet", "WorkSynchronizedUnknown"),
    "Applied": ("ApplySucceeded", "ApplyFailed", "ApplyPending"),
    "Available": ("ResourceAvailable", "ResourceNotAvailableYet", "ResourceAvailableUnknown"),
    "StatusSynced": ("StatusSyncSucceeded", "StatusSyncFailed", ""),
}
_OF_NAMESPACED: Final = {type_: words for type_, words in _OF_PLACEMENTS.items() if type_ != "StatusSynced"}
_OF_CLUSTERS: Final = {
    "Scheduled": ("Scheduled", "ScheduleFailed", ""),
    **_STEPS,
    "WorkSynchronized": ("AllWorkSynced", "SyncWorkFailed", "WorkSynchronizedUnknown"),
    "Applied": ("AllWorkHaveBeenApplied", "NotAllWorkHaveBeenApplied ApplyInProgress", "ApplyPending"),
    "Available": (
        "AllWorkAreAvailable NotAllWorkAreAvailabilityTrackable",
        "NotAllWorkAreAvailable",
        "ResourceAvailableUnknown",
    ),
}
# A binding is always scheduled, and says nothing where nothing is known: that is the placement's to say.
_OF_BINDINGS: Final = {
    type_: (true, false, "") for type_, (true, false, _) in _OF_CLUSTERS.items() if type_ != "Scheduled"
}
_OF_WORKS: Final = {
    "Applied": ("AllManifestsApplied", "SomeManifestsAreNotApplied", ""),
    "Available": ("AllManifestsAvailable WorkNotTrackable", "SomeManifestsAreNotAvailable", ""),
}
_OF_MANIFESTS: Final = {
    "Applied": (
        "Applied AppliedWithFailedDriftDetection",
        (
            "PreparingToProcess DecodingErred FoundGenerateName Duplicated FailedToFindObjInMemberCluster "
            "FailedToTakeOver NotTakenOver FailedToRunDriftDetection FoundDrifts FoundDriftsInDegradedMode "
            "ManifestApplyFailed"
        ),
        "",
    ),
    "Available": ("Available NotTrackable", "ManifestNotAvailableYet", ""),
}
_OF_MEMBERS: Final = {
    "ReadyToJoin": ("MemberClusterReadyToJoin", "MemberClusterNotReadyToJoin", ""),
    "Joined": ("MemberClusterJoined", "MemberClusterLeft", "MemberClusterJoinStateUnknown"),
}
_OF_AGENTS: Final = {
    "Joined": (
        "InternalMemberClusterJoined",
        "InternalMemberClusterLeft",
        "InternalMemberClusterFailedToJoin",
    ),
    "Healthy": ("InternalMemberClusterHealthy", "InternalMemberClusterUnhealthy", ""),
}
_OF_POLICIES: Final = {"Scheduled": ("SchedulingPolicyFulfilled", "SchedulingPolicyUnfulfilled", "")}


class Word(Struct, frozen=True):
    """One thing that can be said: of what, the condition's type, its status and its reason."""

    of: str
    type: str
    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.of}: {self.type} {self.status} {self.reason}"


def _words(of: str, table: dict[str, tuple[str, str, str]], prefix: str = "") -> set[Word]:
    return {
        Word(of, f"{prefix}{type_}", status, reason)
        for type_, reasons in table.items()
        for status, several in zip(("True", "False", "Unknown"), reasons, strict=True)
        for reason in several.split()
    }


KNOWN: Final = frozenset(
    word
    for of, table, prefix in (
        ("ClusterResourcePlacement", _OF_PLACEMENTS, "ClusterResourcePlacement"),
        ("ResourcePlacement", _OF_NAMESPACED, "ResourcePlacement"),
        ("cluster", _OF_CLUSTERS, ""),
        ("ClusterResourceBinding", _OF_BINDINGS, ""),
        ("ResourceBinding", _OF_BINDINGS, ""),
        ("Work", _OF_WORKS, ""),
        ("manifest", _OF_MANIFESTS, ""),
        ("MemberCluster", _OF_MEMBERS, ""),
        ("agent", _OF_AGENTS, ""),
        ("ClusterSchedulingPolicySnapshot", _OF_POLICIES, ""),
        ("SchedulingPolicySnapshot", _OF_POLICIES, ""),
    )
    for word in _words(of, table, prefix)
)
LATER: Final = frozenset(
    {"OverriddenSucceeded", "FailedToRunDriftDetection", "FoundDrifts", "FoundDriftsInDegradedMode"}
    | {"AppliedWithFailedDriftDetection", "FailedToFindObjInMemberCluster"}
)
"""Reasons that belong to overrides and to drift, which are not built yet: nobody must say them."""
MOMENTS: Final = frozenset(
    {"ApplyPending", "OverriddenPending", "WorkSynchronizedUnknown", "SchedulePending", "PreparingToProcess"}
)
"""Reasons that hold for so short a time, if for any, that they may not be seen."""
OWN: Final = Word("MemberCluster", "Healthy", "False", "MemberClusterUnreachable")
"""What Kedge says beyond that: a member cannot be reached."""


def words_of(obj: Untyped) -> Iterator[Word]:
    """All that an object says."""
    status = obj.get("status", {})
    yield from _said(obj["kind"], status)
    for entry in status.get("placementStatuses", ()):
        yield from _said("cluster", entry)
        yield from _failures(entry)
    yield from _failures(status)
    for manifest in status.get("manifestConditions", ()):
        yield from _said("manifest", manifest)
    for agent in status.get("agentStatus", ()):
        yield from _said("agent", agent)


def _failures(holder: dict[str, Any]) -> Iterator[Word]:
    for one in holder.get("failedPlacements", ()):
        yield from _said("manifest", {"conditions": [one["condition"]]})


def _said(of: str, holder: dict[str, Any]) -> Iterator[Word]:
    for one in holder.get("conditions", ()):
        yield Word(of, one["type"], one["status"], one["reason"])
