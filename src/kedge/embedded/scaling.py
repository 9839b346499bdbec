"""Scaling: the `Scale` of an object: how many replicas it wants, has, and which pods they are."""

from __future__ import annotations

import re
from typing import Any

from kedge.api.resource import Resource
from kedge.embedded import bodies, options, patching, statuses
from kedge.embedded.registry import Kind, Scale
from kedge.embedded.store import Untyped, Version, encode, version_of
from kedge.embedded.writing import Order, Writing, Written, refuse_misplaced

SCALES = Resource("autoscaling", "v1", "Scale", "scales")
_KIND = Kind(SCALES)
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
    return version_of(_KIND, version.key, version.number, scale)


def put(writing: Writing, order: Order) -> Written:
    """Want as many replicas as the Scale that was sent."""
    new = bodies.posted(order.request, SCALES)
    refuse_misplaced(new, order.place)
    return _scaled(writing, order, new, "UpdateOptions")


def patch(writing: Writing, order: Order) -> Written:
    """Want as many replicas as the patched Scale says."""
    change = patching.asked_for(order.request)
    old = shown(order.kind, writing.seen(order.kind, order.place)).decode()
    return _scaled(writing, order, bodies.of_kind(change(old), SCALES), "PatchOptions")


def _scaled(writing: Writing, order: Order, scale: Untyped, called: str) -> Written:
    kind = order.kind
    asked = options.for_write(order.request, called)
    seen = writing.seen(kind, order.place)
    old = seen.decode()
    spec = scale.get("spec")
    wanted = spec.get("replicas", 0) if isinstance(spec, dict) else 0
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise statuses.bad_request(f"Scale: spec.replicas is {encode(wanted).decode()}, not an integer")
    if wanted < 0:
        cause = statuses.wrong("spec.replicas", str(wanted), "must be greater than or equal to 0")
        raise statuses.invalid(SCALES, order.place.name, [cause])
    new = _with(old, _where(kind).wanted.split("."), wanted)
    sent = {key: scale["metadata"][key] for key in ("uid", "resourceVersion") if key in scale["metadata"]}
    new["metadata"] = {**old["metadata"], **sent}
    whole = Order(kind, order.place.of_the_whole, order.request, order.caller)
    written = writing.change(whole, seen, old, new, asked)
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
    labels = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    if "matchLabels" not in selector and "matchExpressions" not in selector:  # a plain map, as Services have
        labels = {key: f"{key}={value}" for key, value in selector.items()}
    rules = {one["key"]: _requirement(one) for one in selector.get("matchExpressions") or ()}
    return ",".join(text for _, text in sorted([*labels.items(), *rules.items()]))


def _requirement(one: Untyped) -> str:
    key, values = one["key"], ",".join(sorted(one.get("values") or ()))
    match re.sub("[^a-z]", "", str(one["operator"]).lower()):
        case "in":
            return f"{key} in ({values})"
        case "notin":
            return f"{key} notin ({values})"
        case "exists":
            return str(key)
    return f"!{key}"
