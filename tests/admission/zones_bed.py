"""Three zones of one group on an embedded server, pods that answer as told, and writes that a rule is asked about.

Nothing scales the zones here: what a test writes stays.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

from kedge.admission.downscale_rules import downscale_rules
from kedge.admission.no_downscale import PATH as NO_DOWNSCALE
from kedge.admission.prepare_downscale import PATH as PREPARE_DOWNSCALE
from kedge.admission.prepare_downscale import PrepareDownscale
from kedge.admission.server import Rule
from kedge.api.admission import AdmissionRequest, AdmissionResponse, KindName, ResourceName
from kedge.api.apps import StatefulSet
from kedge.api.core import ConfigMap, ServiceAccount
from kedge.api.pods import Pod
from kedge.api.zones import LAST_DOWNSCALE
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.limits import Limiter, Retry
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response, Transport
from kedge.plan.text import moment
from support.stage import LoopClock
from support.virtual import run

NS = "default"
GROUP = "ingester"
ZONES = ("ingester-zone-a", "ingester-zone-b", "ingester-zone-c")
A, B, C = ZONES
SETS = untyped(StatefulSet.resource)
PODS = untyped(Pod.resource)
MAPS = untyped(ConfigMap.resource)
TRACKER = "rollout-operator-zone-tracker"
LABELS = {
    "rollout-group": GROUP,
    "grafana.com/prepare-downscale": "true",
    "grafana.com/min-time-between-zones-downscale": "12h",
}
ANNOTATIONS = {
    "grafana.com/prepare-downscale-http-path": "ingester/prepare-shutdown",
    "grafana.com/prepare-downscale-http-port": "80",
}


class PodEndpoints:
    """Answers in the place of pods: 200, unless told otherwise for a pod and method. A number is a status."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.at_once = self.most_at_once = 0
        self.seconds = 0.01
        self.answers: dict[tuple[str, str], int | Exception | float] = {}
        """By method and pod; a float is so many seconds, after which the answer is 200."""

    def asked(self, method: str) -> list[str]:
        """The pods that were called so, in order."""
        return [pod_of(call) for call in self.calls if call.method == method]

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        self.calls.append(call)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            async with asyncio.timeout(timeout):
                return await self._answer(call)
        except TimeoutError as error:
            raise OutboundFailed(f"{call}: no answer within {timeout:g} s") from error
        finally:
            self.at_once -= 1

    async def _answer(self, call: Call) -> Answer:
        wanted = self.answers.get((call.method, pod_of(call)), 200)
        await asyncio.sleep(wanted if isinstance(wanted, float) else self.seconds)
        if isinstance(wanted, Exception):
            raise wanted
        return Answer(200 if isinstance(wanted, float) else wanted)

    async def close(self) -> None:
        pass


def pod_of(call: Call) -> str:
    return call.url.removeprefix("http://").partition(".")[0]


