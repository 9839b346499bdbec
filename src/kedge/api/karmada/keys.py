"""Keys: groups, names, labels and annotations as Karmada has them; and Kedge's own, which alignment keeps there."""

from __future__ import annotations

from typing import Final

WORK_GROUP: Final = "work.karmada.io"
POLICY_GROUP: Final = "policy.karmada.io"
CLUSTER_GROUP: Final = "cluster.karmada.io"
PROPOSED_GROUP: Final = "karmada.io"
"""Of bindings as the proposal of alignment writes them."""
EXECUTION_PREFIX: Final = "karmada-es-"
"""Of the namespace that holds a cluster's Works."""

DEFAULT_SCHEDULER: Final = "default-scheduler"

# Labels
MANAGED: Final = "karmada.io/managed"
BINDING_ID: Final = "resourcebinding.karmada.io/permanent-id"
CLUSTER_BINDING_ID: Final = "clusterresourcebinding.karmada.io/permanent-id"
WORK_ID: Final = "work.karmada.io/permanent-id"
POLICY_ID: Final = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_ID: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"

# Annotations
BINDING_NAMESPACE: Final = "resourcebinding.karmada.io/namespace"
BINDING_NAME: Final = "resourcebinding.karmada.io/name"
CLUSTER_BINDING_NAME: Final = "clusterresourcebinding.karmada.io/name"
WORK_NAMESPACE: Final = "work.karmada.io/namespace"
WORK_NAME: Final = "work.karmada.io/name"
CONFLICT_RESOLUTION: Final = "work.karmada.io/conflict-resolution"
TEMPLATE_UID: Final = "resourcetemplate.karmada.io/uid"
TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
MANAGED_LABELS: Final = "resourcetemplate.karmada.io/managed-labels"
MANAGED_ANNOTATIONS: Final = "resourcetemplate.karmada.io/managed-annotations"
POLICY_NAMESPACE: Final = "propagationpolicy.karmada.io/namespace"
POLICY_NAME: Final = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_NAME: Final = "clusterpropagationpolicy.karmada.io/name"
APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
APPLIED_OVERRIDES: Final = "policy.karmada.io/applied-overrides"
APPLIED_CLUSTER_OVERRIDES: Final = "policy.karmada.io/applied-cluster-overrides"

# Finalizers
BINDING_FINALIZER: Final = "karmada.io/binding-controller"
CLUSTER_BINDING_FINALIZER: Final = "karmada.io/cluster-resource-binding-controller"
EXECUTION_FINALIZER: Final = "karmada.io/execution-controller"
CLUSTER_FINALIZER: Final = "karmada.io/cluster-controller"

# Kedge's own
LEDGER: Final = "kedge.dev/alignment"
"""On a binding: what every cluster was asked for and may be acting on."""
SEQUENCE: Final = "kedge.dev/alignment-seq"
"""On a workload of a member: the number of what was asked for last."""
TURNS: Final = "kedge.dev/alignment-turns"
"""On Kedge's own OverridePolicy beside a Karmada: which clusters are let through, or were and may still act on it."""
ALIGN: Final = "kedge.dev/align"
"""On a policy of a Karmada: `true` if `kedge align` aligns what it propagates."""
HEARTBEAT_OF: Final = "kedge.dev/heartbeat-of"
"""The label of the Lease that the agent of a member renews: the member's name."""
