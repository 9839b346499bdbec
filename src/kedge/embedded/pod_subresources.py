"""Pod subresources: binding a pod to a node, and evicting it.

An eviction checks the disruption budgets that select the pod and takes one disruption from them, so that two evictions
at once cannot both have the last one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector, selects
from kedge.embedded import options, request_body, statuses
from kedge.embedded.admission.gate import Gate
from kedge.embedded.causes import unsupported_value
from kedge.embedded.kind import Kind
from kedge.embedded.options import DeleteOptions
from kedge.embedded.request_info import RequestInfo
from kedge.embedded.store import Store, part
from kedge.embedded.writer import Writer
from kedge.kube.codec import Untyped

BINDINGS = Resource("", "v1", "Binding", "bindings")
EVICTIONS = Resource("policy", "v1", "Eviction", "evictions")
BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_DONE = ("Succeeded", "Failed")


async def bind(writer: Writer, store: Store, info: RequestInfo, now: Callable[[], str]) -> None:
    """Put a pod on a node."""
    binding = request_body.with_clean_metadata(request_body.object_in(info.request, BINDINGS))
    asked = options.for_write(info.request, "CreateOptions")
    name, target = info.path.name, part(binding, "target")
    if binding["metadata"].get("name", name) != name:
        raise statuses.bad_request("name in URL does not match name in Binding object")
    if target.get("kind", "") not in ("", "Node"):
        cause = unsupported_value("target.kind", target["kind"], ("Node", "<empty>"))
        raise statuses.internal_error(f"{cause.field}: {cause.message}")
    if not target.get("name"):
        raise statuses.internal_error("target.name: Required value")
    if gate := writer.gate(info, BINDINGS):
        binding = await _admitted(gate, binding)
        target = part(binding, "target")
    current = writer.current(info.kind, info.path)
    pod = current.decode()
    _refuse_bound(pod, name)
    if not asked.dry_run:
        store.replace(info.kind, current, _bound(pod, binding, target["name"], now()))


async def evict(writer: Writer, store: Store, info: RequestInfo) -> None:
    """Delete a pod, if its disruption budget allows it."""
    eviction = request_body.with_clean_metadata(request_body.object_in(info.request, EVICTIONS))
    if gate := writer.gate(info, EVICTIONS):
        eviction = await _admitted(gate, eviction)
    asked = _delete_options(eviction, info)
    current = writer.current(info.kind, info.path)
    pod = current.decode()
    if part(pod, "status").get("phase") not in _DONE and not pod["metadata"].get("deletionTimestamp"):
        _take_disruption(store, pod, dry_run=bool(asked.dry_run))
    writer.delete_admitted(info.kind, current, asked)  # webhooks are asked about the eviction, not about the deletion


async def _admitted(gate: Gate, obj: Untyped) -> Untyped:
    """A binding or an eviction, as webhooks let it pass."""
    made = await gate.mutate("CREATE", obj, None, request_body.with_clean_metadata)
    await gate.validate("CREATE", made, None)
    return made


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


def _delete_options(eviction: Untyped, info: RequestInfo) -> DeleteOptions:
    dry_run = options.for_write(info.request, "CreateOptions").dry_run
    try:
        asked = msgspec.convert(eviction.get("deleteOptions") or {}, DeleteOptions)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(f"deleteOptions: {error}") from None
    return msgspec.structs.replace(asked, dry_run=("All",)) if dry_run else asked


def _take_disruption(store: Store, pod: Untyped, *, dry_run: bool) -> None:
    """Take one disruption from the budget of the pod; refuse if there is none left."""
    kind = Kind(BUDGETS)
    prefix = f"{pod['metadata']['namespace']}/"
    found = [version for version in store.all(kind).at(store.number).within(prefix) if _covers(version.decode(), pod)]
    if len(found) > 1:
        raise statuses.internal_error(_SEVERAL)
    for version in found:
        budget = version.decode()
        _refuse_if_none_left(budget)
        if not dry_run:
            left = budget["status"]["disruptionsAllowed"] - 1
            store.replace(kind, version, {**budget, "status": {**budget["status"], "disruptionsAllowed": left}})


def _covers(budget: Untyped, pod: Untyped) -> bool:
    raw = part(budget, "spec").get("selector")
    if raw is None:
        return False
    return selects(msgspec.convert(raw, LabelSelector), pod["metadata"].get("labels", {}))


def _refuse_if_none_left(budget: Untyped) -> None:
    status = part(budget, "status")
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise statuses.too_many(f"The disruption budget {name} is still being processed by the server.")
    if status.get("disruptionsAllowed", 0) < 1:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise statuses.too_many(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
