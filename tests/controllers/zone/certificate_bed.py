"""A namespace with webhook configurations, and replicas of an operator that keep its certificate, in virtual time.

A replica runs the real controllers. Its server is a list of what it showed, and its keys take no time.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any

from cryptography import x509
from prometheus_client import CollectorRegistry, generate_latest

from kedge.admission.certificate import CertificateRequest, GeneratedCertificate, elliptic, generate
from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.core import Namespace, Secret
from kedge.api.zones import INJECT_CA, INJECT_NAMESPACE
from kedge.controllers.zone.ca_bundles import CaBundles
from kedge.controllers.zone.certificate_secret import CertificateSecret
from kedge.controllers.zone.certificates import Certificates
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.kube.manager import Manager
from kedge.kube.transport import JSON, BufferedStream, ConnectionFailed, Request, Response, Stream
from kedge.plan.zoning.certificate import BadCertificate, ServingPair, StoredCertificate, read_secret
from kedge.simulate.clock import JumpingClock, LoopClock
from support.fleets import client_of, fleet_cluster
from support.virtual import run
from support.waiting import until, until_so

NAMESPACE, NAME = "shop", "rollout-operator-self-signed-certificate"
SECRETS = untyped(Secret.resource)
HOST = "rollout-operator.shop.svc"
YEAR = timedelta(days=365)
Kinds = type[ValidatingWebhookConfiguration] | type[MutatingWebhookConfiguration]


class Gate:
    """A transport that refuses what `refuses` says, counts, and fails for good at a write, as a crash does."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.asked: list[str] = []
        self.refused: list[str] = []
        self.refuses: Callable[[str, str], bool] = lambda *_: False
        self.writes_left: int | None = None

    def disconnect(self) -> None:
        self._inner.disconnect()

    def connect(self) -> None:
        self._inner.connect()

    def writes(self) -> list[str]:
        return [one for one in self.asked if not one.startswith(("GET", "WATCH"))]

    def _is_refused(self, verb: str, path: str) -> bool:
        self.asked.append(f"{verb} {path}")
        if self.refuses(verb, path):
            self.refused.append(f"{verb} {path}")
            return True
        return False

    async def send(self, request: Request, *, timeout: float) -> Response:
        self._crash_at(request)
        if self._is_refused(request.method, request.path):
            return _forbidden(request.path)
        answer = await self._inner.send(request, timeout=timeout)
        self._crash_at(request)
        return answer

    def _crash_at(self, request: Request) -> None:
        """The last write is done, and its answer never seen."""
        if self.writes_left is not None and request.method != "GET":
            self.writes_left -= 1
        if self.writes_left is not None and self.writes_left < 0:
            raise ConnectionFailed("crashed", sent=True)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        if self._is_refused("WATCH", request.path):
            yield BufferedStream(_forbidden(request.path))
            return
        async with self._inner.stream(request, timeout=timeout, silence=silence) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()


def _forbidden(path: str) -> Response:
    body = b'{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"not granted"}'
    return Response(403, body, {"content-type": JSON})


class Replica:
    """One operator: what it showed its callers, and when."""

    def __init__(self, gate: Gate, clock: JumpingClock) -> None:
        self.gate = gate
        self.clock = clock
        self.shown: list[tuple[datetime, ServingPair]] = []
        self.made: list[GeneratedCertificate] = []
        self.registry = CollectorRegistry()
        self.certificates: Certificates
        self.bundles: CaBundles | None = None

    @property
    def now_shown(self) -> ServingPair | None:
        return self.shown[-1][1] if self.shown else None

    async def show(self, pair: ServingPair) -> None:
        await asyncio.sleep(0.01)
        self.shown.append((self.clock.now(), pair))

    def metrics(self) -> str:
        return generate_latest(self.registry).decode()


