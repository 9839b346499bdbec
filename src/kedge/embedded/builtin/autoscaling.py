"""Autoscaling: defaults and validation of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin.defaulting import struct
from kedge.embedded.causes import forbidden, invalid_value, required_value, unsupported_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_BY_CPU = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]
_ALL_AT_ONCE = {"type": "Percent", "value": 100, "periodSeconds": 15}
_scale_up = struct(
    {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _ALL_AT_ONCE],
    }
)
_scale_down = struct({"selectPolicy": "Max", "policies": [_ALL_AT_ONCE]})

default_autoscaler = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"minReplicas": 1, "metrics": _BY_CPU},
        behavior=struct({"scaleUp": {}, "scaleDown": {}}, scaleUp=_scale_up, scaleDown=_scale_down),
    ),
    status=struct({"desiredReplicas": 0}, null=("currentMetrics",)),
)

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TO_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"


def autoscaler_problems(scaler: Untyped) -> Iterator[Cause]:
    """What is wrong with an autoscaler."""
    spec = scaler["spec"]
    least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
    if least < 1:
        yield invalid_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if not most:
        yield required_value("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not spec.get("scaleTargetRef", {}).get(name):
            yield required_value(f"spec.scaleTargetRef.{name}")
    for index, metric in enumerate(spec["metrics"]):
        yield from _metric(f"spec.metrics[{index}]", metric)
    if not least and not any(metric.get("type") in ("Object", "External") for metric in spec["metrics"]):
        yield forbidden("spec.metrics", _TO_ZERO)


def _metric(at: str, metric: Untyped) -> Iterator[Cause]:
    kind = metric.get("type", "")
    if not kind:
        yield required_value(f"{at}.type", "must specify a metric source type")
    if kind not in _SOURCES:
        # Kubernetes says it twice.
        yield unsupported_value(f"{at}.type", kind, tuple(_SOURCES))
        yield unsupported_value(f"{at}.type", kind, tuple(_SOURCES))
        return
    part = _SOURCES[kind]
    if part not in metric:
        yield required_value(f"{at}.{part}", "must populate information for the given metric source")
    elif kind == "Resource":
        yield from _resource(f"{at}.{part}", metric[part])
    for other in _SOURCES.values():
        if other != part and other in metric:
            yield forbidden(f"{at}.{other}", "must populate the given metric source only")


def _resource(at: str, source: Untyped) -> Iterator[Cause]:
    if not source.get("name"):
        yield required_value(f"{at}.name", "must specify a resource name")
    target = source.get("target", {})
    kind, share = target.get("type", ""), target.get("averageUtilization")
    if not kind:
        yield required_value(f"{at}.target.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid_value(f"{at}.target.type", kind, "must be either Utilization, Value, or AverageValue")
    if share is not None and share < 1:
        yield invalid_value(f"{at}.target.averageUtilization", share, "must be greater than 0")
    if share is None and "averageValue" not in target:
        why = "must set either a target raw value or a target utilization"
        yield required_value(f"{at}.target.averageUtilization", why)
    if share is not None and "averageValue" in target:
        why = "may not set both a target raw value and a target utilization"
        yield forbidden(f"{at}.target.averageValue", why)
