"""The member's agent on real Kubernetes: one control plane is the hub and the member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from controlplane.cluster import Cluster
from kedge.api.crd import crd
from kedge.api.dialect import Dialect
from kedge.api.fleet import LAST_APPLIED, ON_DELETE, SPEC_HASH, member_namespace
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork, Work
from kedge.controllers.member.applier import Applier
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.waiting import until_so

NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))
MAPS = untyped(Resource("", "v1", "ConfigMap", "configmaps"))
DEPLOYMENTS = untyped(Resource("apps", "v1", "Deployment", "deployments"))
QUOTAS = untyped(Resource("", "v1", "ResourceQuota", "resourcequotas"))
CRDS = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)
DEFINITIONS = tuple(crd(kind, Dialect.seed) for kind in (Work, AppliedWork))
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Here:
    """The agent's two sides, and a member's name that nobody else has."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.place = name  # the namespace on the member
        self.hub_namespace = member_namespace(name)

    async def ask_for(self, *manifests: Untyped, **spec: Any) -> None:
        body = {"spec": {"workload": {"manifests": list(manifests)}, **spec}}
        metadata = {"name": self.work, "namespace": self.hub_namespace}
        try:
            await self.client.create(Work, {"metadata": metadata, **body})
        except AlreadyExists:
            await self.client.patch(Work, self.work, MergePatch(body), self.hub_namespace)

    @property
    def work(self) -> str:
        return f"{self.name}-work"

    async def says(self, *wanted: str) -> None:
        """Wait until the Work says this of what it is now: `Applied=True/AllManifestsApplied`."""
        last: list[str] = []

        async def so() -> bool:
            nonlocal last
            work = await self.client.get(Work, self.work, self.hub_namespace)
            current = [one for one in work.status.conditions if one.observed_generation == work.metadata.generation]
            last = [f"{one.type}={one.status}/{one.reason}" for one in current]
            return last == list(wanted)

        try:
            await until_so(so, within=120)
        except TimeoutError:
            raise AssertionError(f"it says {last}, not {list(wanted)}") from None

    async def find(self, kind: Any, name: str) -> Untyped | None:
        try:
            found: Untyped = await self.client.get(kind, name, self.place)
        except NotFound:
            return None
        return found

    async def until(self, so: Callable[[], Awaitable[object]]) -> None:
        await until_so(so, within=180)  # the garbage collector looks for new kinds of owners every 30 s

    def namespace(self) -> Untyped:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.place}}

    def config(self, **data: str) -> Untyped:
        metadata = {"name": "settings", "namespace": self.place}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def deployment(self, image: str = "app:1") -> Untyped:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        metadata = {"name": "web", "namespace": self.place}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    def workload(self, kind: str) -> Untyped:
        """A StatefulSet, DaemonSet or Job like the Deployment."""
        body = self.deployment()
        template, spec = body["spec"]["template"], body["spec"]
        if kind == "Job":
            pod = {"spec": {**template["spec"], "restartPolicy": "Never"}}
            return {**body, "apiVersion": "batch/v1", "kind": kind, "spec": {"template": pod}}
        if kind == "StatefulSet":
            return {**body, "kind": kind, "spec": {**spec, "serviceName": "web"}}
        return {**body, "kind": kind, "spec": {name: value for name, value in spec.items() if name != "replicas"}}


@pytest.fixture
async def here(full_cluster: Cluster) -> AsyncIterator[Here]:
    config = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client = Client(HttpsTransport(config), limiter=Limiter(rate=0))
    for definition in DEFINITIONS:
        await install(client, definition)
    await until_so(lambda: are_served(client))
    found = await client.create(NAMESPACES, {"metadata": {"generateName": "fleet-member-applier-"}})
    found_name = str(found["metadata"]["name"]).removeprefix("fleet-member-")
    async with agent(config, found_name):
        yield Here(client, found_name)
    await client.close()


async def install(client: Client, definition: Any) -> None:
    """Install a definition, if it is not there."""
    with suppress(AlreadyExists):
        await client.create(CRDS, definition)


async def are_served(client: Client) -> bool:
    try:
        await client.list(Work)
        await client.list(AppliedWork)
    except NotFound:
        return False
    return True


