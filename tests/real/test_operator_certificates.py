"""The certificate of an operator's webhooks, while a real API server keeps calling them."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controlplane.cluster import Cluster
from real.zone_operator import SECRET, OperatorBed, installed, stateful_set
from support.certificates import data_of, made
from support.waiting import until_so

GUARDED = {"grafana.com/no-downscale": "true"}
MERGE = "application/merge-patch+json"


@pytest.fixture
async def bed(zones_cluster: Cluster, tmp_path: Path) -> AsyncIterator[OperatorBed]:
    """A StatefulSet that may not be scaled down, and webhooks that nobody serves yet."""
    bed = OperatorBed(zones_cluster, await zones_cluster.fresh_namespace("certificates"), tmp_path)
    await bed.apply(stateful_set("mock", 2, GUARDED))
    async with bed.prepared(*await installed(bed.namespace)), bed.service_address():
        yield bed


class Calls:
    """Asks for the downscale of `mock` again and again; an answer other than the webhook's is a failure."""

    def __init__(self, bed: OperatorBed) -> None:
        self._bed = bed
        self.refused = 0
        self.failures: list[str] = []

    async def ask(self) -> str:
        """Empty if the webhook has answered."""
        path = f"/apis/apps/v1/namespaces/{self._bed.namespace}/statefulsets/mock/scale?dryRun=All"
        answer = await self._bed.cluster.request("PATCH", path, {"spec": {"replicas": 1}}, content_type=MERGE)
        is_denied = "because it has the label 'grafana.com/no-downscale=true'" in answer.text
        return "" if is_denied else f"{answer.status} {answer.text}"

    async def answered(self) -> None:
        """Wait until the webhook answers."""

        async def is_answered() -> bool:
            return not await self.ask()

        await until_so(is_answered, 60)

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Meanwhile, not one call may fail."""
        task = asyncio.create_task(self._go_on())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert self.failures == []
        assert self.refused > 0

    async def _go_on(self) -> None:
        while True:
            failure = await self.ask()
            self.refused += 1
            if failure:
                self.failures.append(failure)
            await asyncio.sleep(0.02)


async def shown(port: int) -> str:
    """The certificate that a server shows."""
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))


async def stored(bed: OperatorBed) -> str:
    """The certificate in the Secret."""
    found = await bed.get("secret", SECRET, "{.data.cert}")
    return base64.b64decode(found).decode()


async def trust(bed: OperatorBed) -> str:
    """What the API server trusts."""
    hook = f"no-downscale-{bed.namespace}"
    return await bed.get("validatingwebhookconfiguration", hook, "{.webhooks[0].clientConfig.caBundle}")


def outdated(bed: OperatorBed) -> str:
    """A Secret's data whose certificate ended yesterday."""
    name = f"rollout-operator.{bed.namespace}.svc"
    ended = made(name, at=datetime.now(UTC) - timedelta(days=2), expiration=timedelta(days=1))
    return json.dumps({"data": {key: base64.b64encode(part).decode() for key, part in data_of(ended).items()}})


async def test_a_killed_operator_comes_back_with_the_same_certificate(bed: OperatorBed) -> None:
    calls = Calls(bed)
    async with bed.operator() as operator:
        await calls.answered()
        before = await bed.get("secret", SECRET, "{.metadata.uid} {.metadata.resourceVersion}")
        trusted, certificate = await trust(bed), await shown(operator.port)
        await operator.kill()
        assert "failed calling webhook" in await calls.ask()
        bed.service.ports.clear()
        async with bed.operator() as again:
            await calls.answered()
            assert await shown(again.port) == certificate
            assert await trust(bed) == trusted
            assert await bed.get("secret", SECRET, "{.metadata.uid} {.metadata.resourceVersion}") == before


async def test_two_operators_that_start_together_show_one_certificate(bed: OperatorBed) -> None:
    calls = Calls(bed)
    async with AsyncExitStack() as stack:
        starting = (stack.enter_async_context(bed.operator()) for _ in range(2))
        one, other = await asyncio.gather(*starting)
        await calls.answered()
        async with calls.going_on():

            async def agree() -> bool:
                return await shown(one.port) == await shown(other.port) == await stored(bed)

            await until_so(agree, 60)
            assert await bed.get("secret", SECRET, "{.data.ca}") == await trust(bed)


async def test_an_expired_certificate_is_replaced_at_the_start(bed: OperatorBed) -> None:
    await bed.kubectl("create", "secret", "generic", SECRET)
    await bed.kubectl("patch", "secret", SECRET, "--patch", await asyncio.to_thread(outdated, bed))
    async with bed.operator() as operator:
        await Calls(bed).answered()
        assert await shown(operator.port) == await stored(bed)


async def test_an_expired_certificate_that_somebody_stores_is_replaced_and_no_call_fails(bed: OperatorBed) -> None:
    calls = Calls(bed)
    async with bed.operator("-server-tls.self-signed-cert.expiration=5m"):
        await calls.answered()
        good = await stored(bed)
        async with calls.going_on():
            await bed.kubectl("patch", "secret", SECRET, "--patch", await asyncio.to_thread(outdated, bed))

            async def is_back() -> bool:
                return await stored(bed) == good

            await until_so(is_back, 60)


async def test_a_certificate_is_renewed_before_its_end_and_no_call_fails(bed: OperatorBed) -> None:
    calls = Calls(bed)
    async with bed.operator("-server-tls.self-signed-cert.expiration=1m") as operator:
        await calls.answered()
        first = await shown(operator.port)
        ends = asyncio.get_running_loop().time() + 60
        async with calls.going_on():

            async def is_renewed() -> bool:
                return await shown(operator.port) != first and asyncio.get_running_loop().time() > ends

            await until_so(is_renewed, 120)
