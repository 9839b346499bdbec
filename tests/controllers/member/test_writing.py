"""Writing objects, for any objects: what others own is left alone, and what is as it should be is not written."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.member.applying_bed import DEPLOYMENTS, MAPS, Counting, config
from kedge.api.rollout import ApplyStrategy
from kedge.controllers.member.writing import Writer, Written
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.codec import Codec, Untyped
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.plan.applying.manifests import DesiredObject, read_manifests
from kedge.plan.applying.ownership import WorkOwner
from support.stage import LoopClock
from support.virtual import run

OWNER = WorkOwner("web-work", "6a1f7e3c-0000-4000-8000-000000000000")
OURS, THEIRS = st.sampled_from("abcd"), st.sampled_from("wxyz")
WORDS = st.sampled_from(["1", "2", ""])
OUR_DATA, THEIR_DATA = st.dictionaries(OURS, WORDS, max_size=4), st.dictionaries(THEIRS, WORDS, max_size=3)


def env(data: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} if value else {"name": name} for name, value in data.items()]


def deployment(data: dict[str, str], labels: dict[str, str]) -> Untyped:
    container = {"name": "app", "image": "app:1", "env": env(data)}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], "nodeSelector": labels}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "default", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def placed(form: Codec[Untyped], body: Untyped) -> DesiredObject:
    (found,) = read_manifests([body], lambda *_: form.resource)
    assert isinstance(found, DesiredObject)
    return found


class Place:
    """A server, somebody else on it, and our writer."""

    def __init__(self) -> None:
        server = Server(clock=LoopClock(), rng=Random(1))
        self.transport = Counting(server, rng=Random(2), caller=Caller())
        self.client = Client(self.transport, limiter=Limiter(rate=0))
        self.writer = Writer(self.client, OWNER, ApplyStrategy())

    async def write(self, form: Codec[Untyped], body: Untyped) -> Untyped:
        end = await self.writer.write(placed(form, body), expected=True)
        assert isinstance(end, Written)
        return end.obj

    async def rewrites(self, form: Codec[Untyped], body: Untyped) -> list[str]:
        self.transport.writes.clear()
        await self.write(form, body)
        return self.transport.writes


@settings(max_examples=40)
@given(OUR_DATA, OUR_DATA, THEIR_DATA, OUR_DATA)
def test_maps_come_to_what_is_asked_for_and_what_others_added(
    first: dict[str, str], second: dict[str, str], theirs: dict[str, str], meddled: dict[str, str]
) -> None:
    async def scene() -> None:
        place = Place()
        body = {**config(), "metadata": {"name": "m", "namespace": "default", "labels": first}, "data": first}
        await place.write(MAPS, body)
        change = {"data": {**theirs, **meddled}, "metadata": {"labels": {**theirs, **meddled}}}
        await place.client.patch(MAPS, "m", MergePatch(change), "default", manager="others")
        body = {**body, "metadata": {**body["metadata"], "labels": second}, "data": second}
        found = await place.write(MAPS, body)
        # What others gave a value that we never asked for is theirs, also if we might have asked for it.
        left = {name: value for name, value in meddled.items() if name not in first}
        assert found.get("data", {}) == {**left, **theirs, **second}
        assert found["metadata"].get("labels", {}) == {**left, **theirs, **second}
        assert await place.rewrites(MAPS, body) == []
        await place.client.close()

    run(scene())


@settings(max_examples=30)
@given(OUR_DATA, OUR_DATA, THEIR_DATA, THEIR_DATA)
def test_lists_by_name_come_to_what_is_asked_for_and_what_others_added(
    first: dict[str, str], second: dict[str, str], theirs: dict[str, str], labels: dict[str, str]
) -> None:
    async def scene() -> None:
        place = Place()
        live = await place.write(DEPLOYMENTS, deployment(first, {}))
        container = live["spec"]["template"]["spec"]["containers"][0]
        container = {**container, "env": [*env(first), *env(theirs)], "tty": True}
        spec: Any = {"template": {"spec": {"containers": [container], "nodeSelector": labels}}, "replicas": 3}
        await place.client.patch(DEPLOYMENTS, "web", MergePatch({"spec": spec}), "default", manager="others")
        wanted = deployment(second, {"a": "1"})
        found = await place.write(DEPLOYMENTS, wanted)
        pod = found["spec"]["template"]["spec"]
        variables = {one["name"]: one.get("value", "") for one in pod["containers"][0].get("env", [])}
        assert variables == {**theirs, **second}
        assert (pod["containers"][0]["tty"], found["spec"]["replicas"]) == (True, 3)
        assert pod["nodeSelector"] == {**labels, "a": "1"}
        assert await place.rewrites(DEPLOYMENTS, wanted) == []
        await place.client.close()

    run(scene())


def test_who_is_overtaken_looks_again_and_loses_nothing() -> None:
    """Others write in the middle of every write of ours."""

    async def scene() -> None:
        place = Place()
        body = {**config(), "metadata": {"name": "m", "namespace": "default"}, "data": {"ours": "0"}}
        await place.write(MAPS, body)

        async def others() -> None:
            for n in range(200):
                await place.client.patch(MAPS, "m", MergePatch({"data": {"theirs": str(n)}}), "default")

        meddling = asyncio.create_task(others())
        refused = 0
        for n in range(1, 20):
            wanted = {**body, "data": {"ours": str(n)}}
            end = await place.writer.write(placed(MAPS, wanted), expected=True)
            refused += not isinstance(end, Written)
        await meddling
        found = await place.write(MAPS, {**body, "data": {"ours": "19"}})
        assert found["data"] == {"ours": "19", "theirs": "199"}
        await place.client.close()

    run(scene())
