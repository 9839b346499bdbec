"""Workloads: defaults of Deployments, ReplicaSets, StatefulSets, DaemonSets and the like."""

from __future__ import annotations

from kedge.embedded.builtin import pod_spec
from kedge.embedded.builtin.defaulting import each, in_sequence, struct
from kedge.embedded.builtin.storage import default_claim_template
from kedge.embedded.kind_rules import AdmissionContext
from kedge.kube.codec import Untyped

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NOT_SCHEDULED = {
    "currentNumberScheduled": 0,
    "desiredNumberScheduled": 0,
    "numberMisscheduled": 0,
    "numberReady": 0,
}


def _named_after_its_pods(controller: Untyped) -> Untyped:
    """A ReplicationController without selector or labels gets those of its template."""
    spec = controller["spec"]
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if not labels:
        return controller
    if not spec.get("selector"):
        controller = {**controller, "spec": {**spec, "selector": labels}}
    if not controller["metadata"].get("labels"):
        controller = {**controller, "metadata": {**controller["metadata"], "labels": labels}}
    return controller


def _surging(strategy: Untyped) -> Untyped:
    return _rolling(strategy, {"maxUnavailable": "25%", "maxSurge": "25%"})


def _daemon_rolling(strategy: Untyped) -> Untyped:
    return _rolling(strategy, {"maxUnavailable": 1, "maxSurge": 0})


def _rolling(strategy: Untyped, pace: Untyped) -> Untyped:
    """The strategy with rolling update parameters, if it is RollingUpdate."""
    if strategy["type"] != "RollingUpdate":
        return strategy
    given = strategy.get("rollingUpdate", {})
    if pace.keys() <= given.keys():
        return strategy
    return {**strategy, "rollingUpdate": {**pace, **given}}


def _partitioned(strategy: Untyped) -> Untyped:
    # Who names the type and nothing else gets no partition; Kubernetes fills it only together with the type.
    if not strategy.get("type"):
        return {
            **strategy,
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": 0, **strategy.get("rollingUpdate", {})},
        }
    given = strategy.get("rollingUpdate")
    if strategy["type"] != "RollingUpdate" or given is None or "partition" in given:
        return strategy
    return {**strategy, "rollingUpdate": {**given, "partition": 0}}


default_deployment = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"replicas": 1, "strategy": {}, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "template": {}},
        strategy=struct({"type": "RollingUpdate"}, then=_surging),
        template=pod_spec.default_template,
    ),
)
default_replica_set = struct(
    {"spec": {}, "status": {}},
    spec=struct({"replicas": 1, "template": {}}, template=pod_spec.default_template),
    status=struct({"replicas": 0}),
)
default_replication_controller = struct(
    {"spec": {}, "status": {}},
    spec=struct({"replicas": 1}, template=pod_spec.default_template),
    status=struct({"replicas": 0}),
    then=_named_after_its_pods,
)
default_stateful_set = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {
            "replicas": 1,
            "serviceName": "",
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {},
            "template": {},
        },
        updateStrategy=_partitioned,
        persistentVolumeClaimRetentionPolicy=struct({"whenDeleted": "Retain", "whenScaled": "Retain"}),
        volumeClaimTemplates=each(
            in_sequence(struct({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}), default_claim_template)
        ),
        template=pod_spec.default_template,
    ),
    status=struct({"replicas": 0, "availableReplicas": 0}),
)
default_daemon_set = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"updateStrategy": {}, "revisionHistoryLimit": 10, "template": {}},
        updateStrategy=struct({"type": "RollingUpdate"}, then=_daemon_rolling),
        template=pod_spec.default_template,
    ),
    status=struct(_NOT_SCHEDULED),
)
default_controller_revision = struct({"revision": 0})


def prepare_new_daemon_set(daemon_set: Untyped, _context: AdmissionContext) -> Untyped:
    """A new DaemonSet has its template generation in an annotation."""
    return _with_template_generation(daemon_set, "1")


def prepare_changed_daemon_set(old: Untyped, new: Untyped) -> Untyped:
    count = int(old["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION, "0"))
    changed = old["spec"]["template"] != new["spec"]["template"]
    return _with_template_generation(new, str(count + changed))


def _with_template_generation(daemon_set: Untyped, count: str) -> Untyped:
    annotations = daemon_set["metadata"].get("annotations", {})
    if annotations.get(_TEMPLATE_GENERATION) == count:
        return daemon_set
    metadata = {**daemon_set["metadata"], "annotations": {**annotations, _TEMPLATE_GENERATION: count}}
    return {**daemon_set, "metadata": metadata}
