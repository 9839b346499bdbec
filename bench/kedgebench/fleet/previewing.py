"""Previewing: how long a preview of a large fleet takes that has reached every cluster before.

The picture it starts from is made by a preview itself, which is quicker than a fleet.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.kube.codec import Untyped
from kedge.plan.previewing.durations import Durations
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import run
from kedge.simulate.preview.fleet_reader import read_fleet
from kedge.simulate.preview.fleet_state import FleetState, Target
from kedge.simulate.preview.runner import Assumptions, PreviewChange, run_preview, running_hub
from kedge.simulate.preview.virtual_hub import VirtualHub
from kedgebench.fleet import release, stages
from kedgebench.fleet.release import WEB, Body

BEGAN = "2030-01-01T00:00:00Z"
DEFINITIONS = crds(Dialect.seed)
TARGET = Target(WEB)
READY_AFTER = 60.0
WAITS = ("8h", "15h30m")  # so that the whole takes a day


def measure(members: int) -> dict[str, Any]:
    """Task: a staged run that takes a day, and a rolling update one cluster at a time and a tenth of them at a time."""
    staged = [release.external(WEB), stages.strategy(WAITS), stages.run("release-1")]
    cases: dict[str, tuple[list[Body], list[Body]]] = {
        "staged": (staged, [stages.run("release-2")]),
        "tenths": ([release.placement(WEB, max_unavailable="10%")], []),
        "singly": ([release.placement(WEB, max_unavailable="1")], []),
    }
    return {"members": members, **{name: _timed(members, *case) for name, case in cases.items()}}


def _timed(members: int, placed: list[Body], change: list[Body]) -> dict[str, Any]:
    picture = run(_placed(members, placed))
    objects = (release.deployment(2), *change)
    begun, cpu = time.perf_counter(), time.process_time()
    (course,) = run_preview(
        picture, PreviewChange((TARGET,), objects), Assumptions(times=Durations(for_all=READY_AFTER))
    )
    if not course.is_done:
        raise RuntimeError(f"the preview of {members} clusters does not end well")
    return {
        "took": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "hours": max(move.done or 0.0 for move in course.moves) / 3600,
        "waves": len(course.waves),
    }


async def _placed(members: int, objects: list[Body]) -> FleetState:
    """A fleet with so many members, all of which have what these objects place."""
    begun = datetime.fromisoformat(BEGAN).astimezone(UTC)
    clock, rng = LoopClock(asyncio.get_running_loop(), begun), Random("large")
    cluster = EmbeddedCluster("hub", clock=clock, rng=child(rng))
    hub = VirtualHub(cluster, child(rng))
    cluster.start()
    names = [f"cluster-{number}" for number in range(1, members + 1)]
    there = [_joined(number, name, labels) for number, (name, labels) in enumerate(stages.labelled(names).items(), 1)]
    await hub.load(FleetState(begun, tuple(there)), DEFINITIONS, begun + timedelta(days=2))
    await hub.change([release.namespace(), release.deployment(1), *objects])
    async with running_hub(cluster, clock, rng, [TARGET], Assumptions(times=Durations(for_all=READY_AFTER))) as seeing:
        await seeing.wait_until_settled(2 * 86400.0)
        taken = await read_fleet(hub.client, [TARGET], [], clock.now())
    await hub.client.close()
    cluster.stop()
    return taken


def _joined(number: int, name: str, labels: dict[str, str]) -> Untyped:
    said = {"status": "True", "reason": "Said", "message": "", "lastTransitionTime": BEGAN, "observedGeneration": 1}
    joined, healthy = ({**said, "type": kind} for kind in ("Joined", "Healthy"))
    agent = {"type": "MemberAgent", "conditions": [joined, healthy], "lastReceivedHeartbeat": BEGAN}
    body = release.member(name, 60, {**labels, "kubernetes-fleet.io/member-name": name})
    body["metadata"] |= {
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "generation": 1,
        "creationTimestamp": BEGAN,
        "finalizers": ["kubernetes-fleet.io/membercluster-finalizer"],
    }
    return {**body, "status": {"conditions": [joined], "agentStatus": [agent]}}