class Faulty:
    """A transport that answers some requests otherwise: `fault` gives the answer, raises, or gives None to pass on."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.asked: list[Request] = []
        self.fault: Callable[[Request], Awaitable[Response | None]] | None = None

    async def send(self, request: Request, *, timeout: float) -> Response:
        self.asked.append(request)
        found = await self.fault(request) if self.fault is not None else None
        return found if found is not None else await self._transport.send(request, timeout=timeout)

    def stream(self, request: Request, *, timeout: float, silence: float) -> Any:
        return self._transport.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._transport.close()

    def writes(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.asked if one.method != "GET"]


class Bed:
    """A namespace with zones, and the rules that guard them. `client` is the users', `transport` is what rules use."""

    def __init__(self, client: Client, transport: Faulty, endpoints: PodEndpoints, rules: Mapping[str, Rule]) -> None:
        self.client = client
        self.transport = transport
        self.pods = endpoints
        self.rules = rules

    async def zone(
        self,
        name: str,
        replicas: int = 3,
        *,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
        ready: int | None = None,
        status: Mapping[str, int] | None = None,
        owned: bool = True,
        service: str = "ingester",
    ) -> None:
        """A StatefulSet with its pods, `ready` of which are ready. A label or annotation that is None is left out."""
        template = {"metadata": {"labels": {"name": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {
            "metadata": {
                "name": name,
                "labels": _without_none({**LABELS, **(labels or {})}),
                "annotations": _without_none({**ANNOTATIONS, **(annotations or {})}),
            },
            "spec": {
                "replicas": replicas,
                "serviceName": service,
                "selector": {"matchLabels": {"name": name}},
                "template": template,
                "updateStrategy": {"type": "OnDelete"},
            },
        }
        made = await self.client.create(SETS, body, NS)
        counts = {"replicas": replicas, "updatedReplicas": replicas, **(status or {})}
        await self.client.patch(SETS, name, MergePatch({"status": counts}), NS, subresource="status")
        for number in range(replicas):
            is_ready = ready is None or number < ready
            await self._pod(made, f"{name}-{number}", ready=is_ready, owned=owned)

    async def _pod(self, owner: Untyped, name: str, *, ready: bool, owned: bool) -> None:
        meta: dict[str, Any] = {"name": name, "labels": {"name": owner["metadata"]["name"]}}
        if owned:
            reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True}
            reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
            meta["ownerReferences"] = [reference]
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await self.client.create(PODS, {"metadata": meta, "spec": spec}, NS)
        state: dict[str, Any] = {"running": {}} if ready else {"waiting": {}}
        containers = [{"name": "c", "ready": ready, "image": "i", "imageID": "i", "restartCount": 0, "state": state}]
        status = {"phase": "Running", "containerStatuses": containers}
        await self.client.patch(PODS, name, MergePatch({"status": status}), NS, subresource="status")

    async def three_zones(self, **options: Any) -> None:
        for name in ZONES:
            await self.zone(name, **options)

    async def request(self, name: str, replicas: int, *, scale: bool = False, **fields: Any) -> AdmissionRequest:
        """What the API server asks when somebody wants so many replicas."""
        old = await self.client.get(SETS, name, NS)
        if scale:
            old = {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": name, "namespace": NS},
                "spec": {"replicas": old["spec"]["replicas"]},
            }
        new = copy.deepcopy(old)
        new["spec"]["replicas"] = replicas
        fields = {"object": new, "old_object": old, "name": name, "namespace": NS, **fields}
        return AdmissionRequest(
            uid=f"{name}-{replicas}",
            kind=KindName(group="apps", version="v1", kind=old["kind"]),
            resource=ResourceName(group="apps", version="v1", resource="statefulsets"),
            sub_resource="scale" if scale else "",
            operation="UPDATE",
            **fields,
        )

    async def prepare(self, name: str, replicas: int, **options: Any) -> AdmissionResponse:
        return await self.ask(PREPARE_DOWNSCALE, await self.request(name, replicas, **options))

    async def forbid(self, name: str, replicas: int, **options: Any) -> AdmissionResponse:
        return await self.ask(NO_DOWNSCALE, await self.request(name, replicas, **options))

    async def ask(self, path: str, request: AdmissionRequest) -> AdmissionResponse:
        return await self.rules[path](request)

    async def annotation(self, name: str) -> str | None:
        """When the zone says that it was scaled down."""
        found = await self.client.get(StatefulSet, name, NS)
        return found.metadata.annotations.get(LAST_DOWNSCALE)

    async def replicas(self, name: str) -> int:
        """How many replicas the zone is to have."""
        found: int = (await self.client.get(SETS, name, NS))["spec"]["replicas"]
        return found

    async def tracked(self) -> dict[str, str]:
        """What the zone tracker says, by zone."""
        data: dict[str, str] = (await self.client.get(MAPS, TRACKER, NS))["data"]
        return data

    async def undone(self) -> None:
        """Wait until nothing is being undone."""
        prepare = self.rules[PREPARE_DOWNSCALE]
        assert isinstance(prepare, PrepareDownscale)
        await prepare.close()


def _without_none(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


@asynccontextmanager
async def a_bed(*, tracker: bool = False, **options: Any) -> AsyncIterator[Bed]:
    cluster = EmbeddedCluster("c", clock=LoopClock(), rng=Random(1))
    cluster.start()
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    transport, endpoints = Faulty(cluster.transport()), PodEndpoints()
    to_rules = Client(transport, limiter=Limiter(rate=0), retry=Retry(attempts=3), rng=Random(2))
    options = {"zone_tracker": TRACKER if tracker else "", **options}
    bed = Bed(client, transport, endpoints, downscale_rules(to_rules, endpoints, LoopClock(), **options))
    accounts = untyped(ServiceAccount.resource)
    async with asyncio.timeout(60):
        while not (await client.list(accounts, NS)).items:  # pods need the namespace's own account
            await asyncio.sleep(0.05)
    try:
        yield bed
        await bed.undone()
    finally:
        cluster.stop()


def play(scene: Callable[[Bed], Awaitable[None]], **options: Any) -> None:
    """One scene, in virtual time."""

    async def main() -> None:
        async with a_bed(**options) as bed:
            await scene(bed)

    run(main())


def ago(**length: float) -> str:
    return moment(LoopClock().now() - timedelta(**length))


def denied(response: AdmissionResponse) -> str:
    """Why a write was denied."""
    assert not response.allowed
    assert response.status is not None
    return response.status.message


def said(name: str, old: int, new: int) -> str:
    return f"downscale of statefulsets/{name} in {NS} from {old} to {new} replicas is "
