"""Reading and merging held to a real server: members sent empty, one by one, and patches of any sort.

Every member of every struct in a few objects is sent with nothing in it (`""`, `0`, `false`, `[]`, `{}`); where the
server takes that, it must come back as our reading and filling say: left out, or kept. A default the server puts in
its place says nothing about reading, and is passed over.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from embedded.schema import merging
from embedded.schema.sending import at, odd
from kedge.api.openapi.builtin import schema_of
from kedge.api.openapi.model import Schema
from kedge.embedded.schema.builtin_decoding import decode_struct
from kedge.embedded.schema.zero_values import with_zero_values
from kedge.embedded.server import Server
from kedge.kube.clock import SystemClock
from kedge.kube.transport import Request
from support.recording.api import RealApi

Untyped = dict[str, Any]

CONTAINER = {
    "name": "web",
    "image": "web:1",
    "ports": [{"containerPort": 80}],
    "env": [{"name": "A", "value": "1"}],
    "resources": {"limits": {"cpu": "1"}},
    "livenessProbe": {"httpGet": {"port": 80}},
    "securityContext": {"runAsUser": 1},
    "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
    "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
}
POD = {
    "containers": [CONTAINER],
    "volumes": [
        {"name": "conf", "configMap": {"name": "conf", "items": [{"key": "a", "path": "b"}]}},
        {"name": "tmp", "emptyDir": {"medium": "Memory"}},
        {"name": "home", "hostPath": {"path": "/x"}},
    ],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "securityContext": {"fsGroup": 1},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
}
# Taken away by rules of their kinds, or because their feature is off: not by reading.
RULED = ("spec.sessionAffinityConfig", "spec.dataSource", "stopSignal", "schedulingGroup", "preferredHolder")
RULED_IN_LEASES = ("spec.strategy",)
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
ONCE = {**TEMPLATE, "spec": {**POD, "restartPolicy": "Never"}}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
RULE = {"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}

OBJECTS: list[tuple[str, str, str, Untyped]] = [
    ("", "ConfigMap", "configmaps", {"data": {"a": "b"}}),
    ("", "Secret", "secrets", {"data": {"a": "YQ=="}}),
    ("", "Service", "services", {"spec": {"selector": LABELS, "ports": [{"name": "http", "port": 80}]}}),
    ("", "ServiceAccount", "serviceaccounts", {"imagePullSecrets": [{"name": "a"}]}),
    ("", "PodTemplate", "podtemplates", {"template": TEMPLATE}),
    (
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    ("apps", "Deployment", "deployments", {"spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": {}}}),
    (
        "apps",
        "StatefulSet",
        "statefulsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "web", "updateStrategy": {}}},
    ),
    ("apps", "DaemonSet", "daemonsets", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps", "ReplicaSet", "replicasets", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("batch", "Job", "jobs", {"spec": {"template": ONCE}}),
    (
        "batch",
        "CronJob",
        "cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}},
    ),
    ("networking.k8s.io", "Ingress", "ingresses", {"spec": {"rules": [RULE], "tls": [{"hosts": ["a.b"]}]}}),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        "networkpolicies",
        {"spec": {"podSelector": SELECTOR, "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}]}},
    ),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets", {"spec": {"selector": SELECTOR, "minAvailable": 1}}),
    ("coordination.k8s.io", "Lease", "leases", {"spec": {"holderIdentity": "me"}}),
    (
        "rbac.authorization.k8s.io",
        "Role",
        "roles",
        {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["x"]}]},
    ),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {}}], "ports": [{"port": 80}]},
    ),
]


def nothings(schema: Schema, value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every member of the structs in a value, and what it is when there is nothing in it."""
    if isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from nothings(schema.items, item, f"{path}.{index}")
    if not isinstance(value, dict) or not schema.properties:
        return
    for name, node in schema.properties.items():
        at_name = f"{path}.{name}" if path else name
        if name in value:
            yield from nothings(node, value[name], at_name)
        if at_name.partition(".")[0] not in ("apiVersion", "kind", "metadata", "status"):
            yield at_name, _nothing(node)


def _nothing(schema: Schema) -> Any:
    if schema.int_or_string:
        return 0
    if schema.format == "date-time":
        return None
    zeros: Untyped = {"string": "", "integer": 0, "boolean": False, "array": [], "object": {}, "number": 0}
    return "0" if schema.name.endswith(".Quantity") else zeros.get(schema.type)


@pytest.mark.parametrize(("group", "kind", "plural", "members"), OBJECTS, ids=[row[1] for row in OBJECTS])
async def test_what_is_sent_empty_is_left_out_or_kept(
    bare_api: RealApi, group: str, kind: str, plural: str, members: Untyped
) -> None:
    schema = schema_of(group, "v1", kind)
    root = f"/apis/{group}/v1" if group else "/api/v1"
    obj = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "a"}, **members}
    compared, differ = 0, {}
    ruled = RULED + (RULED_IN_LEASES if kind == "Lease" else ())
    for path, nothing in nothings(schema, obj):
        if path.endswith(ruled) or ".template." in path:
            continue  # a template's members are those of a PodTemplate
        sent = odd(path, nothing, obj)
        answer = await bare_api.request("POST", f"{root}/namespaces/default/{plural}?dryRun=All", sent)
        ours, theirs = at(with_zero_values(schema, decode_struct(schema, sent).obj), path), None
        if answer.status == 201:
            theirs = at(answer.json(), path)
        if answer.status != 201 or theirs not in (None, nothing, []):
            continue  # refused for another reason, or given a default
        compared += 1
        if type(ours) is not type(theirs) or ours != theirs:
            differ[path] = (ours, theirs)
    assert not differ
    assert compared


STRATEGIC = "application/strategic-merge-patch+json"


@pytest.mark.parametrize("seed", range(4))
async def test_any_strategic_patch_ends_as_on_a_real_server(bare_api: RealApi, seed: int) -> None:
    rng, server = Random(seed), Server(clock=SystemClock(), rng=Random(1))
    path = f"/apis/apps/v1/namespaces/{await bare_api.fresh_namespace()}/deployments"
    server.handle(
        Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"%s"}}' % path.split("/")[5].encode())
    )
    made = await bare_api.request("POST", path, merging.deployment())
    assert made.status == 201
    assert server.handle(Request("POST", path, body=msgspec.json.encode(merging.deployment()))).status == 201

    async def compare(patch: Untyped) -> None:
        dry = (("dryRun", "All"),)
        ours = server.handle(Request("PATCH", f"{path}/web", dry, msgspec.json.encode(patch), STRATEGIC))
        theirs = await bare_api.request("PATCH", f"{path}/web?dryRun=All", patch, content_type=STRATEGIC)
        assert ours.status == theirs.status, patch
        assert _outcome(msgspec.json.decode(ours.body)) == _outcome(theirs.json()), patch

    for patch in [merging.any_patch(rng) for _ in range(15)]:
        await compare(patch)


def _outcome(body: Untyped) -> Any:
    """What a patch came to: the parts of the object it can change, or why it was refused."""
    if body["kind"] == "Status":
        return body.get("reason"), body["message"]
    return body["spec"], body["metadata"].get("finalizers")
