"""Where a pod may run, where it shall, and what to say if nowhere. Pure.

Looks at cordons, taints, node selectors and required node affinity, and spreads pods by count. Does not look at
requests, preferences, other pods' affinities, or volumes: every node has room. A node that does not say it is ready
counts as tainted so. Messages are those of kube-scheduler v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kedge.api.condition import is_true
from kedge.api.pods import Node, Pod, Taint
from kedge.embedded.workloads.fitting import is_chosen, required_terms, untolerated

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
NO_NODES = "no nodes available to schedule pods"
_NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
_NO_HELP = "Preemption is not helpful for scheduling."


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
