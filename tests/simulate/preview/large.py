"""Large fleets, made by a preview itself: members, and a placement that has reached all of them.

PYTHONPATH=tests:src python -m simulate.preview.large 1000 10%
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta
from random import Random

from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.kube.codec import Untyped
from kedge.plan.previewing.course import Course
from kedge.plan.previewing.times import Times
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import run
from kedge.simulate.preview.hub import VirtualHub
from kedge.simulate.preview.picture import Picture
from kedge.simulate.preview.previewing import Assumed, Change, _running, previewed
from kedge.simulate.preview.taking import take
from simulate.preview.reality import SPACE, TARGET, Scenario, deployment, placement

BEGAN = "2030-01-01T00:00:00Z"
DEFINITIONS = crds(Dialect.seed)


def picture(members: int, unavailable: int | str) -> Picture:
    """A fleet with so many members, all of which have the placement."""
    start = Picture(datetime(2030, 1, 1, tzinfo=UTC), tuple(member(number) for number in range(1, members + 1)))
    return run(_placed(start, Scenario(members, {"rollingUpdate": {"maxUnavailable": unavailable}}, ())))


def released(fleet: Picture, assumed: Assumed) -> Course:
    (course,) = previewed(fleet, Change((TARGET,), (deployment("app:2"),)), assumed)
    return course


async def _placed(start: Picture, scenario: Scenario) -> Picture:
    clock, rng = LoopClock(asyncio.get_running_loop(), start.taken), Random("large")
    cluster = EmbeddedCluster("hub", clock=clock, rng=child(rng))
    hub = VirtualHub(cluster, child(rng))
    cluster.start()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await hub.furnish(start, DEFINITIONS, start.taken + timedelta(days=2))
    await hub.change([space, deployment("app:1"), placement(scenario)])
    async with _running(cluster, clock, rng, [TARGET], Assumed(times=Times(for_all=20.0))) as seeing:
        await seeing.over(3600.0)
        taken = await take(hub.client, [TARGET], [], clock.now())
    await hub.client.close()
    cluster.stop()
    return taken


def member(number: int) -> Untyped:
    name = f"cluster-{number}"
    said = {"status": "True", "reason": "Said", "message": "", "lastTransitionTime": BEGAN, "observedGeneration": 1}
    joined, healthy = ({**said, "type": kind} for kind in ("Joined", "Healthy"))
    agent = {"type": "MemberAgent", "conditions": [joined, healthy], "lastReceivedHeartbeat": BEGAN}
    return {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "generation": 1,
            "creationTimestamp": BEGAN,
            "labels": {"kubernetes-fleet.io/member-name": name},
            "finalizers": ["kubernetes-fleet.io/membercluster-finalizer"],
        },
        "spec": {"identity": {"kind": "ServiceAccount", "name": "agent", "namespace": "fleet-system"}},
        "status": {"conditions": [joined], "agentStatus": [agent]},
    }


def main(members: int, unavailable: str) -> None:
    """Say how long a preview takes."""
    fleet = picture(members, unavailable)
    began = time.process_time()
    course = released(fleet, Assumed(times=Times(for_all=20.0)))
    took = time.process_time() - began
    sys.stdout.write(f"{members} clusters in {len(course.waves)} waves: {took:.1f} s of CPU, done {course.is_done}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