@asynccontextmanager
async def agent(config: Any, name: str) -> AsyncIterator[None]:
    async with Manager(rng=Random(1)) as manager:
        hub = await manager.connect("hub", HttpsTransport(config), limiter=Limiter(rate=0))
        member = await manager.connect(name, HttpsTransport(config), limiter=Limiter(rate=0))
        applier = Applier(hub, member, name, clock=manager.clock)
        manager.add_controller(applier.controller)
        applier.join()
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running


APPLIED, AVAILABLE = "Applied=True/AllManifestsApplied", "Available=True/AllManifestsAvailable"


async def test_what_is_placed_comes_up_is_kept_and_goes(here: Here) -> None:
    await here.ask_for(here.namespace(), here.config(a="1", b="2"), here.deployment())
    await here.says(APPLIED, AVAILABLE)
    live = await here.find(DEPLOYMENTS, "web")
    assert live is not None
    assert {LAST_APPLIED, SPEC_HASH} <= set(live["metadata"]["annotations"])

    change = MergePatch({"data": {"a": "meddled", "theirs": "x"}})
    await here.client.patch(MAPS, "settings", change, here.place, manager="others")
    await here.until(lambda: data_is(here, {"a": "1", "b": "2", "theirs": "x"}))

    await here.client.delete(MAPS, "settings", here.place)
    await here.until(lambda: data_is(here, {"a": "1", "b": "2"}))

    await here.ask_for(here.namespace(), here.config(a="1"), here.deployment("app:2"))
    await here.says(APPLIED, AVAILABLE)
    assert await data_is(here, {"a": "1"})

    await here.ask_for(here.namespace(), here.deployment("app:2"))
    await here.until(lambda: is_gone(here, MAPS, "settings"))

    await here.client.delete(Work, here.work, here.hub_namespace)
    await here.until(lambda: work_is_gone(here))
    assert await here.find(DEPLOYMENTS, "web") is None


async def test_one_can_move_from_client_side_to_server_side_apply(here: Here) -> None:
    await here.ask_for(here.namespace(), here.config(a="1", b="2", c="3"))
    await here.says(APPLIED, AVAILABLE)
    await here.ask_for(here.namespace(), here.config(a="2", b="2"), applyStrategy={"type": "ServerSideApply"})
    await here.says(APPLIED, AVAILABLE)
    live = await here.find(MAPS, "settings")
    assert live is not None
    assert live["data"] == {"a": "2", "b": "2"}
    assert LAST_APPLIED not in live["metadata"]["annotations"]
    managers = {(one["manager"], one["operation"]) for one in live["metadata"]["managedFields"]}
    assert managers == {("work-api-agent", "Apply")}
    await here.ask_for(here.namespace(), here.config(a="2"), applyStrategy={"type": "ServerSideApply"})
    await here.until(lambda: data_is(here, {"a": "2"}))


