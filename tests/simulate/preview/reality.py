"""Reality: a whole embedded fleet in virtual time, with agents, workloads and pods, on which things are really done.

    told = compared(Scenario(...))      # first previewed from a picture of the fleet, then done

What is seen of it is seen the same way as in a preview: by what bindings show.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from msgspec import Struct

from kedge.api.apps import Deployment
from kedge.api.core import ConfigMap, Namespace
from kedge.api.dialect import Dialect
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.staged import ClusterApprovalRequest, ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.fleet import HEARTBEAT, Fleet
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Codec, Untyped, untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.placement_preview import Move, PlacementPreview, Wave, waves_of
from kedge.roles import HubOptions
from kedge.simulate.loop import run
from kedge.simulate.preview.approver import Approver
from kedge.simulate.preview.fleet_reader import read_fleet
from kedge.simulate.preview.fleet_state import FleetState, Target
from kedge.simulate.preview.rollout_observer import RolloutObserver
from kedge.simulate.preview.runner import Assumptions, PreviewChange, measured_times, run_preview
from support.stage import LoopClock

NAME, SPACE, APP = "crp", "shop", "web"
TARGET = Target(NAME)
QUIET = 60.0
RARE_HEARTBEAT = 600  # seconds: where every cluster is heard, how often says nothing about a rollout
_KINDS: Mapping[str, Codec[Untyped]] = {
    one.kind: untyped(one)
    for one in (
        Deployment.resource,
        Namespace.resource,
        ConfigMap.resource,
        ClusterResourcePlacement.resource,
        ClusterStagedUpdateStrategy.resource,
        ClusterStagedUpdateRun.resource,
        Resource("", "v1", "PodTemplate", "podtemplates"),
    )
}


class Scenario(Struct, frozen=True):
    """A fleet, what its clusters take, and what a user changes."""

    members: int
    strategy: Mapping[str, Any]
    change: tuple[Untyped, ...]
    ready: Mapping[str, float] = {}
    """Seconds from a pod's start until it is ready, by cluster."""
    otherwise: float = 20.0
    """On the other clusters."""
    failing: frozenset[str] = frozenset()
    """Clusters on which pods of `app:2` are never ready."""
    policy: Mapping[str, Any] = {}
    labels: Mapping[str, Mapping[str, str]] = {}
    more: tuple[Untyped, ...] = ()
    """Beside a Deployment, what is placed."""
    before: tuple[Untyped, ...] = ()
    """What the user did before: a run, say, that has brought the clusters the first release."""
    replicas: int = 1
    told: bool = True
    """Whether the preview is told what clusters take; else it measures it."""
    released_before: bool = True
    """Whether, to be measured, there was a release before; else only a first placement."""
    silent: frozenset[str] = frozenset()
    """Clusters that cannot be reached from then on."""
    annotations: Mapping[str, str | None] = {}
    """Of the placement, from then on."""
    within: float = 900.0
    approved_after: float = 0.0
    """Seconds until somebody approves what a staged run asks for."""
    began: float = 0.0
    """How many seconds after the change the picture is taken: midway, if that is more than 0."""


class Told(Struct, frozen=True):
    """What was previewed, and what came true."""

    preview: PlacementPreview
    real: tuple[Move, ...]

    @property
    def real_waves(self) -> tuple[Wave, ...]:
        return waves_of(self.real)


def compared(scenario: Scenario) -> Told:
    """Preview it, and do it."""
    picture, real = run(_really(scenario))
    times = _told(scenario) if scenario.told else measured_times(picture)
    assumed = Assumptions(
        times=Durations(given=times.given, for_all=times.for_all, measured=times.measured, failing=scenario.failing),
        within=scenario.within,
        approved_after=scenario.approved_after,
    )
    change = () if scenario.began else scenario.change
    (course,) = run_preview(picture, PreviewChange((TARGET,), change), assumed)
    return Told(course, real)


def _told(scenario: Scenario) -> Durations:
    return Durations(given=scenario.ready, for_all=scenario.otherwise)


async def fleet_picture(scenario: Scenario) -> FleetState:
    """Of the fleet at rest, before anything is changed."""
    picture, _ = await _really(scenario, act=False)
    return picture


async def _really(scenario: Scenario, *, act: bool = True) -> tuple[FleetState, tuple[Move, ...]]:
    clock = LoopClock()
    async with Fleet(members=scenario.members, clock=clock, rng=Random(1), nodes=1) as fleet:
        await fleet.run_workloads()
        heartbeat = HEARTBEAT if scenario.silent else RARE_HEARTBEAT
        await fleet.run_roles(HubOptions(), labels=scenario.labels, heartbeat=heartbeat)
        client = Client(fleet.hub.transport(), limiter=Limiter(rate=0))
        async with _closing(client), _steered(fleet, clock, scenario) as hub:
            await _place(client, scenario)
            await _at_rest(hub, clock)
            if not scenario.told and scenario.released_before:
                await put(client, deployment("app:1b", scenario.replicas))
                await _at_rest(hub, clock)
            await _prepare(fleet, client, scenario)
            if not act:
                return await read_fleet(client, [TARGET], (), clock.now()), ()
            return await _change(hub, client, clock, scenario)


