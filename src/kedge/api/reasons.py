"""Condition types and reasons of the fleet's objects, as scripts and dashboards know them (kubefleet.md §4.7)."""

from __future__ import annotations

from typing import Final

# Types; of a placement with the name of its kind before them
SCHEDULED: Final = "Scheduled"
ROLLOUT_STARTED: Final = "RolloutStarted"
OVERRIDDEN: Final = "Overridden"
WORK_SYNCHRONIZED: Final = "WorkSynchronized"
APPLIED: Final = "Applied"
AVAILABLE: Final = "Available"
DIFF_REPORTED: Final = "DiffReported"
STATUS_SYNCED: Final = "StatusSynced"

# Of a placement
POLICY_FULFILLED: Final = "SchedulingPolicyFulfilled"
POLICY_UNFULFILLED: Final = "SchedulingPolicyUnfulfilled"
INVALID_SELECTORS: Final = "InvalidResourceSelectors"
SCHEDULE_PENDING: Final = "SchedulePending"
STATUS_SYNC_SUCCEEDED: Final = "StatusSyncSucceeded"
STATUS_SYNC_FAILED: Final = "StatusSyncFailed"

# Of a placement, one cluster of it, and a binding
SCHEDULE_SUCCEEDED: Final = "Scheduled"
SCHEDULE_FAILED: Final = "ScheduleFailed"
STARTED: Final = "RolloutStarted"
NOT_STARTED: Final = "RolloutNotStartedYet"
STARTED_UNKNOWN: Final = "RolloutStartedUnknown"
CONTROLLED_OUTSIDE: Final = "RolloutControlledByExternalController"
NO_OVERRIDE: Final = "NoOverrideSpecified"
OVERRIDDEN_SUCCEEDED: Final = "OverriddenSucceeded"
OVERRIDDEN_FAILED: Final = "OverriddenFailed"
OVERRIDDEN_PENDING: Final = "OverriddenPending"
ALL_SYNCED: Final = "WorkSynchronized"
NOT_SYNCED: Final = "WorkNotSynchronizedYet"
SYNCED_UNKNOWN: Final = "WorkSynchronizedUnknown"
APPLY_SUCCEEDED: Final = "ApplySucceeded"
APPLY_FAILED: Final = "ApplyFailed"
APPLY_PENDING: Final = "ApplyPending"
RESOURCE_AVAILABLE: Final = "ResourceAvailable"
RESOURCE_NOT_AVAILABLE: Final = "ResourceNotAvailableYet"
AVAILABLE_UNKNOWN: Final = "ResourceAvailableUnknown"

# Of a binding and one cluster of a placement
WORK_SYNCED: Final = "AllWorkSynced"
SYNC_FAILED: Final = "SyncWorkFailed"
WORK_APPLIED: Final = "AllWorkHaveBeenApplied"
WORK_NOT_APPLIED: Final = "NotAllWorkHaveBeenApplied"
APPLY_IN_PROGRESS: Final = "ApplyInProgress"
WORK_AVAILABLE: Final = "AllWorkAreAvailable"
WORK_NOT_AVAILABLE: Final = "NotAllWorkAreAvailable"
WORK_UNTRACKABLE: Final = "NotAllWorkAreAvailabilityTrackable"

# Of a Work
ALL_APPLIED: Final = "AllManifestsApplied"
SOME_NOT_APPLIED: Final = "SomeManifestsAreNotApplied"
ALL_AVAILABLE: Final = "AllManifestsAvailable"
SOME_NOT_AVAILABLE: Final = "SomeManifestsAreNotAvailable"
NOT_ALL_TRACKABLE: Final = "WorkNotTrackable"

# Of one manifest of a Work
MANIFEST_APPLIED: Final = "Applied"
PREPARING: Final = "PreparingToProcess"
DECODING_ERRED: Final = "DecodingErred"
GENERATE_NAME: Final = "FoundGenerateName"
DUPLICATED: Final = "Duplicated"
NOT_FOUND_IN_MEMBER: Final = "FailedToFindObjInMemberCluster"
FAILED_TO_TAKE_OVER: Final = "FailedToTakeOver"
NOT_TAKEN_OVER: Final = "NotTakenOver"
MANIFEST_APPLY_FAILED: Final = "ManifestApplyFailed"
MANIFEST_AVAILABLE: Final = "Available"
MANIFEST_NOT_TRACKABLE: Final = "NotTrackable"
MANIFEST_NOT_AVAILABLE: Final = "ManifestNotAvailableYet"
MANIFEST_FAILED: Final = "Failed"

# Of a member
READY_TO_JOIN: Final = "ReadyToJoin"
JOINED: Final = "Joined"
HEALTHY: Final = "Healthy"
MEMBER_READY_TO_JOIN: Final = "MemberClusterReadyToJoin"
MEMBER_NOT_READY_TO_JOIN: Final = "MemberClusterNotReadyToJoin"
MEMBER_JOINED: Final = "MemberClusterJoined"
MEMBER_LEFT: Final = "MemberClusterLeft"
MEMBER_UNKNOWN: Final = "MemberClusterJoinStateUnknown"
MEMBER_UNREACHABLE: Final = "MemberClusterUnreachable"
"""Of our own, with `Healthy`=False on a MemberCluster: no heartbeat has come for too long."""
AGENT_JOINED: Final = "InternalMemberClusterJoined"
AGENT_LEFT: Final = "InternalMemberClusterLeft"
AGENT_FAILED_TO_JOIN: Final = "InternalMemberClusterFailedToJoin"
AGENT_HEALTHY: Final = "InternalMemberClusterHealthy"
AGENT_UNHEALTHY: Final = "InternalMemberClusterUnhealthy"
