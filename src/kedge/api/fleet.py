"""The fleet's own words: labels, annotations, finalizers and names that hub, members and users' scripts agree on.

They are KubeFleet's, to the letter, so that either half of a fleet can be exchanged (kubefleet.md §1.12).
"""

from __future__ import annotations

from typing import Final

from kedge.api.meta import Object

_PREFIX: Final = "kubernetes-fleet.io/"

# Labels
PARENT_PLACEMENT: Final = f"{_PREFIX}parent-CRP"
IS_LATEST: Final = f"{_PREFIX}is-latest-snapshot"
RESOURCE_INDEX: Final = f"{_PREFIX}resource-index"
POLICY_INDEX: Final = f"{_PREFIX}policy-index"
IS_FLEET_RESOURCE: Final = f"{_PREFIX}is-fleet-resource"
MEMBER_NAME: Final = f"{_PREFIX}member-name"
PARENT_BINDING: Final = f"{_PREFIX}parent-resource-binding"
PARENT_NAMESPACE: Final = f"{_PREFIX}parent-placement-namespace"
PARENT_SNAPSHOT_INDEX: Final = f"{_PREFIX}parent-resource-snapshot-index"
TARGET_RUN: Final = f"{_PREFIX}targetUpdateRun"
TARGET_STAGE: Final = f"{_PREFIX}targetUpdatingStage"
TASK_TYPE: Final = f"{_PREFIX}taskType"
IS_LATEST_APPROVAL: Final = f"{_PREFIX}isLatestUpdateRunApproval"

# Annotations
RESOURCE_HASH: Final = f"{_PREFIX}resource-hash"
NUMBER_OF_SNAPSHOTS: Final = f"{_PREFIX}number-of-resource-snapshots"
NUMBER_OF_ENVELOPED: Final = f"{_PREFIX}number-of-enveloped-object"
SUBINDEX: Final = f"{_PREFIX}subindex-of-resource-snapshot"
PLACEMENT_GENERATION: Final = f"{_PREFIX}CRP-generation"
NUMBER_OF_CLUSTERS: Final = f"{_PREFIX}number-of-clusters"
PREVIOUS_STATE: Final = f"{_PREFIX}previous-binding-state"
PARENT_SNAPSHOT_NAME: Final = f"{_PREFIX}parent-resource-snapshot-name"
RESOURCE_OVERRIDE_HASH: Final = f"{_PREFIX}parent-resource-override-snapshot-hash"
CLUSTER_OVERRIDE_HASH: Final = f"{_PREFIX}parent-cluster-resource-override-snapshot-hash"
SPEC_HASH: Final = f"{_PREFIX}spec-hash"
LAST_APPLIED: Final = f"{_PREFIX}last-applied-configuration"

# Finalizers
PLACEMENT_CLEANUP: Final = f"{_PREFIX}crp-cleanup"
SCHEDULER_CLEANUP: Final = f"{_PREFIX}scheduler-cleanup"
BINDING_CLEANUP: Final = f"{_PREFIX}scheduler-crb-cleanup"
WORK_CLEANUP: Final = f"{_PREFIX}work-cleanup"
MEMBER_FINALIZER: Final = f"{_PREFIX}membercluster-finalizer"
RUN_FINALIZER: Final = f"{_PREFIX}stagedupdaterun-finalizer"

# Of our own
PAUSED: Final = "kedge.dev/paused"
"""Annotation of a placement: `true` while its rollout stands still (`kedge pause`)."""
PINNED: Final = "kedge.dev/pinned-resource-index"
"""Annotation of a placement: the index of the resources to roll out instead of the newest (`kedge rollback`)."""
AVAILABLE_WHEN: Final = "kedge.dev/available-when"
"""Annotation of a placed object: a CEL rule on `self` that says when it is available."""
THROTTLE_FIRST: Final = "kedge.dev/throttle-first-placement"
"""Annotation of a placement: `true` if newly picked clusters, too, wait for those before them."""

POD_COUNTS: Final = "kedge.dev/pod-counts"
"""Annotation of a revision's first snapshot, if its placement has a podBudget: how many pods its workloads run."""
PODS_CHARGED: Final = "kedge.dev/pods-charged"
"""Annotation of a binding: how many pods may be lacking there since it was moved; gone once it has proven itself."""

RETRY: Final = "kedge.dev/retry"
"""Annotation of a run: a time; clusters that failed until then are tried once more (`kedge retry`)."""
ROLLBACK_OF: Final = "kedge.dev/rollback-of"
"""Annotation of a run: the run whose clusters it brings back to what they had."""

ON_DELETE: Final = "kedge.dev/on-delete"
"""Annotation of a Work: `Abandon` if what it placed stays on the member when the Work goes."""

# Names
SYSTEM_NAMESPACE: Final = "fleet-system"
MEMBER_AGENT: Final = "MemberAgent"
RESERVED_PREFIXES: Final = ("kube-", "fleet-")


def member_namespace(member: str) -> str:
    """The namespace on the hub that is a member's own."""
    return f"fleet-member-{member}"


def member_of(namespace: str) -> str | None:
    """Whose namespace this is; None if no member's."""
    prefix, member = namespace[:13], namespace[13:]
    return member if prefix == "fleet-member-" and member else None


def is_reserved(namespace: str) -> bool:
    """Whether a namespace belongs to the system and is never placed."""
    return is_of_the_system(namespace) or namespace == "default"


def is_of_the_system(namespace: str | None) -> bool:
    """Whether a namespace is the fleet's or Kubernetes' own: others than users write there, members among them."""
    return namespace is not None and namespace.startswith(RESERVED_PREFIXES)


def is_followed(found: Object) -> bool:
    """Whether a hub acts on a placement, and on what belongs to one: not if it is in a namespace of the system."""
    return not is_of_the_system(found.metadata.namespace)


def is_not_followed(found: Object) -> bool:
    """Whether a hub leaves it alone."""
    return not is_followed(found)


def resource_snapshot_name(placement: str, index: int) -> str:
    """The first part of the resources with this index."""
    return f"{placement}-{index}-snapshot"


def resource_snapshot_part(placement: str, index: int, part: int) -> str:
    """A further part, from 0."""
    return f"{placement}-{index}-{part}"


def policy_snapshot_name(placement: str, index: int) -> str:
    """The policy with this index."""
    return f"{placement}-{index}"


def binding_name(placement: str, cluster: str, suffix: str) -> str:
    """One placement on one cluster; the suffix tells it from earlier ones. Fits a label."""
    return f"{placement[:26].rstrip('-.')}-{cluster[:27].rstrip('-.')}-{suffix}".replace(".", "-")


def work_name(placement: str, namespace: str | None, part: int | None = None) -> str:
    """The Work of one part of a placement's resources; None is the first."""
    prefix = f"{namespace}.{placement}" if namespace else placement
    return f"{prefix}-work" if part is None else f"{prefix}-{part}"
