"""`kedge align` as a process beside a modelled Karmada, with exactly the rights that `kedge install align` prints.

The API server of the Karmada is a real one, which asks whether owners may be named; so are the members. A Deployment is
released, its replicas move, and it is left to Karmada again. The audit log is the witness: nothing was refused for want
of a right, nothing else was asked for, and what is granted is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from controllers.align.align_bed import SHOP
from controllers.align.beside_bed import BesideBed, add_karmada, register
from controllers.align.recorder import PodRecorder
from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from kedge import rights
from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.overrides import OverridePolicy
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from real.role_fleet import KEEPS_HOUSE, allowed, as_account, asked_by, did, kedge, refused, running
from support.waiting import until, until_so

pytestmark = pytest.mark.timeout(600)
ACCOUNT = "kedge-align"
TWO = {"cluster-1": 4, "cluster-2": 6}
FOLLOWED = ("resourcebindings", "works", "clusters", "overridepolicies", "propagationpolicies")
SELDOM = {
    *(f"{verb} {kind}" for verb in ("list", "get") for kind in (*FOLLOWED, "clusterpropagationpolicies")),
    *("patch events", "patch clusterpropagationpolicies", "get leases"),
}
"""What this test has no occasion for: a server that cannot stream lists, a watch that lags behind one's own write,
events that repeat, policies of the whole cluster, and a Lease that another process has made."""
NAMESPACE = "create /api/v1/namespaces: "
"""Of the Lease: a process tries to make it, and goes on if it may not. With the rights it is installed as well."""


class RealBed(BesideBed):
    """A Karmada on a real API server, with `kedge align` beside it."""

    karmada: Cluster
    log: Path

    def asks(self) -> list[dict[str, object]]:
        return asked_by(self.karmada, ACCOUNT)


@pytest.fixture
async def bed(own_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[RealBed]:
    strict = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
    server = await own_plane.start("karmada", only=KEEPS_HOUSE, apiserver_flags=strict)
    await server.kubectl("apply", "--server-side", "-f", "-", input=await kedge("crds", "--karmada"))
    await server.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    await server.kubectl("apply", "-f", "-", input=await kedge("install", "align"))
    async with AsyncExitStack() as stack:
        karmada = await stack.enter_async_context(Manager(component="karmada", rng=Random(1)))
        user, members, connected = await _client(stack, server), {}, {}
        await user.create(Namespace, {"metadata": {"name": SHOP}})
        for name in TWO:
            member = await own_plane.start(name, controllers=True, nodes=1)
            members[name] = await _client(stack, member)
            await members[name].create(Namespace, {"metadata": {"name": SHOP}})
            await register(user, name)
            connected[name] = await karmada.connect(name, await _transport(member), limiter=Limiter(rate=0))
        on_hub = await karmada.connect("hub", await _transport(server), limiter=Limiter(rate=0))
        add_karmada(karmada, on_hub, connected)
        task = asyncio.create_task(karmada.run(signals=False))
        made = RealBed(user, members)
        made.karmada, made.log = server, tmp_path / "align.log"
        options = ["--kubeconfig", str(await as_account(server, ACCOUNT, tmp_path))]
        async with running(made.log, "align", *options):
            yield made
        karmada.stop()
        await task


async def _transport(cluster: Cluster) -> HttpsTransport:
    return HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))


async def _client(stack: AsyncExitStack, cluster: Cluster) -> Client:
    client = Client(await _transport(cluster), limiter=Limiter(rate=0))
    stack.push_async_callback(client.close)
    return client


def _image(name: str) -> dict[str, object]:
    return {"template": {"spec": {"containers": [{"name": "app", "image": name}]}}}


async def test_align_needs_exactly_the_rights_that_are_printed(bed: RealBed) -> None:
    recorder = PodRecorder()
    async with recorder.following(bed.members, SHOP):
        await bed.propagate(TWO)
        await until(lambda: recorder.ready_images() == ["app:1"] * 10, 120)
        await bed.taken_over(2)
        recorder.forget()
        await bed.edit(Deployment, _image("app:2"))
        await until(lambda: recorder.ready_images() == ["app:2"] * 10, 240)
        await bed.until_aligned("Aligned")
        clusters = [{"name": "cluster-1", "replicas": 5}, {"name": "cluster-2", "replicas": 5}]
        moved = MergePatch({"spec": {"clusters": clusters}})
        await bed.hub.patch(ResourceBinding, "demo-deployment", moved, SHOP)
        await until_so(lambda: _has_five_each(bed), 240)
        assert recorder.fewest >= 8
        assert recorder.most <= 11
    await bed.opt(None)
    await until_so(lambda: _is_left_alone(bed), 60)
    assert [one for one in refused(bed.asks()) if not one.startswith(NAMESPACE)] == []
    granted, used = allowed((*rights.BESIDE, *rights.LEADING)), did(bed.asks())
    assert used - granted <= {"get "}, "besides discovery, which everybody may read"
    assert granted - used <= SELDOM


async def _has_five_each(bed: RealBed) -> bool:
    found = [(await one.get(Deployment, "demo", SHOP)).status for one in bed.members.values()]
    return all((one.replicas, one.available_replicas) == (5, 5) for one in found)


async def _is_left_alone(bed: RealBed) -> bool:
    overrides = (await bed.hub.list(OverridePolicy)).items
    return not overrides and await bed.suspended() == () and await bed.aligned() is None
