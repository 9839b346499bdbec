"""Pod verbs: what is done to a pod through its own subresources: bound to a node, evicted.

Eviction asks the disruption budgets that select the pod, and spends what it takes from them, so that two evictions
at once cannot both have the last one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector, selects
from kedge.embedded import bodies, options, statuses
from kedge.embedded.asking import Order
from kedge.embedded.kind import Kind
from kedge.embedded.options import DeleteOptions
from kedge.embedded.store import Store, Untyped, part
from kedge.embedded.writing import Writing

BINDINGS = Resource("", "v1", "Binding", "bindings")
EVICTIONS = Resource("policy", "v1", "Eviction", "evictions")
BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_DONE = ("Succeeded", "Failed")


def bind(writing: Writing, store: Store, order: Order, now: Callable[[], str]) -> None:
    """Put a pod on a node."""
    binding = bodies.shaped(bodies.posted(order.request, BINDINGS))
    asked = options.for_write(order.request, "CreateOptions")
    name, target = order.place.name, part(binding, "target")
    if binding["metadata"].get("name", name) != name:
        raise statuses.bad_request("name in URL does not match name in Binding object")
    if target.get("kind", "") not in ("", "Node"):
        cause = statuses.unsupported("target.kind", f'"{target["kind"]}"', "Node", "<empty>")
        raise statuses.internal(f"{cause.field}: {cause.message}")
    if not target.get("name"):
        raise statuses.internal("target.name: Required value")
    seen = writing.seen(order.kind, order.place)
    pod = seen.decode()
    _refuse_bound(pod, name)
    if not asked.dry_run:
        store.replace(order.kind, seen, _bound(pod, binding, target["name"], now()))


def evict(writing: Writing, store: Store, order: Order) -> None:
    """Delete a pod, if the budgets it counts for allow it."""
    eviction = bodies.shaped(bodies.posted(order.request, EVICTIONS))
    asked = _delete_options(eviction, order)
    pod = writing.seen(order.kind, order.place).decode()
    if part(pod, "status").get("phase") not in _DONE and not pod["metadata"].get("deletionTimestamp"):
        _spend(store, pod, dry_run=bool(asked.dry_run))
    writing.delete(order.kind, order.place.of_the_whole, asked)


def _refuse_bound(pod: Untyped, name: str) -> None:
    resource = Resource("", "v1", "Pod", "pods/binding")
    if node := part(pod, "spec").get("nodeName"):
        raise statuses.conflict(resource, name, f'pod {name} is already assigned to node "{node}"')
    if pod["metadata"].get("deletionTimestamp"):
        raise statuses.conflict(resource, name, f"pod {name} is being deleted, cannot be assigned to a host")


def _bound(pod: Untyped, binding: Untyped, node: str, now: str) -> Untyped:
    status = part(pod, "status")
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [one for one in status.get("conditions") or [] if one.get("type") != "PodScheduled"]
    metadata = dict(pod["metadata"])
    if given := binding["metadata"].get("annotations"):
        metadata["annotations"] = {**metadata.get("annotations", {}), **given}
    spec = {**part(pod, "spec"), "nodeName": node}
    return {**pod, "metadata": metadata, "spec": spec, "status": {**status, "conditions": [*others, scheduled]}}


def _delete_options(eviction: Untyped, order: Order) -> DeleteOptions:
    dry_run = options.for_write(order.request, "CreateOptions").dry_run
    try:
        asked = msgspec.convert(eviction.get("deleteOptions") or {}, DeleteOptions)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(f"deleteOptions: {error}") from None
    return msgspec.structs.replace(asked, dry_run=("All",)) if dry_run else asked


def _spend(store: Store, pod: Untyped, *, dry_run: bool) -> None:
    """Take one disruption from the budget the pod counts for; refuse if there is none left."""
    kind = Kind(BUDGETS)
    prefix = f"{pod['metadata']['namespace']}/"
    found = [version for version in store.all(kind).at(store.number).within(prefix) if _covers(version.decode(), pod)]
    if len(found) > 1:
        raise statuses.internal(_SEVERAL)
    for version in found:
        budget = version.decode()
        _refuse_spent(budget)
        if not dry_run:
            left = budget["status"]["disruptionsAllowed"] - 1
            store.replace(kind, version, {**budget, "status": {**budget["status"], "disruptionsAllowed": left}})


def _covers(budget: Untyped, pod: Untyped) -> bool:
    raw = part(budget, "spec").get("selector")
    if raw is None:
        return False
    return selects(msgspec.convert(raw, LabelSelector), pod["metadata"].get("labels", {}))


def _refuse_spent(budget: Untyped) -> None:
    status = part(budget, "status")
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise statuses.too_many(f"The disruption budget {name} is still being processed by the server.")
    if status.get("disruptionsAllowed", 0) < 1:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise statuses.too_many(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
