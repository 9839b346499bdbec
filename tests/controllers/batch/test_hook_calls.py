"""Calls to rollout webhooks, over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from kedge.api.oam.rollout_plan import HookType, RolloutPlan, RolloutWebhook
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.controllers.batch.hook_calls import HookCalls
from kedge.kube.clock import SystemClock
from kedge.kube.connect.outbound import Answer, Call, HttpOutbound
from kedge.plan.batching.hooks import (
    Answered,
    HookCall,
    HookIdentity,
    HookPoint,
    Unanswered,
    next_call,
    recorded,
)
from kube.connect.tlsfixtures import Tunnel, api, raw
from support.virtual import run

POINT = HookPoint(HookType.pre_batch_rollout, 0, "batchInitializing")
WHO = HookIdentity("Rollout", "shop", "web", "uid-1", 3, "web-v2")


@pytest.fixture
async def calls() -> AsyncIterator[HookCalls]:
    outbound = HttpOutbound(limit=100_000, environ={})
    made = HookCalls(outbound, patience=30)
    yield made
    await made.close()
    await outbound.close()


def asleep() -> None:
    raise AssertionError("nobody is to be woken")


def call_of(url: str, *, timeout: float = 20.0) -> HookCall:
    return HookCall("id-1", "gate", url, "POST", b"{}", (), timeout)


async def test_a_hook_is_asked_with_the_same_id_until_it_says_yes(calls: HookCalls) -> None:
    seen: list[tuple[str, str, dict[str, object]]] = []

    async def busy_at_first(request: web.Request) -> web.Response:
        seen.append((request.method, request.headers["Idempotency-Key"], await request.json()))
        assert request.content_type == "application/json"
        return web.Response(status=500 if len(seen) == 1 else 200)

    now, status = SystemClock().now(), RolloutStatus()
    async with api(busy_at_first) as server:
        hook = RolloutWebhook(type=POINT.type, name="gate", url=f"{server}/go", metadata={"a": "b"})
        plan = RolloutPlan(rollout_webhooks=(hook,))
        while not (asking := next_call(plan, status, POINT, WHO, now)).is_done:
            now = asking.until or now
            if asking.call is not None:
                outcome = await calls.call(asking.call, asleep)
                assert outcome is not None
                status = recorded(status, asking.call, outcome, now)
    assert [(method, key) for method, key, _ in seen] == [("POST", status.hooks[0].id)] * 2
    assert [said["attempt"] for _, _, said in seen] == [1, 2]
    assert seen[0][2]["metadata"] == {"a": "b"}
    assert (status.hooks[0].state, status.hooks[0].attempts) == ("Accepted", 2)


async def test_a_refusal_is_given_back_with_what_was_said(calls: HookCalls) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=410, text="frozen\x00\n until  Monday " + "!" * 1000)

    async with api(refuse) as server:
        outcome = await calls.call(call_of(server), asleep)
    assert isinstance(outcome, Answered)
    assert outcome.status == 410
    assert outcome.excerpt.startswith("frozen until Monday !!!")
    assert len(outcome.excerpt) == 200


async def test_a_redirect_is_not_followed(calls: HookCalls) -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/other"})

    async with api(elsewhere) as server:
        assert await calls.call(call_of(server), asleep) == Answered(307)


async def test_a_hook_that_hangs_is_no_answer(calls: HookCalls) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with raw(hang) as server:
        assert await calls.call(call_of(server, timeout=0.2), asleep) == Unanswered("no answer within 0.2 s")


async def test_an_answer_that_is_too_large_is_no_answer(calls: HookCalls) -> None:
    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1_000_000)

    async with api(large) as server:
        outcome = await calls.call(call_of(server), asleep)
    assert isinstance(outcome, Unanswered)
    assert "larger than 100000 bytes" in outcome.reason


async def test_nobody_there_is_no_answer(calls: HookCalls) -> None:
    async with raw(Tunnel()) as server:
        pass
    outcome = await calls.call(call_of(server.replace("://", "://me:hunter2@") + "/hunter2?token=hunter2"), asleep)
    assert isinstance(outcome, Unanswered)
    assert outcome.reason.startswith("cannot connect")
    assert "hunter2" not in outcome.reason


async def test_what_an_answer_repeats_of_the_url_is_hidden(calls: HookCalls) -> None:
    async def repeat(request: web.Request) -> web.Response:
        return web.Response(status=404, text=f"Cannot POST {request.raw_path}, {request.query['token']}, hunter4")

    async with api(repeat) as server:
        url = server.replace("://", "://me:hunter4@") + "/services/hunter2?token=hunter3%20x"
        assert await calls.call(call_of(url), asleep) == Answered(404, "Cannot POST …, …, …")


@pytest.mark.parametrize("url", ["", "hooks/x", "ftp://host/x", "http://", "http://me:hunter2@host:port/", "http://[x"])
async def test_what_is_no_url_is_no_answer(calls: HookCalls, url: str) -> None:
    assert await calls.call(call_of(url), asleep) == Unanswered("its url is no http:// or https:// URL")


def test_a_worker_does_not_wait_for_a_hook_that_takes_long() -> None:
    class Slow:
        async def fetch(self, call: Call, *, timeout: float) -> Answer:
            await asyncio.sleep(5)
            return Answer(202, msgspec.json.encode({"ok": True}))

        async def close(self) -> None:
            pass

    async def main() -> None:
        calls, woken = HookCalls(Slow()), asyncio.Event()
        assert await calls.call(call_of("http://hooks/x"), woken.set) is None
        assert asyncio.get_running_loop().time() < 2
        await woken.wait()
        assert await calls.call(call_of("http://hooks/x"), asleep) == Answered(202, '{"ok":true}')

    run(main())


def test_an_outbound_that_ignores_its_time_out_is_no_answer() -> None:
    class Deaf:
        async def fetch(self, call: Call, *, timeout: float) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

        async def close(self) -> None:
            pass

    async def main() -> None:
        calls = HookCalls(Deaf(), patience=60)
        assert await calls.call(call_of("http://hooks/x"), asleep) == Unanswered("no answer within 20 s")

    run(main())
