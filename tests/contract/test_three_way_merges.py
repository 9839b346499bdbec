"""What the member's agent makes of an object: on both servers, and held to what `kubectl apply` makes of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from contract.backend import Api
from contract.three_way import ROWS, Row, contained, seen, served
from kedge.api.resource import Resource
from kedge.api.rollout import ApplyStrategy
from kedge.controllers.member.writing import Writer, Written
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from kedge.plan.applying.manifests import DesiredObject, read_manifests
from kedge.plan.applying.ownership import WorkOwner
from support.recording.api import RealApi

OWNER = WorkOwner("web-work", "6a1f7e3c-0000-4000-8000-000000000000")
NAME = "merged"


def manifest(row: Row, body: Any, namespace: str, name: str = NAME) -> Untyped:
    head = {"apiVersion": row.resource.api_version, "kind": row.resource.kind}
    return {**head, **body, "metadata": {**body.get("metadata", {}), "name": name, "namespace": namespace}}


def placed(resource: Resource, wanted: Untyped) -> DesiredObject:
    (found,) = read_manifests([wanted], lambda *_: resource)
    assert isinstance(found, DesiredObject)
    return found


async def ours(api: Api, row: Row) -> Untyped:
    """What comes of a row if the agent applies it."""
    await write(api, row, row.before)
    if row.others:
        await _change(api, row, NAME)
    return (await write(api, row, row.after)).obj


async def write(api: Api, row: Row, body: Any) -> Written:
    writer = Writer(api.client, OWNER, ApplyStrategy())
    end = await writer.write(placed(row.resource, manifest(row, body, api.namespace)), expected=True)
    assert isinstance(end, Written), end
    return end


async def _change(api: Api, row: Row, name: str) -> None:
    await api.client.patch(untyped(row.resource), name, MergePatch(row.others), api.namespace, manager="others")


async def kubectls(api: Api, row: Row, real: RealApi) -> Untyped:
    """What comes of it if kubectl applies it."""
    name = f"{NAME}-by-kubectl"
    for body, others in ((row.before, row.others), (row.after, None)):
        text = msgspec.json.encode(manifest(row, body, api.namespace, name)).decode()
        await real.kubectl("apply", "-f", "-", input=text)
        if others:
            await _change(api, row, name)
    return await api.client.get(untyped(row.resource), name, api.namespace)


def comparable(obj: Untyped) -> Untyped:
    """An object without what is its own, its agent's or its server's."""
    metadata = {name: obj["metadata"].get(name) for name in ("labels", "finalizers")}
    spec = obj.get("spec")
    if isinstance(spec, dict):
        spec = {name: value for name, value in spec.items() if name not in ("clusterIP", "clusterIPs")}
    rest = {name: value for name, value in obj.items() if name not in ("metadata", "spec", "status")}
    return {"metadata": metadata, "spec": spec, **rest}


@pytest.mark.parametrize("name", ROWS)
async def test_a_merge_comes_to_what_is_written_here_and_to_what_kubectl_makes_of_it(
    api: Api, real_api: RealApi | None, name: str
) -> None:
    row = ROWS[name]
    found = await ours(api, row)
    assert seen(found, row.at) == row.result
    if real_api and row.kubectl:
        assert comparable(found) == comparable(await kubectls(api, row, real_api))


@pytest.mark.parametrize("name", ROWS)
async def test_what_is_applied_again_is_not_written_again(api: Api, name: str) -> None:
    row = ROWS[name]
    found = await ours(api, row)
    again = await write(api, row, row.after)
    assert again.obj["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


async def test_a_quantity_in_other_words_is_no_change(api: Api) -> None:
    row = ROWS["limits of others stay"]
    body = contained(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}})
    assert (await write(api, row, body)).changed
    assert not (await write(api, row, body)).changed


async def test_a_port_that_gets_a_name_keeps_the_number_that_the_server_chose(api: Api) -> None:
    row = ROWS["a service port by number"]
    first = await write(api, row, served({"port": 80}, type="NodePort"))
    second = await write(api, row, served({"port": 80, "name": "http"}, {"port": 81, "name": "more"}, type="NodePort"))
    chosen = [obj.obj["spec"]["ports"][0]["nodePort"] for obj in (first, second)]
    assert chosen[0] == chosen[1]


@pytest.fixture(autouse=True)
async def finalizers_are_taken_off(api: Api) -> Any:
    yield
    for name in (NAME, f"{NAME}-by-kubectl"):
        path = f"{api.maps}/{name}"
        if await api.is_there(path):
            await api.merge(path, {"metadata": {"finalizers": None}})
