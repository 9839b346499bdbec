"""Three-way merges, as a table: what was applied, what others then changed, what is applied now, what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kedge.api.resource import Resource

Json = Any
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
SERVICE = Resource("", "v1", "Service", "services")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
ROLE = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")
INGRESS = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")


class Row(Struct, frozen=True):
    """One merge. `at` is where to look afterwards; `kubectl` whether `kubectl apply` comes to the same."""

    resource: Resource
    before: Mapping[str, Any]
    others: Mapping[str, Any]
    after: Mapping[str, Any]
    at: str
    result: Json
    kubectl: bool = True


def deployed(pod: Mapping[str, Any] | None = None, /, **spec: Any) -> dict[str, Any]:
    """A Deployment with this of its own, and this in its pods."""
    body = {"containers": [{"name": "app", "image": "app:1"}], **(pod or {})}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": body}
    return {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}}


def contained(**container: Any) -> dict[str, Any]:
    return deployed({"containers": [{"name": "app", "image": "app:1", **container}]})


def pods(**spec: Any) -> dict[str, Any]:
    """A change of others to the pods."""
    return {"spec": {"template": {"spec": spec}}}


def served(*ports: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"app": "web"}, "ports": list(ports), **spec}}


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "data": {"a": "1"}}


def var(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


_POD = "spec.template.spec"
_APP = f"{_POD}.containers.0"
_SIDECAR = {"name": "sidecar", "image": "sidecar:1"}
_DATA = {"name": "data", "emptyDir": {}}
_INJECTED = {"name": "injected", "emptyDir": {}}


def _images(*images: str) -> dict[str, Any]:
    return deployed({"containers": [{"name": image[0], "image": image} for image in images]})


def _constraint(key: str, skew: int, when: str = "ScheduleAnyway") -> dict[str, Any]:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when}


ROWS: Mapping[str, Row] = {
    "a scalar is changed": Row(
        DEPLOYMENT, deployed(minReadySeconds=5), {}, deployed(minReadySeconds=7), "spec.minReadySeconds", 7
    ),
    "a scalar that is no longer asked for goes": Row(
        DEPLOYMENT, deployed(minReadySeconds=5), {}, deployed(), "spec.minReadySeconds", None
    ),
    "a scalar that others changed is put back": Row(
        DEPLOYMENT, deployed(replicas=2), {"spec": {"replicas": 5}}, deployed(replicas=2), "spec.replicas", 2
    ),
    "a scalar nobody asked for stays as others set it": Row(
        DEPLOYMENT, deployed(), {"spec": {"replicas": 5}}, deployed(paused=True), "spec.replicas", 5
    ),
    "a scalar that is not asked for any more goes though others changed it": Row(
        DEPLOYMENT,
        deployed(minReadySeconds=5),
        {"spec": {"minReadySeconds": 9}},
        deployed(),
        "spec.minReadySeconds",
        None,
    ),
    "a null is nothing": Row(
        DEPLOYMENT, deployed(minReadySeconds=5), {}, deployed(minReadySeconds=None), "spec.minReadySeconds", None
    ),
    "a label of others stays": Row(
        CONFIG_MAP,
        labelled(mine="1"),
        {"metadata": {"labels": {"theirs": "x"}}},
        labelled(mine="2"),
        "metadata.labels",
        {"mine": "2", "theirs": "x"},
    ),
    "a label that is no longer asked for goes": Row(
        CONFIG_MAP, labelled(a="1", b="2"), {}, labelled(a="1"), "metadata.labels", {"a": "1"}
    ),
    "a label that others took away comes back": Row(
        CONFIG_MAP,
        labelled(a="1"),
        {"metadata": {"labels": {"a": None}}},
        labelled(a="1"),
        "metadata.labels",
        {"a": "1"},
    ),
    "all labels go": Row(CONFIG_MAP, labelled(a="1"), {}, {"data": {"a": "1"}}, "metadata.labels", None),
    "data of others stays": Row(
        CONFIG_MAP,
        {"data": {"a": "1", "b": "2"}},
        {"data": {"theirs": "x", "b": "changed"}},
        {"data": {"a": "3"}},
        "data",
        {"a": "3", "theirs": "x"},
    ),
    "a finalizer of others stays, ours goes": Row(
        CONFIG_MAP,
        {"metadata": {"finalizers": ["example.com/ours"]}},
        {"metadata": {"finalizers": ["example.com/ours", "example.com/theirs"]}},
        {},
        "metadata.finalizers",
        ["example.com/theirs"],
        kubectl=False,  # it takes those of others away too
    ),
    "a finalizer is added to those of others": Row(
        CONFIG_MAP,
        {},
        {"metadata": {"finalizers": ["example.com/theirs"]}},
        {"metadata": {"finalizers": ["example.com/ours"]}},
        "metadata.finalizers",
        ["example.com/ours", "example.com/theirs"],
    ),
    "a container that others injected stays": Row(
        DEPLOYMENT,
        contained(image="app:1"),
        pods(containers=[{"name": "app", "image": "app:1"}, _SIDECAR]),
        contained(image="app:2"),
        f"{_POD}.containers.*.image",
        ["app:2", "sidecar:1"],
    ),
    "a container of ours goes, that of others stays": Row(
        DEPLOYMENT,
        _images("a:1", "b:1"),
        pods(containers=[{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}, {"name": "x", "image": "x:1"}]),
        _images("a:1"),
        f"{_POD}.containers.*.image",
        ["a:1", "x:1"],
    ),
    "containers come in the order that is asked for": Row(
        DEPLOYMENT, _images("a:1", "b:1"), {}, _images("b:1", "a:1"), f"{_POD}.containers.*.image", ["b:1", "a:1"]
    ),
    "a container before others": Row(
        DEPLOYMENT,
        _images("b:1"),
        pods(containers=[{"name": "b", "image": "b:1"}, {"name": "x", "image": "x:1"}]),
        _images("a:1", "b:1"),
        f"{_POD}.containers.*.image",
        ["a:1", "b:1", "x:1"],
    ),
    "a container that others took away comes back": Row(
        DEPLOYMENT,
        _images("a:1", "b:1"),
        pods(containers=[{"name": "a", "image": "a:1"}]),
        _images("a:1", "b:1"),
        f"{_POD}.containers.*.image",
        ["a:1", "b:1"],
    ),
    "environment by name": Row(
        DEPLOYMENT,
        contained(env=[var("A", "1"), var("B", "2")]),
        pods(containers=[{"name": "app", "image": "app:1", "env": [var("A", "0"), var("B", "2"), var("X", "x")]}]),
        contained(env=[var("A", "1"), var("C", "3")]),
        f"{_APP}.env",
        [var("A", "1"), var("X", "x"), var("C", "3")],
    ),
    "a value becomes a reference": Row(
        DEPLOYMENT,
        contained(env=[var("A", "1")]),
        {},
        contained(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        f"{_APP}.env",
        [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
    ),
    "a volume of another sort": Row(
        DEPLOYMENT,
        deployed({"volumes": [_DATA]}),
        {},
        deployed({"volumes": [{"name": "data", "configMap": {"name": "c"}}]}),
        f"{_POD}.volumes",
        [{"name": "data", "configMap": {"name": "c", "defaultMode": 420}}],
    ),
    "a volume of another sort though others changed it too": Row(
        DEPLOYMENT,
        deployed({"volumes": [_DATA]}),
        pods(volumes=[{"name": "data", "hostPath": {"path": "/x", "type": ""}}]),
        deployed({"volumes": [{"name": "data", "configMap": {"name": "c"}}]}),
        f"{_POD}.volumes",
        [{"name": "data", "configMap": {"name": "c", "defaultMode": 420}}],
    ),
    "a volume of others stays": Row(
        DEPLOYMENT,
        deployed({"volumes": [_DATA]}),
        pods(volumes=[_DATA, _INJECTED]),
        deployed(),
        f"{_POD}.volumes",
        [_INJECTED],
        kubectl=False,  # it takes those of others away too
    ),
    "labels of others stay though none are asked for any more": Row(
        CONFIG_MAP,
        labelled(a="1"),
        {"metadata": {"labels": {"theirs": "x"}}},
        {"data": {"a": "1"}},
        "metadata.labels",
        {"theirs": "x"},
        kubectl=False,  # it takes those of others away too
    ),
    "mounts by path": Row(
        DEPLOYMENT,
        deployed(
            {
                "volumes": [_DATA],
                "containers": [
                    {"name": "app", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/a"}]}
                ],
            }
        ),
        {},
        deployed(
            {
                "volumes": [_DATA],
                "containers": [
                    {"name": "app", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/b"}]}
                ],
            }
        ),
        f"{_APP}.volumeMounts",
        [{"name": "data", "mountPath": "/b"}],
    ),
    "another strategy": Row(
        DEPLOYMENT,
        deployed(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
        {},
        deployed(strategy={"type": "Recreate"}),
        "spec.strategy",
        {"type": "Recreate"},
    ),
    "another strategy where none was asked for": Row(
        DEPLOYMENT, deployed(), {}, deployed(strategy={"type": "Recreate"}), "spec.strategy", {"type": "Recreate"}
    ),
    "arguments are one thing": Row(
        DEPLOYMENT,
        contained(args=["a", "b"]),
        pods(containers=[{"name": "app", "image": "app:1", "args": ["a", "x"]}]),
        contained(args=["b", "c"]),
        f"{_APP}.args",
        ["b", "c"],
    ),
    "arguments that are no longer asked for go": Row(
        DEPLOYMENT, contained(args=["a"]), {}, contained(), f"{_APP}.args", None
    ),
    "tolerations are one thing": Row(
        DEPLOYMENT,
        deployed({"tolerations": [{"key": "a", "operator": "Exists"}]}),
        pods(tolerations=[{"key": "x", "operator": "Exists"}]),
        deployed({"tolerations": [{"key": "b", "operator": "Exists"}]}),
        f"{_POD}.tolerations",
        [{"key": "b", "operator": "Exists"}],
    ),
    "a node selector is a map": Row(
        DEPLOYMENT,
        deployed({"nodeSelector": {"a": "1", "b": "2"}}),
        pods(nodeSelector={"x": "y"}),
        deployed({"nodeSelector": {"a": "3"}}),
        f"{_POD}.nodeSelector",
        {"a": "3", "x": "y"},
    ),
    "pull secrets by name": Row(
        DEPLOYMENT,
        deployed({"imagePullSecrets": [{"name": "a"}]}),
        pods(imagePullSecrets=[{"name": "a"}, {"name": "x"}]),
        deployed({"imagePullSecrets": [{"name": "b"}]}),
        f"{_POD}.imagePullSecrets",
        [{"name": "x"}, {"name": "b"}],
    ),
    "host aliases by address": Row(
        DEPLOYMENT,
        deployed({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}),
        pods(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["z"]}, {"ip": "10.0.0.9", "hostnames": ["x"]}]),
        deployed({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}]}),
        f"{_POD}.hostAliases",
        [{"ip": "10.0.0.1", "hostnames": ["b"]}, {"ip": "10.0.0.9", "hostnames": ["x"]}],
    ),
    "init containers by name": Row(
        DEPLOYMENT,
        deployed({"initContainers": [{"name": "i", "image": "i:1"}]}),
        pods(initContainers=[{"name": "i", "image": "i:1"}, {"name": "x", "image": "x:1"}]),
        deployed({"initContainers": [{"name": "i", "image": "i:2"}]}),
        f"{_POD}.initContainers.*.image",
        ["i:2", "x:1"],
    ),
    "spread constraints by key and what they do": Row(
        DEPLOYMENT,
        deployed({"topologySpreadConstraints": [_constraint("zone", 1)]}),
        pods(topologySpreadConstraints=[_constraint("zone", 1), _constraint("host", 9)]),
        deployed({"topologySpreadConstraints": [_constraint("zone", 2)]}),
        f"{_POD}.topologySpreadConstraints",
        [_constraint("zone", 2), _constraint("host", 9)],
    ),
    "limits of others stay": Row(
        DEPLOYMENT,
        contained(resources={"limits": {"cpu": "1"}}),
        pods(containers=[{"name": "app", "image": "app:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]),
        contained(resources={"limits": {"cpu": "2"}}),
        f"{_APP}.resources.limits",
        {"cpu": "2", "memory": "1Gi"},
    ),
    "a port of the same number in another protocol": Row(
        DEPLOYMENT,
        contained(ports=[{"containerPort": 53, "protocol": "TCP"}]),
        {},
        contained(ports=[{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]),
        f"{_APP}.ports",
        [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}],
        kubectl=False,  # known for losing one of them
    ),
    "a service port by number": Row(
        SERVICE,
        served({"name": "a", "port": 80}, {"name": "b", "port": 81}),
        {},
        served({"name": "a", "port": 80, "targetPort": 8080}),
        "spec.ports",
        [{"name": "a", "port": 80, "protocol": "TCP", "targetPort": 8080}],
    ),
    "a service's selector": Row(
        SERVICE,
        served({"port": 80}),
        {"spec": {"selector": {"x": "y"}}},
        served({"port": 80}, selector={"app": "shop"}),
        "spec.selector",
        {"app": "shop", "x": "y"},
    ),
    "rules are one thing": Row(
        ROLE,
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
        {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]},
        "rules",
        [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
    ),
    "an ingress' paths are one thing": Row(
        INGRESS,
        {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
        {"spec": {"ingressClassName": "theirs"}},
        {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"name": "http"}}}}},
        "spec",
        {"defaultBackend": {"service": {"name": "a", "port": {"name": "http"}}}, "ingressClassName": "theirs"},
    ),
    "annotations of the pods go": Row(
        DEPLOYMENT,
        {
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"a": "1"}},
                    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                },
            }
        },
        {},
        deployed(),
        "spec.template.metadata.annotations",
        None,
    ),
}


def seen(obj: Json, path: str) -> Json:
    """What stands at a path; `*` stands for every item of a list. None if there is nothing."""
    name, _, rest = path.partition(".")
    if not name:
        return obj
    if name == "*":
        return [seen(item, rest) for item in obj]
    found = obj[int(name)] if isinstance(obj, list) else obj.get(name)
    return None if found is None else seen(found, rest)