async def test_a_definition_and_an_object_of_it_come_in_one_work(here: Here) -> None:
    group = f"{here.name}.example.com"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}
    names = {"kind": "Greeting", "plural": "greetings", "singular": "greeting", "listKind": "GreetingList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"greetings.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    greeting = {
        "apiVersion": f"{group}/v1",
        "kind": "Greeting",
        "metadata": {"name": "hello", "namespace": here.place},
        "spec": {"words": ["hello"]},
    }
    await here.ask_for(greeting, definition, here.namespace())
    await here.says(APPLIED, "Available=True/WorkNotTrackable")
    kind = untyped(Resource(group, "v1", "Greeting", "greetings"))
    await here.client.patch(kind, "hello", MergePatch({"spec": {"words": ["bye"], "more": 1}}), here.place)

    async def put_back() -> bool:
        found = await here.find(kind, "hello")
        return found is not None and found["spec"] == {"words": ["hello"], "more": 1}

    await here.until(put_back)
    await here.client.delete(Work, here.work, here.hub_namespace)
    await here.until(lambda: work_is_gone(here))


async def test_what_is_abandoned_stays(here: Here) -> None:
    await here.ask_for(here.namespace(), here.config(a="1"))
    await here.says(APPLIED, AVAILABLE)
    mark = MergePatch({"metadata": {"annotations": {ON_DELETE: "Abandon"}}})
    await here.client.patch(Work, here.work, mark, here.hub_namespace)
    await here.client.delete(Work, here.work, here.hub_namespace)
    await here.until(lambda: work_is_gone(here))
    live = await here.find(MAPS, "settings")
    assert live is not None
    assert "ownerReferences" not in live["metadata"]


async def data_is(here: Here, wanted: dict[str, str]) -> bool:
    found = await here.find(MAPS, "settings")
    return found is not None and found.get("data") == wanted


async def is_gone(here: Here, kind: Any, name: str) -> bool:
    return await here.find(kind, name) is None


async def work_is_gone(here: Here) -> bool:
    try:
        await here.client.get(Work, here.work, here.hub_namespace)
    except NotFound:
        return True
    return False


# Why it does not come up


async def says_of_the_deployment(here: Here, *words: str) -> None:
    """Wait until all of this is said of the last manifest's not being available."""
    last = ""

    async def so() -> bool:
        nonlocal last
        work = await here.client.get(Work, here.work, here.hub_namespace)
        found = [one for each in work.status.manifest_conditions[-1:] for one in each.conditions]
        last = next((one.message for one in found if one.type == "Available" and one.status == "False"), "")
        return all(word in last for word in words)

    try:
        await until_so(so, within=120)
    except TimeoutError:
        raise AssertionError(f"it says {last!r}, not {words}") from None


async def test_a_bad_image_is_named_with_the_pod_and_a_fix_comes_up(here: Here) -> None:
    await here.ask_for(here.namespace(), here.deployment())
    await here.says(APPLIED, AVAILABLE)
    await here.ask_for(here.namespace(), here.deployment("app:bad"))
    await says_of_the_deployment(here, "has 1 of 2 updated replicas: pod web-", ": ImagePullBackOff: ", "app:bad")
    await here.ask_for(here.namespace(), here.deployment("app:2"))
    await here.says(APPLIED, AVAILABLE)


async def test_a_pod_that_crashes_again_and_again_is_named(here: Here) -> None:
    body = here.deployment()
    body["spec"]["template"]["metadata"]["annotations"] = {"kedge.dev/crash-loop": "true"}
    await here.ask_for(here.namespace(), body)
    await says_of_the_deployment(here, "has 0 of 2 available replicas: pod web-", ": CrashLoopBackOff: ")


async def test_a_pod_that_no_node_takes_is_named(here: Here) -> None:
    body = here.deployment()
    body["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": here.name}
    await here.ask_for(here.namespace(), body)
    await says_of_the_deployment(here, "has 0 of 2 available replicas: pod web-", ": Unschedulable: 0/")


async def test_pods_that_a_quota_refuses_are_said_to_be_and_come_when_it_is_raised(here: Here) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": here.place},
        "spec": {"hard": {"pods": "1"}},
    }
    await here.ask_for(here.namespace(), quota)
    await here.says(APPLIED, AVAILABLE)
    await here.until(lambda: quota_is_counted(here))
    await here.ask_for(here.namespace(), quota, here.deployment())
    await says_of_the_deployment(here, "Deployment", "is forbidden: exceeded quota: few")
    await here.ask_for(here.namespace(), {**quota, "spec": {"hard": {"pods": "9"}}}, here.deployment())
    await here.says(APPLIED, AVAILABLE)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Job"])
async def test_pods_that_a_quota_refuses_to_a_workload_without_a_condition_for_it_are_said_to_be(
    here: Here, kind: str
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": here.place},
        "spec": {"hard": {"pods": "0"}},
    }
    await here.ask_for(here.namespace(), quota)
    await here.says(APPLIED, AVAILABLE)
    await here.until(lambda: quota_is_counted(here, "none"))
    await here.ask_for(here.namespace(), quota, here.workload(kind))
    await says_of_the_deployment(here, f"{kind} {here.place}/web ", ": FailedCreate: ", "exceeded quota: none")
    if kind == "StatefulSet":  # the others' pods need more than there is here: nodes, and somebody who ends them
        await here.ask_for(here.namespace(), {**quota, "spec": {"hard": {"pods": "9"}}}, here.workload(kind))
        await here.says(APPLIED, AVAILABLE)


async def quota_is_counted(here: Here, name: str = "few") -> bool:
    found = await here.find(QUOTAS, name)
    return found is not None and "used" in (found.get("status") or {})
