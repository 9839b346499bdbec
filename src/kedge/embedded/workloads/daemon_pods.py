"""The pods of a DaemonSet: on which nodes they belong, and what they are made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kedge.api.apps import DaemonSet
from kedge.api.pods import Node, Pod, PodSpec
from kedge.embedded.workloads.daemon_plan import Daemon, Place
from kedge.embedded.workloads.owned import reference_to
from kedge.embedded.workloads.pod_writes import from_template
from kedge.embedded.workloads.schedule_plan import NO_EXECUTE, is_chosen, target_node, untolerated
from kedge.plan.workloads import pods

HASH = "controller-revision-hash"
GENERATION = "pod-template-generation"
_SET_GENERATION = "deprecated.daemonset.template.generation"
_PROBLEMS = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_THE_HOST = ("network-unavailable", "NoSchedule")


def places(seen: DaemonSet, nodes: Iterable[Node]) -> tuple[Place, ...]:
    """Whether the set's pods belong on these nodes, by name."""
    spec = msgspec.convert(tolerant(seen.spec.template.get("spec") or {}), PodSpec)
    return tuple(_place(spec, node) for node in sorted(nodes, key=lambda node: node.metadata.name))


def _place(spec: PodSpec, node: Node) -> Place:
    name, taints = node.metadata.name, node.spec.taints
    if spec.node_name not in ("", name) or not is_chosen(spec, node):
        return Place(name, should_run=False, may_stay=False)
    return Place(
        name,
        should_run=untolerated(taints, spec.tolerations) is None,
        may_stay=untolerated(taints, spec.tolerations, (NO_EXECUTE,)) is None,
    )


def daemon(pod: Pod, hashed: str, min_ready_seconds: int, now: datetime) -> Daemon:
    """What the plan needs to know of a pod."""
    return Daemon(
        name=pod.metadata.name,
        node=target_node(pod.spec),
        updated=pod.metadata.labels.get(HASH) == hashed,
        ready=pods.is_ready(pod),
        available=pods.is_available(pod, min_ready_seconds, now),
        terminating=pod.metadata.deletion_timestamp is not None,
        failed=pod.status.phase == "Failed",
        succeeded=pod.status.phase == "Succeeded",
        scheduled=bool(pod.spec.node_name),
        born=pod.metadata.creation_timestamp,
    )


def new_pod(seen: DaemonSet, node: str, hashed: str, revision: int) -> dict[str, Any]:
    """The pod to create for a node."""
    meta = seen.metadata
    made = from_template(seen.spec.template, reference_to(seen), meta.namespace, generate_name=f"{meta.name}-")
    # Each new template is a new revision, so its number says what a server of ours has no annotation for.
    generation = meta.annotations.get(_SET_GENERATION, str(revision))
    labels = {**made["metadata"].get("labels", {}), HASH: hashed, GENERATION: generation}
    spec = tolerant(made["spec"])
    return {
        **made,
        "metadata": {**made["metadata"], "labels": labels},
        "spec": {**spec, "affinity": _only_on(node, spec.get("affinity") or {})},
    }


def tolerant(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same pod, putting up with every trouble a node may have: its daemons stay."""
    given: Sequence[Mapping[str, Any]] = spec.get("tolerations") or ()
    troubles = (*_TOLERATED, *((_TOLERATED_ON_THE_HOST,) if spec.get("hostNetwork") else ()))
    added = [{"key": f"{_PROBLEMS}{key}", "operator": "Exists", "effect": effect} for key, effect in troubles]
    return {**spec, "tolerations": [*(one for one in given if one not in added), *added]}


def _only_on(node: str, affinity: Mapping[str, Any]) -> dict[str, Any]:
    """The affinity, with this node as all that is required."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    of_nodes = affinity.get("nodeAffinity") or {}
    return {
        **affinity,
        "nodeAffinity": {**of_nodes, "requiredDuringSchedulingIgnoredDuringExecution": required},
    }