@asynccontextmanager
async def _closing(client: Client) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await client.close()


async def _change(
    hub: Cluster, client: Client, clock: LoopClock, scenario: Scenario
) -> tuple[FleetState, tuple[Move, ...]]:
    if scenario.began:
        await _apply(client, scenario)
        await asyncio.sleep(scenario.began)
    picture = await read_fleet(client, [TARGET], scenario.change, clock.now())
    seeing = RolloutObserver(hub, [TARGET], clock=clock, dialect=Dialect.seed)
    await asyncio.sleep(0.5)  # that it has seen what there is, before anything happens
    began = seeing.elapsed
    if not scenario.began:
        await _apply(client, scenario)
    await seeing.wait_until_settled(scenario.within)
    return picture, tuple(_since(move, began) for move in seeing.moves(TARGET))


def _since(move: Move, began: float) -> Move:
    done = None if move.done is None else max(0.0, move.done - began)
    return Move(move.cluster, move.what, max(0.0, move.at - began), move.revision, done)


async def _apply(client: Client, scenario: Scenario) -> None:
    for obj in scenario.change:
        await put(client, obj)


async def _place(client: Client, scenario: Scenario) -> None:
    await put(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    for obj in (deployment("app:1", scenario.replicas), *scenario.more, placement(scenario), *scenario.before):
        await put(client, obj)


async def _prepare(fleet: Fleet, client: Client, scenario: Scenario) -> None:
    """What has happened to the fleet when the user begins."""
    if scenario.annotations:
        patch = MergePatch({"metadata": {"annotations": dict(scenario.annotations)}})
        await client.patch(ClusterResourcePlacement, NAME, patch)
    for member in fleet.members:
        if member.name in scenario.silent:
            member.server.stop()
            hub_of_it = fleet._agents.clusters[f"hub for {member.name}"]
            hub_of_it.client.transport.disconnect()  # type: ignore[attr-defined]  # it is an in-process one
    if scenario.silent:
        await asyncio.sleep(400.0)


async def put(client: Client, obj: Untyped) -> None:
    """Make it, or replace the one there is."""
    kind, meta = _KINDS[obj["kind"]], obj["metadata"]
    try:
        there = await client.get(kind, meta["name"], meta.get("namespace"))
    except NotFound:
        await client.create(kind, obj, meta.get("namespace"))
        return
    await client.replace(kind, {**obj, "metadata": {**there["metadata"], **meta}, "status": there.get("status", {})})


# What is placed


def deployment(image: str, replicas: int = 1) -> Untyped:
    labels = {"app": APP}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": APP, "namespace": SPACE},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def placement(scenario: Scenario) -> Untyped:
    selector = {"group": "", "version": "v1", "kind": "Namespace", "name": SPACE}
    spec: Untyped = {"resourceSelectors": [selector], "strategy": dict(scenario.strategy)}
    if scenario.policy:
        spec["policy"] = dict(scenario.policy)
    return {
        "apiVersion": ClusterResourcePlacement.resource.api_version,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": NAME},
        "spec": spec,
    }


# Around it


@asynccontextmanager
async def _steered(fleet: Fleet, clock: LoopClock, scenario: Scenario) -> AsyncIterator[Cluster]:
    """Pods take as long as the scenario says; gives a connection to the hub to look through."""
    async with Manager(component="steering", clock=clock, rng=Random(2), grace=1.0) as manager:
        for member in fleet.members:
            cluster = await manager.connect(member.name, member.transport(), essential=False, limiter=Limiter(rate=0))
            takes = scenario.ready.get(member.name, scenario.otherwise)
            manager.add_controller(_Steering(cluster, takes, fails=member.name in scenario.failing).controller)
        hub = await manager.connect("hub", fleet.hub.transport(), limiter=Limiter(rate=0))
        approver = Approver(hub, ClusterApprovalRequest, clock=clock, after=scenario.approved_after)
        manager.add_controller(approver.controller)
        running = asyncio.create_task(manager.run(signals=False), name="steering")
        yield hub
        manager.stop()
        await running


class _Steering:
    """Tells the pods of one cluster how long to take."""

    def __init__(self, cluster: Cluster, takes: float, *, fails: bool) -> None:
        self._client = cluster.client
        self._pods = cluster.cache(Pod)
        self._takes = takes
        self._fails = fails
        self.controller = Controller(f"steering of {cluster.name}", self.reconcile, [cluster.watch(self._pods)])

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._pods.get(key.name, key.namespace)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return Outcome.done
        word = {"kedge.dev/ready-after": f"{self._takes}s"}
        if self._fails and any(one.image == "app:2" for one in pod.spec.containers or ()):
            word = {"kedge.dev/never-ready": "true"}
        if not word.items() <= pod.metadata.annotations.items():
            patch = MergePatch({"metadata": {"annotations": word}})
            await self._client.patch(Pod, key.name, patch, key.namespace, uid=pod.metadata.uid)
        return Outcome.done


async def _at_rest(hub: Cluster, clock: LoopClock) -> None:
    seeing = RolloutObserver(hub, [TARGET], clock=clock, dialect=Dialect.seed)
    await asyncio.sleep(1.0)
    await seeing.wait_until_settled(math.inf)
