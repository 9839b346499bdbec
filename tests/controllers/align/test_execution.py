"""The agent of a member: it writes what is new or was changed there, and nothing when only a status has changed."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from controllers.align.recorder import PodRecorder
from kedge.api.apps import Deployment
from kedge.api.condition import find_condition, is_true
from kedge.api.core import ConfigMap, Namespace
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import RETAIN_REPLICAS
from kedge.api.karmada.works import Work
from kedge.api.resource import Resource
from kedge.controllers.align.member_objects import MANAGER
from kedge.embedded import cluster
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.request_info import Caller
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import Forbidden, Status
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request
from kedge.roles import add_karmada_member
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until, until_so

SIZES = {"cluster-1": 2, "cluster-2": 3}
RETAINS = {RETAIN_REPLICAS: "true"}
TWO_AT_A_TIME = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 0}}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What agents create and apply from now on."""
    found: list[str] = []

    def count(name: str) -> None:
        write = getattr(Client, name)

        async def counting(self: Client, kind: Any, body: Any, *where: Any, **given: Any) -> Any:
            if given.get("manager") == MANAGER and kind.resource == Deployment.resource:
                found.append(name)
            return await write(self, kind, body, *where, **given)

        monkeypatch.setattr(Client, name, counting)

    count("create")
    count("apply")
    return found


async def deployed(here: AlignBed, image: str) -> None:
    await here.until_images(*[image] * sum(SIZES.values()))
    await asyncio.sleep(30)


def test_a_cluster_is_written_to_as_often_as_its_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = counted(monkeypatch)

    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES)
            await deployed(here, "app:1")
            template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
            await here.edit(Deployment, {"template": template})
            await deployed(here, "app:2")
            works = (await here.hub.list(Work)).items
            assert applied.count("create") == len(SIZES)  # without pods, which then come
            let_through = 1  # what a Work is created with is held back: nothing is written for that
            assert applied.count("apply") == sum(work.metadata.generation - let_through for work in works)

    run(body())


def test_what_came_with_the_creation_goes_when_it_is_no_longer_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over_the_network = partial(InProcessTransport, caller=Caller())  # who shares a process is not told who owns what
    monkeypatch.setattr(cluster, "InProcessTransport", over_the_network)

    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES, minReadySeconds=3)
            await deployed(here, "app:1")
            await here.edit(Deployment, {"minReadySeconds": None})
            await asyncio.sleep(30)
            members = here.members.values()
            found = [(await member.get(Deployment, "demo", SHOP)).spec.min_ready_seconds for member in members]
            assert found == [0, 0]

    run(body())


def test_what_somebody_changes_in_a_member_is_written_again() -> None:
    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES)
            await deployed(here, "app:1")
            member = here.members["cluster-1"]
            await member.patch(Deployment, "demo", MergePatch({"spec": {"replicas": 1}}), SHOP)
            await deployed(here, "app:1")
            assert (await member.get(Deployment, "demo", SHOP)).spec.replicas == SIZES["cluster-1"]

    run(body())


def test_an_autoscaler_in_a_member_has_the_last_word_where_the_template_says_so() -> None:
    """It scales both clusters; the next release keeps their sizes, and the budget is that of all pods there are."""

    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES, strategy=TWO_AT_A_TIME)
            await here.hub.patch(Deployment, "demo", MergePatch({"metadata": {"labels": RETAINS}}), SHOP)
            await deployed(here, "app:1")
            for name, replicas in (("cluster-1", 6), ("cluster-2", 4)):
                await here.members[name].patch(Deployment, "demo", MergePatch({"spec": {"replicas": replicas}}), SHOP)
            await here.until_images(*["app:1"] * 10)
            await asyncio.sleep(30)
            recorder = PodRecorder()
            async with recorder.following(here.members, SHOP):
                await until(lambda: len(recorder.ready_images()) == 10)
                recorder.forget()
                template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
                await here.edit(Deployment, {"template": template})
                await here.until_images(*["app:2"] * 10)
            assert (recorder.fewest, recorder.most) == (8, 10)
            found = [(await one.get(Deployment, "demo", SHOP)).spec.replicas for one in here.members.values()]
            assert found == [6, 4]

    run(body())


