"""What a controller promises, in virtual time, on a server as small as it can be."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from kedge.api.core import ConfigMap
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import ApiError, Cause, Conflict, Forbidden, Status, StatusDetails
from kedge.kube.limits import BackoffSteps
from kedge.kube.logs import fields
from kedge.kube.metrics import Metrics
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal
from kedge.kube.transport import Request
from support.tiny import Tiny, map_path
from support.virtual import run
from support.waiting import until

A, B = Key("hub", "shop", "a"), Key("hub", "shop", "b")


def time() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def running(controller: Controller, gate: Callable[[], bool] | None = None) -> AsyncIterator[Metrics]:
    """Run the controller inside, then stop it in good order."""
    metrics = Metrics()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(controller.run(rng=random.Random(1), metrics=metrics, gate=gate))
        await asyncio.sleep(0.001)
        yield metrics
        controller.stop()


class Recorded:
    """A reconcile that notes when it was called with what, and answers from a script; its last answer stands."""

    def __init__(self, *answers: Outcome | BaseException, takes: float = 0.0) -> None:
        self.calls: list[tuple[float, Key]] = []
        self.active: list[Key] = []
        self.most_active = 0
        self._answers = list(answers) or [Outcome.done]
        self._takes = takes

    async def __call__(self, key: Key) -> Outcome:
        assert key not in self.active
        self.calls.append((time(), key))
        self.active.append(key)
        self.most_active = max(self.most_active, len(self.active))
        try:
            await asyncio.sleep(self._takes)
        finally:
            self.active.remove(key)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def keys(self) -> list[Key]:
        return [key for _, key in self.calls]


def driven(reconcile: Recorded, **options: Any) -> tuple[Controller, Signal]:
    signal = Signal("hub")
    return Controller("test", reconcile, [signal], **options), signal


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, {"controller": "test", **labels}) or 0.0


def results(metrics: Metrics) -> dict[str, float]:
    names = ("success", "error", "requeue", "requeue_after")
    found = {name: value(metrics, "controller_runtime_reconcile_total", result=name) for name in names}
    return {name: count for name, count in found.items() if count}


@contextmanager
def logged(level: int = logging.DEBUG) -> Iterator[list[logging.LogRecord]]:
    records: list[logging.LogRecord] = []
    handler = logging.Handler(level)
    handler.emit = records.append  # type: ignore[method-assign,assignment]
    log = logging.getLogger("kedge.kube.controller")
    before = log.level
    log.addHandler(handler)
    log.setLevel(level)
    try:
        yield records
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def conflict(*causes: Cause) -> Conflict:
    status = Status(409, "Conflict", "the object has been modified", StatusDetails(causes=causes))
    return Conflict(Request("PATCH", "/x"), status)


def forbidden(*causes: Cause) -> Forbidden:
    return Forbidden(Request("POST", "/x"), Status(403, "Forbidden", "forbidden", StatusDetails(causes=causes)))


CONTESTED = Cause(".spec.replicas", "conflict with kubectl", "FieldManagerConflict")
GOING = Cause("metadata.namespace", "is being terminated", "NamespaceTerminating")


def test_a_key_that_is_woken_is_reconciled() -> None:
    async def main() -> None:
        reconcile = Recorded()
        controller, signal = driven(reconcile)
        async with running(controller) as metrics:
            signal.wake(A)
            await until(lambda: reconcile.calls)
            await asyncio.sleep(0)
            assert results(metrics) == {"success": 1}
        assert reconcile.keys == [A]

    run(main())


def test_a_failure_is_tried_again_later_each_time() -> None:
    async def main() -> None:
        reconcile = Recorded(*[ValueError("bad")] * 4, Outcome.done)
        controller, signal = driven(reconcile, wait=BackoffSteps(1.0, 60.0))
        async with running(controller) as metrics:
            signal.wake(A)
            await asyncio.sleep(100)
            assert results(metrics) == {"error": 4, "success": 1}
            assert value(metrics, "controller_runtime_reconcile_errors_total") == 4
        gaps = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(reconcile.calls)]
        assert all(step / 2 <= gap <= step for gap, step in zip(gaps, [1, 2, 4, 8], strict=True))

    run(main())


def test_after_a_success_the_next_failure_is_a_first_one_again() -> None:
    async def main() -> None:
        bad = ValueError("bad")
        reconcile = Recorded(*[bad] * 6, Outcome.done, bad, Outcome.done)
        controller, signal = driven(reconcile, wait=BackoffSteps(1.0, 60.0))
        async with running(controller):
            signal.wake(A)
            await until(lambda: len(reconcile.calls) == 7, within=100)
            await asyncio.sleep(1)
            signal.wake(A)
            await asyncio.sleep(100)
        (eighth, _), (ninth, _) = reconcile.calls[7:]
        assert ninth - eighth <= 1

    run(main())


def test_an_object_that_always_fails_stops_none_of_the_others() -> None:
    async def main() -> None:
        done: list[Key] = []

        async def reconcile(key: Key) -> Outcome:
            if key == A:
                raise ValueError("bad")
            done.append(key)
            return Outcome.done

        signal = Signal("hub")
        async with running(Controller("test", reconcile, [signal], workers=1)):
            for key in (A, B):
                signal.wake(key)
            await asyncio.sleep(100)
            signal.wake(B)
            await asyncio.sleep(1)
        assert done == [B, B]

    run(main())


def test_a_traceback_is_logged_once_and_then_only_a_line() -> None:
    async def main() -> None:
        controller, signal = driven(Recorded(*[ValueError("bad")] * 3, KeyError("other"), Outcome.done))
        with logged(logging.ERROR) as records:
            async with running(controller):
                signal.wake(A)
                await asyncio.sleep(10)
        assert [bool(record.exc_info) for record in records] == [True, False, False, True]
        assert {record.__dict__["error"] for record in records} == {"ValueError: bad", "KeyError: 'other'"}

    run(main())


def test_again_looks_again_after_that_time() -> None:
    async def main() -> None:
        reconcile = Recorded(Outcome.again(after=30), Outcome.done)
        controller, signal = driven(reconcile)
        async with running(controller) as metrics:
            signal.wake(A)
            await asyncio.sleep(100)
            assert results(metrics) == {"success": 1, "requeue_after": 1}
        first, second = (at for at, _ in reconcile.calls)
        assert second - first == pytest.approx(30)

    run(main())


def test_not_yet_is_looked_at_soon_and_is_no_error() -> None:
    async def main() -> None:
        reconcile = Recorded(*[Outcome.not_yet] * 20, Outcome.done)
        controller, signal = driven(reconcile)
        with logged(logging.INFO) as records:
            async with running(controller) as metrics:
                signal.wake(A)
                await until(lambda: len(reconcile.calls) == 21, within=25)
                await asyncio.sleep(0)
                assert results(metrics) == {"requeue": 20, "success": 1}
        assert not records

    run(main())


@pytest.mark.parametrize("error", [conflict(), forbidden(GOING)], ids=["conflict", "namespace"])
def test_that_somebody_was_faster_is_looked_at_again_quietly(error: ApiError) -> None:
    async def main() -> None:
        controller, signal = driven(Recorded(error, Outcome.done))
        with logged(logging.INFO) as records:
            async with running(controller) as metrics:
                signal.wake(A)
                await asyncio.sleep(5)
                assert results(metrics) == {"requeue": 1, "success": 1}
        assert not records

    run(main())


@pytest.mark.parametrize("error", [conflict(CONTESTED), forbidden()], ids=["another manager's field", "forbidden"])
def test_what_looking_again_does_not_change_is_a_failure(error: ApiError) -> None:
    async def main() -> None:
        controller, signal = driven(Recorded(error, Outcome.done))
        async with running(controller) as metrics:
            signal.wake(A)
            await asyncio.sleep(5)
            assert results(metrics) == {"error": 1, "success": 1}

    run(main())


def test_a_reconcile_that_takes_too_long_is_ended_and_tried_again() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=1000)
        controller, signal = driven(reconcile, timeout=10)
        with logged(logging.ERROR) as records:
            async with running(controller) as metrics:
                signal.wake(A)
                await asyncio.sleep(10.5)
                assert results(metrics) == {"error": 1}
                assert len(reconcile.calls) == 2
                controller.stop()
        assert records[0].__dict__["error"] == "TimeoutError: not done after 10 s"

    run(main())


def test_something_cancelled_inside_a_reconcile_does_not_end_the_worker() -> None:
    async def main() -> None:
        reconcile = Recorded(asyncio.CancelledError(), Outcome.done)
        controller, signal = driven(reconcile, workers=1)
        async with running(controller) as metrics:
            signal.wake(A)
            await asyncio.sleep(5)
            assert results(metrics) == {"error": 1, "success": 1}

    run(main())


def test_a_reconcile_that_returns_nothing_is_told_what_to_return() -> None:
    async def main() -> None:
        async def forgetful(key: Key) -> Outcome:
            return None  # type: ignore[return-value]

        signal = Signal("hub")
        with logged(logging.ERROR) as records:
            async with running(Controller("test", forgetful, [signal])):
                signal.wake(A)
                await until(lambda: records)
        assert "return Outcome.done, .again or .not_yet" in records[0].__dict__["error"]

    run(main())


def test_cancelling_a_controller_cancels_its_reconciles() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=1000)
        controller, signal = driven(reconcile)
        task = asyncio.create_task(controller.run(rng=random.Random(1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        signal.wake(A)
        await until(lambda: reconcile.active)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert not reconcile.active

    run(main())


def test_once_stopped_what_runs_may_end_and_nothing_begins() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=5)
        controller, signal = driven(reconcile, workers=1)
        async with running(controller):
            signal.wake(A)
            signal.wake(B)
            await until(lambda: reconcile.active)
            controller.stop()
            stopped = time()
        assert reconcile.keys == [A]
        assert time() - stopped == pytest.approx(5, abs=0.1)

    run(main())


def test_a_controller_stopped_before_it_ran_does_not_run() -> None:
    async def main() -> None:
        controller, _ = driven(Recorded())
        controller.stop()
        await controller.run(rng=random.Random(1))

    run(main())


def test_while_the_gate_is_shut_no_reconcile_begins() -> None:
    async def main() -> None:
        reconcile = Recorded()
        controller, signal = driven(reconcile)
        leading = False
        async with running(controller, gate=lambda: leading):
            signal.wake(A)
            await asyncio.sleep(60)
            assert not reconcile.calls
            leading = True
            await asyncio.sleep(2)
            assert reconcile.keys == [A]

    run(main())


def test_many_keys_are_worked_on_at_once_but_each_only_once() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=1)
        controller, signal = driven(reconcile, workers=4, per_cluster=4)
        keys = [Key("hub", "shop", f"{n}") for n in range(8)]
        async with running(controller):
            for _ in range(3):
                for key in keys:
                    signal.wake(key)
                await asyncio.sleep(0.4)
            await asyncio.sleep(20)
        assert reconcile.most_active == 4
        assert set(reconcile.keys) == set(keys)

    run(main())


def test_one_cluster_cannot_keep_every_worker() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=5)
        controller, signal = driven(reconcile, workers=4)
        async with running(controller):
            for n in range(10):
                signal.wake(Key("slow", "shop", f"{n}"))
            await asyncio.sleep(1)
            signal.wake(A)
            await asyncio.sleep(1)
            assert len(reconcile.active) == 4
            assert A in reconcile.active

    run(main())


def test_a_change_while_in_work_is_looked_at_afterwards() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=1)
        controller, signal = driven(reconcile)
        async with running(controller):
            signal.wake(A)
            await until(lambda: reconcile.active)
            signal.wake(A)
            signal.wake(A)
            await asyncio.sleep(10)
        assert reconcile.keys == [A, A]

    run(main())


def test_what_a_controller_counts_is_there_under_the_usual_names() -> None:
    async def main() -> None:
        reconcile = Recorded(takes=0.5)
        controller, signal = driven(reconcile, workers=3)
        async with running(controller) as metrics:
            signal.wake(A)
            await asyncio.sleep(0.1)
            assert value(metrics, "controller_runtime_active_workers") == 1
            assert value(metrics, "controller_runtime_max_concurrent_reconciles") == 3
            await asyncio.sleep(1)
            assert value(metrics, "controller_runtime_active_workers") == 0
            assert value(metrics, "controller_runtime_reconcile_time_seconds_count") == 1
            assert value(metrics, "controller_runtime_reconcile_time_seconds_sum") == pytest.approx(0.5)
            assert metrics.registry.get_sample_value("workqueue_adds_total", {"name": "test"}) == 1
            assert metrics.registry.get_sample_value("workqueue_work_duration_seconds_sum", {"name": "test"}) == 0.5

    run(main())


@pytest.mark.parametrize("after", [0, -1, float("nan")])
def test_again_without_a_wait_is_refused(after: float) -> None:
    with pytest.raises(ValueError, match="would never rest"):
        Outcome.again(after=after)


def test_a_controller_without_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Controller("test", Recorded(), workers=0)


def test_its_queue_is_there_only_while_it_runs() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        _ = Controller("test", Recorded()).queue


def test_records_made_inside_a_reconcile_say_what_they_are_about() -> None:
    async def main() -> None:
        told: list[dict[str, object]] = []

        async def reconcile(key: Key) -> Outcome:
            told.append(fields(logging.makeLogRecord({})))
            return Outcome.done

        signal = Signal("hub")
        async with running(Controller("test", reconcile, [signal])):
            signal.wake(A)
            await until(lambda: told)
        assert told == [{"controller": "test", "cluster": "hub", "namespace": "shop", "name": "a"}]

    run(main())


def test_a_controller_is_thirty_lines() -> None:
    class Greeter:
        """Gives every ConfigMap a greeting."""

        def __init__(self, cluster: Cluster) -> None:
            self.cluster = cluster
            self.maps = cluster.cache(ConfigMap)

        async def reconcile(self, key: Key) -> Outcome:
            seen = self.maps.get(key.name, key.namespace)
            if seen is None or seen.data.get("greeting") == f"hello {key.name}":
                return Outcome.done
            meta = {"name": key.name, "namespace": key.namespace}
            body = {"metadata": meta, "data": {"greeting": f"hello {key.name}"}}
            await self.cluster.client.apply(ConfigMap, body, manager="greeter")
            return Outcome.done

    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"))
        cluster = Cluster("hub", Client(server), clock=SystemClock(), rng=random.Random(1))
        greeter = Greeter(cluster)
        following = asyncio.create_task(cluster.run())
        async with running(Controller("greeter", greeter.reconcile, [cluster.watch(greeter.maps)])):
            await asyncio.sleep(1)
            server.put(map_path("b"))
            await asyncio.sleep(10)
            assert [found["data"]["greeting"] for found in server.objects.values()] == ["hello a", "hello b"]
            assert len(server.writes()) == 2
        following.cancel()
        await asyncio.wait([following])

    run(main())
