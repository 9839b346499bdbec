"""Where a pod may run, where it shall, and what to say if nowhere. Pure.

Looks at cordons, taints, node selectors and required node affinity, and spreads pods by count. Does not look at
requests, preferences, other pods' affinities, or volumes: every node has room. A node that does not say it is ready
counts as tainted so. Messages are those of kube-scheduler v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kedge.api.condition import is_true
from kedge.api.pods import Node, Pod, PodSpec, Taint, Toleration

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
NO_NODES = "no nodes available to schedule pods"
_NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
_NO_HELP = "Preemption is not helpful for scheduling."
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"


def choose(pod: Pod, nodes: Sequence[Node], load: Callable[[str], int]) -> str | None:
    """The name of the node with the fewest pods among those that may take it; None if none may."""
    fitting = [node.metadata.name for node in nodes if obstacle(pod, node) is None]
    return min(fitting, key=lambda name: (load(name), name), default=None)


def refusal(pod: Pod, nodes: Sequence[Node]) -> str:
    """Why no node takes it."""
    if not nodes:
        return NO_NODES
    counts = Counter(obstacle(pod, node) for node in nodes)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    total = len(nodes)
    head = f"0/{total} nodes are available"
    return f"{head}: {reasons}. no new claims to deallocate, preemption: {head}: {total} {_NO_HELP}"


def obstacle(pod: Pod, node: Node) -> str | None:
    """What keeps the pod off this node; None if nothing does."""
    named = _named(required_terms(pod.spec.affinity))
    if named is not None and node.metadata.name not in named:
        return _NOT_NAMED
    if node.spec.unschedulable and untolerated([UNSCHEDULABLE], pod.spec.tolerations):
        return "node(s) were unschedulable"
    if untolerated(_keeping_off(node), pod.spec.tolerations):
        return "node(s) had untolerated taint(s)"
    if not is_chosen(pod.spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


def _keeping_off(node: Node) -> list[Taint]:
    ready = is_true(node.status.conditions, "Ready")
    return [*node.spec.taints] if ready else [*node.spec.taints, NOT_READY]


def _named(terms: Sequence[Mapping[str, Any]] | None) -> list[str] | None:
    """The only nodes that can be meant, if every term names its nodes."""
    if not terms:
        return None
    names: list[str] = []
    for term in terms:
        by_name = [one for one in term.get("matchFields") or () if one.get("operator") == "In"]
        if not by_name:
            return None
        names += by_name[0].get("values") or ()
    return names


def is_chosen(spec: PodSpec, node: Node) -> bool:
    """Whether the pod's node selector and required affinity choose this node."""
    labels = node.metadata.labels
    selected = all(labels.get(key) == value for key, value in spec.node_selector.items())
    return selected and _required(spec.affinity, node)


def untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], effects: tuple[str, ...] = (NO_SCHEDULE, NO_EXECUTE)
) -> Taint | None:
    """The first taint of these effects that the pod does not put up with."""
    concerned = (taint for taint in taints if taint.effect in effects)
    return next((taint for taint in concerned if not any(tolerates(one, taint) for one in tolerations)), None)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty key with Exists tolerates everything, an empty effect every effect."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value


def target_node(spec: PodSpec) -> str:
    """The one node a pod is for: its own, or the only one its affinity names; empty if it is for several."""
    if spec.node_name:
        return spec.node_name
    fields = [field for term in required_terms(spec.affinity) or () for field in term.get("matchFields") or ()]
    named = [list(field.get("values") or ()) for field in fields if field.get("key") == "metadata.name"]
    return str(named[0][0]) if len(named) == 1 and len(named[0]) == 1 else ""


def _required(affinity: Mapping[str, Any] | None, node: Node) -> bool:
    terms = required_terms(affinity)
    return terms is None or any(_term(term, node) for term in terms)


def required_terms(affinity: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]] | None:
    """The terms of which one must hold; None if nothing is required."""
    required = ((affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def _term(term: Mapping[str, Any], node: Node) -> bool:
    labels, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    names = {"metadata.name": node.metadata.name}
    held = [_holds(one, node.metadata.labels) for one in labels] + [_holds(one, names) for one in fields]
    return bool(held) and all(held)  # a term that says nothing matches nothing


def _holds(requirement: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    value = known.get(requirement.get("key", ""))
    values: Sequence[str] = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(value or "", values, operator)
    return False


def _compares(value: str, values: Sequence[str], operator: str) -> bool:
    if len(values) != 1 or not value.isdecimal() or not values[0].isdecimal():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
