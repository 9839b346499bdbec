"""Strategic merge patches: lists of named things are merged by name, and directives in the patch say otherwise."""

from typing import Any

import pytest

from contract.backend import Api
from embedded.schema.merging import REFUSALS, ROWS, Row, deployment, looked_up

STRATEGIC = "application/strategic-merge-patch+json"


async def patched(api: Api, patch: Any, **query: str) -> Any:
    created = await api.ask("POST", api.deployments, deployment())
    assert created.code == 201, created
    return await api.ask("PATCH", f"{api.deployments}/web", patch, STRATEGIC, **query)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_strategic_merge_patch(api: Api, row: Row) -> None:
    answer = await patched(api, row.of_deployment, dryRun="All")
    assert answer.code == 200, answer
    found = answer.body if row.whole else answer.body["spec"]["template"]["spec"]
    assert looked_up(found, row.at) == row.then


@pytest.mark.parametrize(("patch", "code", "message"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
async def test_a_patch_that_contradicts_itself_is_refused(
    api: Api, patch: dict[str, Any], code: int, message: str
) -> None:
    answer = await patched(api, {"spec": {"template": {"spec": patch}}})
    assert answer.refusal[:2] == (code, "BadRequest" if code == 400 else "")
    assert message in answer.refusal[2]


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"{", b"nonsense"])
async def test_a_body_that_is_no_patch_is_a_bad_request(api: Api, body: bytes) -> None:
    answer = await patched(api, body)
    assert answer.refusal[:2] == (400, "BadRequest")


async def test_a_service_is_patched_by_its_ports(api: Api) -> None:
    services = f"/api/v1/namespaces/{api.namespace}/services"
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    made = await api.ask("POST", services, {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    assert made.code == 201, made
    patch = {"spec": {"ports": [{"port": 81, "targetPort": 8081}]}}
    answer = await api.ask("PATCH", f"{services}/s", patch, STRATEGIC)
    assert [(port["port"], port["targetPort"]) for port in answer.body["spec"]["ports"]] == [(80, 80), (81, 8081)]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"spec": {"replicas": "x"}}, '"map[spec:map[replicas:x]]": unrecognized type: int32'),
        ({"spec": "x"}, '"map[spec:x]": cannot restore struct from: string'),
        ({"metadata": {"labels": "x"}}, '"map[metadata:map[labels:x]]": cannot restore map from string'),
        ({"spec": {"paused": "x"}}, '"map[spec:map[paused:x]]": unrecognized type: bool'),
        ({"spec": {"template": []}}, '"map[spec:map[template:[]]]": cannot restore struct from: slice'),
    ],
)
async def test_a_patch_of_the_wrong_type_is_invalid(api: Api, patch: dict[str, Any], message: str) -> None:
    answer = await patched(api, patch)
    assert answer.refusal == (422, "Invalid", f' "" is invalid: patch: Invalid value: {message}')
