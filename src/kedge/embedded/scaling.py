"""Scaling: the `Scale` of an object: how many replicas it wants, has, and which pods they are."""

from __future__ import annotations

from typing import Any

from kedge.api.resource import Resource
from kedge.embedded import bodies, options, patched, statuses
from kedge.embedded.asking import Order
from kedge.embedded.kind import Kind, Scale
from kedge.embedded.options import WriteOptions
from kedge.embedded.ownership.managed_fields import manager_name
from kedge.embedded.ownership.scale_ownership import owners_after_scale
from kedge.embedded.store import Untyped, Version, encode, part, version_of
from kedge.embedded.tables.cell_text import selector_text
from kedge.embedded.writing import Sent, Writing, Written, refuse_misplaced

SCALES = Resource("autoscaling", "v1", "Scale", "scales")
KIND = Kind(SCALES)
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def shown(kind: Kind, version: Version) -> Version:
    """An object's Scale."""
    obj, where = version.decode(), _where(kind)
    wanted = _at(obj, where.wanted) or 0
    status: Untyped = {"replicas": _at(obj, where.there) or 0}
    if selector := _selector(_at(obj, where.selector)):
        status["selector"] = selector
    scale = {
        "apiVersion": SCALES.api_version,
        "kind": SCALES.kind,
        "metadata": {key: obj["metadata"][key] for key in _SHOWN if key in obj["metadata"]},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }
    return version_of(KIND, version.key, version.number, scale)


def put(writing: Writing, order: Order) -> Written:
    """Want as many replicas as the Scale that was sent."""
    asked = options.for_write(order.request, "UpdateOptions")
    new = bodies.shaped(bodies.posted(order.request, SCALES))
    refuse_misplaced(new, order.place)
    return _scaled(writing, order, new, asked)


def patch(writing: Writing, order: Order) -> Written:
    """Want as many replicas as the patched Scale says."""
    asked = options.for_write(order.request, "PatchOptions")
    change = patched.asked_for(order.request, KIND, asked.validation)
    old = shown(order.kind, writing.seen(order.kind, order.place)).decode()
    return _scaled(writing, order, change.made_of(KIND, old).obj, asked)


def _scaled(writing: Writing, order: Order, scale: Untyped, asked: WriteOptions) -> Written:
    kind = order.kind
    seen = writing.seen(kind, order.place)
    old = seen.decode()
    wanted = part(scale, "spec").get("replicas", 0)
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise statuses.bad_request(f"Scale: spec.replicas is {encode(wanted).decode()}, not an integer")
    if wanted < 0:
        cause = statuses.wrong("spec.replicas", str(wanted), "must be greater than or equal to 0")
        raise statuses.invalid(SCALES, order.place.name, [cause])
    new = _with(old, _where(kind).wanted.split("."), wanted)
    sent = {key: scale["metadata"][key] for key in ("uid", "resourceVersion") if key in scale["metadata"]}
    new["metadata"] = {**old["metadata"], **sent}
    manager = manager_name(asked.manager, order.caller.agent)
    before, after = shown(kind, seen).decode(), {**scale, "spec": {"replicas": wanted}}
    where = [f"f:{step}" for step in _where(kind).wanted.split(".") if step]
    owners = owners_after_scale(seen.owners, kind.ownership, before, after, manager=manager, replicas=where)
    written = writing.change(order.of_the_whole, seen, old, Sent(new, owners=owners), asked)
    return Written(written.code, shown(kind, written.version), written.warnings)


def _where(kind: Kind) -> Scale:
    assert kind.scale is not None, f"{kind.resource} has no scale"
    return kind.scale


def _at(obj: Any, path: str) -> Any:
    for step in path.strip(".").split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _with(obj: Untyped, steps: list[str], value: int) -> Untyped:
    step, *rest = [step for step in steps if step]
    return {**obj, step: _with(obj.get(step) or {}, rest, value) if rest else value}


def _selector(selector: Any) -> str:
    """A label selector as a text; one that is a text already stays."""
    if not isinstance(selector, dict):
        return selector if isinstance(selector, str) else ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:  # a plain map, as Services have
        return selector_text({"matchLabels": selector})
    return selector_text(selector)
