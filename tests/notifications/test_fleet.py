"""A bad release on a fleet: whoever is to be notified is, once, with the cluster and the reason."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.staged import ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Answer, Call
from kedge.kube.patches import MergePatch
from kedge.notifications.config import parse
from kedge.notifications.dispatcher import Dispatcher
from kedge.notifications.receivers import prepare
from support.fleets import client_of
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

DEPLOYMENTS = untyped(Deployment.resource)
SELECTOR = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}
STAGES = [{"name": "all", "labelSelector": {}, "maxConcurrency": 1, "sortingLabelKey": "order", "maxFailures": 0}]
LABELS = {f"cluster-{number}": {"order": str(number)} for number in (1, 2, 3)}
CONFIG = """
source: https://hub.example.com
receivers:
- name: on-call
  webhook: {url: "https://on-call.example.com/", secret: 0123456789abcdef}
  events: {types: [Warning], kinds: [ClusterStagedUpdateRun]}
- name: audit
  webhook: {url: "https://audit.example.com/"}
"""


class Hooks:
    """Webhooks that accept everything."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        self.calls.append(call)
        return Answer(202)

    async def close(self) -> None: ...

    def events(self, host: str) -> list[dict[str, Any]]:
        return [json.loads(call.body) for call in self.calls if call.url == f"https://{host}.example.com/"]

    def reasons(self, host: str) -> list[str]:
        return [event["data"]["reason"] for event in self.events(host)]


async def place(hub: Client) -> None:
    await hub.create(Namespace, {"metadata": {"name": "shop"}})
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    spec: dict[str, Any] = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await hub.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "shop")
    placing = {"resourceSelectors": [SELECTOR], "strategy": {"type": "External"}}
    await hub.create(ClusterResourcePlacement, {"metadata": {"name": "web"}, "spec": placing})
    await hub.create(ClusterStagedUpdateStrategy, {"metadata": {"name": "careful"}, "spec": {"stages": STAGES}})


async def release(hub: Client, name: str) -> None:
    spec = {"placementName": "web", "stagedRolloutStrategyName": "careful"}
    await asyncio.sleep(5.0)
    await hub.create(ClusterStagedUpdateRun, {"metadata": {"name": name}, "spec": spec})


async def was_told(hooks: Hooks, host: str, reason: str) -> bool:
    return reason in hooks.reasons(host)


def test_a_bad_release_stops_and_one_notification_names_the_cluster() -> None:
    async def main() -> None:
        hooks = Hooks()
        receivers = prepare(parse(CONFIG))(hooks, LoopClock())
        async with (
            Dispatcher(receivers, rng=Random(2), registry=CollectorRegistry()) as dispatcher,
            Fleet(members=3, clock=LoopClock(), rng=Random(1), nodes=1, event_observer=dispatcher) as fleet,
            client_of(fleet.hub) as hub,
        ):
            await fleet.run_workloads()
            await fleet.run_roles(labels=LABELS)
            await place(hub)
            await release(hub, "good")
            await until_so(lambda: was_told(hooks, "audit", "UpdateRunSucceeded"), 600)
            assert not hooks.events("on-call")
            change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:bad"}]}}}}
            await hub.patch(DEPLOYMENTS, "web", MergePatch(change), "shop")
            await release(hub, "bad")
            await until_so(lambda: was_told(hooks, "on-call", "UpdateRunFailed"), 600)
            await asyncio.sleep(120)
        told = hooks.events("on-call")
        (event,) = told
        assert event["subject"] == "ClusterStagedUpdateRun/bad"
        assert event["source"] == "https://hub.example.com/hub/staged-update-run-controller"
        assert "cluster-1" in event["data"]["message"]
        assert "Joined" in " ".join(hooks.reasons("audit"))
        ids = [one["id"] for one in hooks.events("audit")]
        assert len(set(ids)) == len(ids)

    run(main())