class Bed:
    """The namespace, as its user sees it."""

    def __init__(self, cluster: EmbeddedCluster, client: Client) -> None:
        self.client = client
        self.clock = LoopClock(asyncio.get_running_loop())
        self.replicas: list[Replica] = []
        self._cluster = cluster

    @asynccontextmanager
    async def replica(
        self,
        *,
        expiration: timedelta = YEAR,
        names: tuple[str, ...] = (HOST,),
        injects: bool = True,
        refuses: Callable[[str, str], bool] = lambda *_: False,
        crash_after: int | None = None,
    ) -> AsyncIterator[Replica]:
        """A replica that runs inside the block."""
        number = len(self.replicas) + 1
        gate = Gate(self._cluster.transport())
        gate.refuses, gate.writes_left = refuses, crash_after
        one = Replica(gate, JumpingClock(self.clock, asyncio.get_running_loop(), rng=Random(number)))
        self.replicas.append(one)

        async def make(wanted: tuple[str, ...], now: datetime) -> GeneratedCertificate:
            await asyncio.sleep(2)
            made = generate(CertificateRequest(wanted, expiration=expiration), now, new_key=elliptic)
            one.made.append(made)
            return made

        async with Manager(clock=one.clock, rng=Random(number), grace=1.0) as manager:
            running = asyncio.create_task(manager.run(signals=False))
            cluster = await manager.connect("here", gate)
            secret = CertificateSecret(cluster.client, NAMESPACE, NAME)
            written = secret if injects else None
            bundles = CaBundles(cluster, namespaces=[NAMESPACE], registry=one.registry, secret=written)
            one.certificates = Certificates(
                cluster,
                secret,
                names=names,
                clock=one.clock,
                rng=Random(number),
                generate=make,
                show=one.show,
                bundles=bundles if injects else None,
            )
            manager.add_controller(one.certificates.controller)
            manager.add_controller(bundles.controller)
            one.bundles = bundles
            yield one
            manager.stop()
            await running

    # The Secret

    async def data(self) -> dict[str, bytes] | None:
        try:
            body = await self.client.get(SECRETS, NAME, NAMESPACE)
        except NotFound:
            return None
        return {name: b64decode(value) for name, value in (body.get("data") or {}).items()}

    async def stored(self) -> StoredCertificate | None:
        """What the Secret holds, if it can be served."""
        try:
            return read_secret(await self.data() or {}, self.clock.now())
        except BadCertificate:
            return None

    async def until_stored(self) -> StoredCertificate:
        await until_so(self.stored)
        found = await self.stored()
        assert found is not None
        return found

    async def put(self, data: Mapping[str, bytes]) -> None:
        """Write the Secret by hand, whatever it held."""
        encoded = {name: b64encode(value).decode() for name, value in data.items()}
        body: Untyped = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": encoded}
        if await self.data() is None:
            await self.client.create(SECRETS, body)
        else:
            await self.client.replace(SECRETS, body)

    async def delete(self) -> None:
        await self.client.delete(SECRETS, NAME, NAMESPACE)

    # Webhook configurations

    async def configure(
        self,
        name: str,
        kind: Kinds = ValidatingWebhookConfiguration,
        *,
        inject: str = "true",
        hooks: int = 1,
        **more: Any,
    ) -> None:
        labels = {INJECT_CA: inject, INJECT_NAMESPACE: more.pop("namespace", NAMESPACE)}
        webhooks = [webhook(f"{name}-{index}", **more) for index in range(hooks)]
        body = {"metadata": {"name": name, "labels": labels}, "webhooks": webhooks}
        await self.client.create(untyped(kind.resource), body)

    async def bundles_of(self, name: str, kind: Kinds = ValidatingWebhookConfiguration) -> list[bytes]:
        found = await self.client.get(untyped(kind.resource), name)
        return [b64decode(one["clientConfig"].get("caBundle", "")) for one in found["webhooks"]]

    async def until_injected(self, name: str, kind: Kinds = ValidatingWebhookConfiguration) -> bytes:
        """Wait until every webhook has what the Secret says."""

        async def so() -> bool:
            data = await self.data()
            return data is not None and set(await self.bundles_of(name, kind)) == {data.get("ca", b"")}

        await until_so(so)
        return (await self.bundles_of(name, kind))[0]

    # Callers

    async def call(self, name: str, kind: Kinds = ValidatingWebhookConfiguration) -> list[str]:
        """What an API server that uses this configuration would say of each replica; nothing if all is well."""
        bundle = (await self.bundles_of(name, kind))[0]
        shown = [one.now_shown for one in self.replicas if one.now_shown is not None]
        return [why for pair in shown if (why := refusal(pair, bundle, self.clock.now()))]


def refusal(pair: ServingPair, ca: bytes, now: datetime) -> str:
    """Why a client that trusts these authorities would not trust this server; empty if it would."""
    try:
        read_secret({"ca": ca, "cert": pair.certificate, "key": pair.key}, now)
    except BadCertificate as error:
        return str(error)
    return ""


def webhook(name: str, *, policy: str = "Fail") -> Untyped:
    return {
        "name": f"{name}.grafana.com",
        "clientConfig": {"service": {"name": "rollout-operator", "namespace": NAMESPACE, "path": "/admission/x"}},
        "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["*"]}],
        "failurePolicy": policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def play(act: Callable[[Bed], Awaitable[None]], *, seed: int | None = None) -> None:
    """Act in virtual time, in a namespace of an embedded cluster."""

    async def main() -> None:
        async with fleet_cluster("here", kinds=False) as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": NAMESPACE}})
            await act(Bed(cluster, client))

    run(main(), seed=seed)


async def until_shown(*replicas: Replica, pem: bytes | None = None, within: float = 60.0) -> None:
    """Wait until each shows this certificate, or any."""

    def so() -> bool:
        shown = [one.now_shown for one in replicas]
        return all(one is not None and pem in (None, one.certificate) for one in shown)

    await until(so, within)


def serial(pem: bytes) -> int:
    return x509.load_pem_x509_certificate(pem).serial_number
