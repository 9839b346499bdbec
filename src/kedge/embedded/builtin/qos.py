"""Quality of service: how much of what it needs a pod is promised.

Guaranteed: every container limits its cpu and memory, and asks for no less. BestEffort: none asks for anything.
"""

from __future__ import annotations

from kedge.embedded.builtin.amounts import quantity
from kedge.embedded.builtin.pod_spec import containers_of
from kedge.embedded.rules import Untyped

_PROMISED = ("cpu", "memory")


def qos_class(spec: Untyped) -> str:
    holders = [whole] if _amounts(whole := spec.get("resources", {})) else [c["resources"] for c in containers_of(spec)]
    if not any(_amounts(one) for one in holders):
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(one) for one in holders) else "Burstable"


def _amounts(resources: Untyped) -> list[str]:
    named = [*resources.get("requests", {}).items(), *resources.get("limits", {}).items()]
    return [name for name, amount in named if name in _PROMISED and quantity(amount).amount]


def _is_guaranteed(resources: Untyped) -> bool:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if any(name not in limits or not quantity(limits[name]).amount for name in _PROMISED):
        return False
    return all(quantity(requests.get(name, limits[name])) == quantity(limits[name]) for name in _PROMISED)
