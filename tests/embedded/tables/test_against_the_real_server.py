"""Our cells for an object are the real server's cells for it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from embedded.builtin.world import documents
from kedge.embedded import tables
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.kind import Kind
from kedge.kube.transport import Request, Transport
from support.recording.api import RealApi

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KINDS = {(kind.resource.api_version, kind.resource.kind): kind for kind in BUILT_IN}
AGE = re.compile(r"\d+[smhdy](\d+[smhdy])?")
STAYING = ("Pod", "ServiceAccount")
LONG_AGO = "2020-01-01T00:00:00Z"
OBJECTS = [
    obj
    for obj in documents("good.yaml")
    if obj["kind"] != "Namespace" and "namespace" not in obj["metadata"]  # each row has a namespace of its own
]


def _title(obj: Mapping[str, Any]) -> str:
    return f"{obj['kind']} {obj['metadata'].get('name', '')}"


class Real:
    """A real server, asked for tables."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport = transport
        self._namespace = namespace

    async def ask(self, method: str, kind: Kind, body: object = None, name: str = "", part: str = "") -> Any:
        path = kind.resource.path(self._namespace, name or None, part or None)
        dry = (("dryRun", "All"),) if method == "POST" and kind.resource.kind not in STAYING else ()
        query = (("includeObject", "Object"), *dry)
        media = "application/json" if method == "POST" else "application/merge-patch+json"
        raw = b"" if body is None else msgspec.json.encode(body)
        response = await self._transport.send(Request(method, path, query, raw, media, TABLE), timeout=120.0)
        assert response.status in (200, 201), response.body
        return msgspec.json.decode(response.body)


@pytest.fixture
async def real(bare_api: RealApi) -> AsyncIterator[Real]:
    transport = await bare_api.transport()
    server = Real(transport, await bare_api.fresh_namespace())
    await server.ask("POST", KINDS["v1", "ServiceAccount"], {"metadata": {"name": "default"}})
    yield server
    await transport.close()


def compare(kind: Kind, table: Any) -> None:
    row = table["rows"][0]
    named = [{**column, "description": ""} for column in table["columnDefinitions"]]
    assert list(tables.columns(kind)) == named
    ours = tables.cells(kind, row["object"], datetime.now(UTC))
    assert [_mask(cell) for cell in ours] == [_mask(cell) for cell in row["cells"]]
    assert tables.row_conditions(kind, row["object"]).get("conditions") == row.get("conditions")


def _mask(cell: Any) -> Any:
    return AGE.sub("AGE", cell) if isinstance(cell, str) else cell


@pytest.mark.parametrize("obj", OBJECTS, ids=map(_title, OBJECTS))
async def test_a_new_object(real: Real, obj: Mapping[str, Any]) -> None:
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    metadata = {**obj["metadata"], "name": f"{obj['metadata'].get('name', 'some')}"}
    body = {**obj, "metadata": metadata}
    if kind.resource.kind == "Pod":
        body["metadata"] = {**metadata, "annotations": {}}
    compare(kind, await real.ask("POST", kind, body))


def running(name: str, *, ready: bool = True, restarts: int = 0, **state: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "i",
        "imageID": "",
        "ready": ready,
        "restartCount": restarts,
        "state": state or {"running": {"startedAt": LONG_AGO}},
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": LONG_AGO}} if restarts else {},
    }


READY = [{"type": "Ready", "status": "True"}]
POD_STATES: list[tuple[str, dict[str, Any]]] = [
    ("pending", {"phase": "Pending"}),
    ("running", {"phase": "Running", "conditions": READY, "containerStatuses": [running("a"), running("b")]}),
    ("one ready", {"phase": "Running", "containerStatuses": [running("a"), running("b", ready=False)]}),
    ("restarted", {"phase": "Running", "containerStatuses": [running("a", restarts=3), running("b")]}),
    (
        "crash loop",
        {
            "phase": "Running",
            "containerStatuses": [
                running("a", ready=False, restarts=5, waiting={"reason": "CrashLoopBackOff"}),
                running("b"),
            ],
        },
    ),
    (
        "bad image",
        {"phase": "Pending", "containerStatuses": [running("a", ready=False, waiting={"reason": "ErrImagePull"})]},
    ),
    ("succeeded", {"phase": "Succeeded", "containerStatuses": [running("a", ready=False, terminated={"exitCode": 0})]}),
    ("failed", {"phase": "Failed", "containerStatuses": [running("a", ready=False, terminated={"exitCode": 7})]}),
    ("signal", {"phase": "Failed", "containerStatuses": [running("a", terminated={"exitCode": 0, "signal": 9})]}),
    ("out of memory", {"phase": "Failed", "reason": "Evicted"}),
    (
        "completed beside one that runs",
        {
            "phase": "Running",
            "conditions": READY,
            "containerStatuses": [
                running("a", ready=False, terminated={"exitCode": 0, "reason": "Completed"}),
                running("b"),
            ],
        },
    ),
    (
        "completed beside one that runs, not ready",
        {
            "phase": "Running",
            "containerStatuses": [
                running("a", ready=False, terminated={"exitCode": 0, "reason": "Completed"}),
                running("b"),
            ],
        },
    ),
    ("initialising", {"phase": "Pending", "initContainerStatuses": [running("first", ready=False)]}),
    (
        "an init container fails",
        {"phase": "Pending", "initContainerStatuses": [running("first", ready=False, terminated={"exitCode": 2})]},
    ),
    (
        "an init container crashes",
        {
            "phase": "Pending",
            "initContainerStatuses": [
                running("first", ready=False, restarts=4, waiting={"reason": "CrashLoopBackOff"})
            ],
        },
    ),
    (
        "initialised",
        {
            "phase": "Running",
            "conditions": [{"type": "Initialized", "status": "True"}, *READY],
            "initContainerStatuses": [running("first", ready=True, terminated={"exitCode": 0})],
            "containerStatuses": [running("a")],
        },
    ),
    (
        "gated",
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
    ),
    (
        "with addresses",
        {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "nominatedNodeName": "n"},
    ),
]


@pytest.mark.parametrize("status", [state for _, state in POD_STATES], ids=[name for name, _ in POD_STATES])
async def test_a_pod_in_this_state(real: Real, status: dict[str, Any]) -> None:
    kind = KINDS["v1", "Pod"]
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    first = [{"name": "first", "image": "i"}] if "initContainerStatuses" in status else []
    gates = [{"conditionType": "example.com/gate"}, {"conditionType": "Ready"}]
    spec = {
        "containers": containers,
        "initContainers": first,
        "readinessGates": gates,
        "automountServiceAccountToken": False,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    await real.ask("POST", kind, pod)
    compare(kind, await real.ask("PATCH", kind, {"status": status}, "p", "status"))
