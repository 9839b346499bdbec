"""Kinds to try field ownership on: three built-in ones, and a custom one with every way to own a part."""

from __future__ import annotations

from typing import Any

from kedge.api.openapi.builtin import schema_of
from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.ownership.kind_ownership import KindOwnership

NOW = "2030-01-01T00:00:00Z"
LATER = "2030-01-01T00:00:01Z"
MUCH_LATER = "2030-01-01T00:01:00Z"
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def struct(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def list_map(*keys: str, **members: Any) -> dict[str, Any]:
    items = {**struct(**members), "required": [keys[0]]}
    words = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": items, **words}


def map_of(value: Any, **words: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value, **words}


OPEN = {"x-kubernetes-preserve-unknown-fields": True}
SPEC = struct(
    count=NUMBER,
    text={**TEXT, "nullable": True},
    names={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    parts=list_map(
        "name", "kind", name=TEXT, kind={**TEXT, "default": "plain"}, size=NUMBER, more=struct(a=TEXT, b=TEXT)
    ),
    order={"type": "array", "items": TEXT},
    whole=map_of(NUMBER, **{"x-kubernetes-map-type": "atomic"}),
    table=map_of(NUMBER),
    deep=struct(x=struct(y=NUMBER)),
    port={"x-kubernetes-int-or-string": True},
    free={"type": "object", **OPEN},
    half={**struct(known=struct(k=TEXT)), **OPEN},
    manifest={"type": "object", "x-kubernetes-embedded-resource": True, **OPEN},
)
STATUS = struct(phase=TEXT, conditions=list_map("type", type=TEXT, status=TEXT))
THING_SCHEMA = struct(spec=SPEC, status=STATUS)

THINGS = Resource("ownership.kedge.dev", "v1", "Thing", "things")
MAPS = Resource("", "v1", "ConfigMap", "configmaps")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
SERVICES = Resource("", "v1", "Service", "services")
PODS = Resource("", "v1", "Pod", "pods")


def built_in(resource: Resource, *, status: bool = True) -> KindOwnership:
    return KindOwnership(resource, schema_of(resource.group, resource.version, resource.kind), status=status)


THING = KindOwnership(THINGS, Schema(THING_SCHEMA), status=True, custom=True)
MAP = built_in(MAPS, status=False)
DEPLOYMENT = built_in(DEPLOYMENTS)
SERVICE = built_in(SERVICES)
POD = built_in(PODS)


def crd() -> dict[str, Any]:
    """What makes a real server serve the custom one."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": THING_SCHEMA},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.ownership.kedge.dev"},
        "spec": {
            "group": THINGS.group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


def thing(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    obj = {"apiVersion": THINGS.api_version, "kind": "Thing", "metadata": {"name": "a", **metadata}}
    return obj if spec is None else {**obj, "spec": spec}


def config_map(data: Any = None, **metadata: Any) -> dict[str, Any]:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return obj if data is None else {**obj, "data": data}


def leaves(*names: str) -> dict[str, Any]:
    """A set of members."""
    return {f"f:{name}": {} for name in names}
