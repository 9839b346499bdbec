"""Applications and workloads to test with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kedge.api.oam.applications import Application
from kedge.api.oam.components import ApplicationConfiguration

DEPLOYMENT: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}
STATEFUL_SET = {**DEPLOYMENT, "kind": "StatefulSet", "spec": {**DEPLOYMENT["spec"], "serviceName": "web"}}
AUTOSCALER = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"maxReplicas": 5}}


def web(type: str = "webservice", traits: Any = (), **properties: Any) -> dict[str, Any]:  # noqa: A002
    """A component."""
    given = properties or {"image": "web:1"}
    return {"name": "web", "type": type, "properties": given, "traits": list(traits)}


def trait(type: str, **properties: Any) -> dict[str, Any]:  # noqa: A002
    return {"type": type, "properties": properties}


def application(
    *components: Mapping[str, Any], annotations: Mapping[str, str] | None = None, **spec: Any
) -> Application:
    meta = {"name": "shop", "namespace": "prod", "uid": "u1", "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta, "spec": {"components": components or [web()], **spec}}, Application)


def configured(
    *components: Mapping[str, Any], annotations: Mapping[str, str] | None = None
) -> ApplicationConfiguration:
    meta = {"name": "shop-v1", "namespace": "prod", "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta, "spec": {"components": components}}, ApplicationConfiguration)


def component(workload: Mapping[str, Any], name: str = "web") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "prod"}, "spec": {"workload": workload}}