def test_a_workload_that_rolls_is_looked_at_now_and_then_and_not_after_ones_own_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each pod changes the status several times, and each report of it changes the Work."""
    seen: list[str] = []
    get = Client.get

    async def counting(self: Client, kind: Any, name: str, *where: Any, **given: Any) -> Any:
        if kind.resource == Deployment.resource:
            seen.append(name)
        return await get(self, kind, name, *where, **given)

    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES)
            await deployed(here, "app:1")
            monkeypatch.setattr(Client, "get", counting)
            started = asyncio.get_running_loop().time()
            await here.edit(Deployment, {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}})
            await here.until_images(*["app:2"] * 5)
            rolled = asyncio.get_running_loop().time() - started
            await asyncio.sleep(30)
            # For each cluster: some until what was asked for is acknowledged, and then two a second; and the hub's own.
            assert len(SIZES) <= len(seen) <= len(SIZES) * (6 + 2 * rolled)

    run(body())


def test_one_process_may_be_the_agent_of_several_members() -> None:
    async def body() -> None:
        clock = LoopClock()
        async with Manager(component="agents", clock=clock, rng=Random(1)) as manager:
            for name in SIZES:
                server = EmbeddedCluster(name, clock=clock, rng=Random(name))
                hub = await manager.connect(f"hub for {name}", server.transport())
                add_karmada_member(manager, name, hub, await manager.connect(name, server.transport()))

    run(body())


TEAM = "team"


async def in_team(here: AlignBed) -> None:
    """A ConfigMap in a namespace that the member has not."""
    await here.hub.create(Namespace, {"metadata": {"name": TEAM}})
    await here.hub.create(ConfigMap, {"metadata": {"name": "prices", "namespace": TEAM}, "data": {"tea": "2"}})
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "name": "prices"}
    spec = {"resource": resource, "clusters": [{"name": "cluster-1"}]}
    await here.hub.create(ResourceBinding, {"metadata": {"name": "prices", "namespace": TEAM}, "spec": spec})


def test_a_namespace_that_is_missing_is_created_and_stays() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            member = here.members["cluster-1"]

            async def is_there() -> bool:
                return "prices" in {one.metadata.name for one in (await member.list(ConfigMap, TEAM)).items}

            await in_team(here)
            await until_so(is_there)
            await here.hub.delete(ResourceBinding, "prices", TEAM)
            await asyncio.sleep(30)
            assert not await is_there()
            assert TEAM in {one.metadata.name for one in (await member.list(Namespace)).items}

    run(body())


def test_an_agent_that_may_not_create_a_namespace_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    create = Client.create

    async def refusing(self: Client, kind: Any, body: Any, *where: Any, **given: Any) -> Any:
        if given.get("manager") == MANAGER and kind is Namespace:
            asked = Request("POST", "/api/v1/namespaces")
            raise Forbidden(asked, Status(code=403, reason="Forbidden", message="no rights"))
        return await create(self, kind, body, *where, **given)

    monkeypatch.setattr(Client, "create", refusing)

    async def body() -> None:
        async with align_bed("cluster-1") as here:

            async def is_said() -> bool:
                works = (await here.hub.list(Work)).items
                said = [condition.message for work in works for condition in work.status.conditions]
                return any("no namespace team, and the agent may not create it: create it there" in one for one in said)

            await in_team(here)
            await until_so(is_said)

    run(body())


def test_a_work_says_whether_it_is_dispatched_also_if_it_never_was_suspended() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tea", "namespace": SHOP}}
            meta = {"name": "tea", "namespace": "karmada-es-cluster-1"}
            await here.hub.create(Work, {"metadata": meta, "spec": {"workload": {"manifests": [manifest]}}})
            await asyncio.sleep(30)
            found = find_condition(
                (await here.hub.get(Work, "tea", meta["namespace"])).status.conditions, "Dispatching"
            )
            assert found is not None
            assert (found.status, found.reason) == ("True", "Dispatching")

    run(body())


def test_a_work_with_several_manifests_is_refused_in_words() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            maps = [{"metadata": {"name": name, "namespace": SHOP}} for name in ("tea", "cake")]
            manifests = [{"apiVersion": "v1", "kind": "ConfigMap", **one} for one in maps]
            meta = {"name": "both", "namespace": "karmada-es-cluster-1"}
            await here.hub.create(Work, {"metadata": meta, "spec": {"workload": {"manifests": manifests}}})
            await asyncio.sleep(30)
            applied = find_condition((await here.hub.get(Work, "both", meta["namespace"])).status.conditions, "Applied")
            assert applied is not None
            assert (applied.status, applied.reason) == ("False", "AppliedFailed")
            assert applied.message.startswith("the Work has 2 manifests")
            member = here.members["cluster-1"]
            assert not {one.metadata.name for one in (await member.list(ConfigMap, SHOP)).items} & {"tea", "cake"}

            first = {"spec": {"workload": {"manifests": manifests[:1]}}}
            await here.hub.patch(Work, "both", MergePatch(first), meta["namespace"])
            await asyncio.sleep(30)
            assert is_true((await here.hub.get(Work, "both", meta["namespace"])).status.conditions, "Applied")
            assert (await member.get(ConfigMap, "tea", SHOP)).metadata.name == "tea"

    run(body())


def test_of_a_kind_of_ones_own_all_of_the_status_is_reported() -> None:
    jobs = untyped(Resource("batch", "v1", "Job", "jobs"))

    async def body() -> None:
        async with align_bed("cluster-1") as here:
            pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
            await here.hub.create(
                jobs, {"metadata": {"name": "once", "namespace": SHOP}, "spec": {"template": {"spec": pod}}}
            )
            resource = {"apiVersion": "batch/v1", "kind": "Job", "name": "once"}
            spec = {"resource": resource, "clusters": [{"name": "cluster-1"}]}
            await here.hub.create(ResourceBinding, {"metadata": {"name": "once-job", "namespace": SHOP}, "spec": spec})

            async def is_reported() -> bool:
                found = (await here.hub.get(ResourceBinding, "once-job", SHOP)).status.aggregated_status
                said = [condition for one in found for condition in (one.status or {}).get("conditions", ())]
                return "Complete" in [condition["type"] for condition in said]

            await until_so(is_reported)

    run(body())


def test_a_job_that_its_member_would_remove_when_it_has_ended_runs_once() -> None:
    jobs = untyped(Resource("batch", "v1", "Job", "jobs"))

    async def body() -> None:
        async with align_bed("cluster-1") as here:
            member, seen = here.members["cluster-1"], set()
            pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
            spec: dict[str, Any] = {"ttlSecondsAfterFinished": 5, "template": {"spec": pod}}
            await here.hub.create(jobs, {"metadata": {"name": "once", "namespace": SHOP}, "spec": spec})
            resource = {"apiVersion": "batch/v1", "kind": "Job", "name": "once"}
            bound = {"resource": resource, "clusters": [{"name": "cluster-1"}]}
            await here.hub.create(ResourceBinding, {"metadata": {"name": "once-job", "namespace": SHOP}, "spec": bound})
            for _ in range(60):
                await asyncio.sleep(2)
                seen |= {one["metadata"]["uid"] for one in (await member.list(jobs, SHOP)).items}
            assert len(seen) == 1

    run(body())
