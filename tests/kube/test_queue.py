"""What the work queue promises, one statement each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

import pytest

from kedge.kube.limits import BackoffSteps
from kedge.kube.queue import DEFAULT_WAIT, LOW, NORMAL, Key, Queue
from support.virtual import run


def key(name: str, cluster: str = "hub") -> Key:
    return Key(cluster, "shop", name)


def make(wait: BackoffSteps | None = None, per_cluster: int | None = None) -> Queue:
    return Queue(rng=random.Random(1), wait=wait or DEFAULT_WAIT, per_cluster=per_cluster)


async def drain(queue: Queue) -> list[Key]:
    """Everything that is ready now, in order, without working on it."""
    taken = []
    while len(queue):
        got = await queue.get()
        assert got is not None
        taken.append(got)
        queue.done(got)
    return taken


def names(keys: Iterable[Key]) -> list[str]:
    return [k.name for k in keys]


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue = make()
    queue.add(key("a"))
    queue.add(key("a"))
    assert names(await drain(queue)) == ["a"]


async def test_keys_of_one_cluster_come_in_the_order_they_were_added() -> None:
    queue = make()
    for name in "cab":
        queue.add(key(name))
    assert names(await drain(queue)) == ["c", "a", "b"]


async def test_a_key_in_work_is_not_handed_out_again_until_it_is_done() -> None:
    queue = make()
    queue.add(key("a"))
    assert await queue.get() == key("a")
    queue.add(key("a"))
    assert len(queue) == 0
    queue.done(key("a"))
    assert names(await drain(queue)) == ["a"]


async def test_a_key_that_was_not_added_again_is_gone_when_done() -> None:
    queue = make()
    queue.add(key("a"))
    await drain(queue)
    assert len(queue) == 0


async def test_the_highest_priority_goes_first() -> None:
    queue = make()
    queue.add(key("old"), priority=LOW)
    queue.add(key("new"))
    queue.add(key("urgent"), priority=7)
    assert names(await drain(queue)) == ["urgent", "new", "old"]


async def test_a_key_added_again_with_a_higher_priority_moves_up() -> None:
    queue = make()
    for name in "abc":
        queue.add(key(name), priority=LOW)
    queue.add(key("c"))
    assert names(await drain(queue)) == ["c", "a", "b"]


async def test_a_key_added_again_with_a_lower_priority_keeps_its_place() -> None:
    queue = make()
    queue.add(key("a"))
    queue.add(key("b"), priority=LOW)
    queue.add(key("a"), priority=LOW)
    assert names(await drain(queue)) == ["a", "b"]


async def test_a_key_wanted_again_while_in_work_keeps_the_highest_priority_asked_for() -> None:
    queue = make()
    queue.add(key("a"))
    await queue.get()
    for priority in (LOW, 3, NORMAL):
        queue.add(key("a"), priority=priority)
    queue.add(key("b"), priority=2)
    queue.done(key("a"))
    assert names(await drain(queue)) == ["a", "b"]


async def test_clusters_take_turns() -> None:
    queue = make()
    for n in range(1000):
        queue.add(key(f"{n}", "big"))
    queue.add(key("x", "small"))
    queue.add(key("y", "small"))
    order = [k.cluster for k in await drain(queue)]
    assert order[:5] == ["big", "small", "big", "small", "big"]


async def test_a_cluster_that_emptied_its_line_goes_to_the_back_of_the_turns() -> None:
    queue = make()
    for cluster in "abc":
        queue.add(key("1", cluster))
    queue.add(key("2", "b"))
    assert await queue.get() == key("1", "a")
    queue.add(key("2", "a"))
    assert [k.cluster for k in await drain(queue)] == ["b", "c", "a", "b"]


async def test_a_slow_cluster_keeps_no_more_workers_than_its_share() -> None:
    queue = make(per_cluster=2)
    for n in range(5):
        queue.add(key(f"{n}", "slow"))
    taken = [await queue.get(), await queue.get()]
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not getter.done()
    queue.add(key("x", "quick"))
    assert await getter == key("x", "quick")
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert taken[0] is not None
    queue.done(taken[0])
    assert await getter == key("2", "slow")


def test_a_delayed_key_comes_at_its_time() -> None:
    async def main() -> None:
        queue = make()
        queue.add(key("late"), after=10)
        queue.add(key("soon"), after=5)
        assert queue.delayed == 2
        assert await queue.get() == key("soon")
        assert asyncio.get_running_loop().time() == 5
        assert await queue.get() == key("late")
        assert asyncio.get_running_loop().time() == 10

    run(main())


@pytest.mark.parametrize(
    ("adds", "expected"),
    [
        pytest.param([10, 5], 5, id="a later add that is due earlier wins"),
        pytest.param([5, 10], 5, id="a later add that is due later changes nothing"),
        pytest.param([5, 0], 0, id="now beats later"),
        pytest.param([0, 5], 0, id="later does not undo now"),
        pytest.param([10, 5, 7, 5], 5, id="the earliest of many"),
    ],
)
def test_the_earliest_time_wins(adds: list[float], expected: float) -> None:
    async def main() -> None:
        queue = make()
        for after in adds:
            queue.add(key("a"), after=after)
        assert await queue.get() == key("a")
        assert asyncio.get_running_loop().time() == expected
        queue.done(key("a"))
        await asyncio.sleep(100)
        assert len(queue) == 0  # and the others are no longer owed

    run(main())


def test_a_delayed_key_that_falls_due_while_in_work_comes_after_done() -> None:
    async def main() -> None:
        queue = make()
        queue.add(key("a"))
        await queue.get()
        queue.add(key("a"), after=1)
        await asyncio.sleep(2)
        assert len(queue) == 0
        queue.done(key("a"))
        assert names(await drain(queue)) == ["a"]

    run(main())


def test_a_delayed_key_keeps_the_highest_priority_asked_for() -> None:
    async def main() -> None:
        queue = make()
        queue.add(key("a"), after=1, priority=5)
        queue.add(key("a"), after=1, priority=LOW)
        queue.add(key("b"), after=1)
        await asyncio.sleep(2)
        assert names(await drain(queue)) == ["a", "b"]

    run(main())


def test_retries_wait_twice_as_long_each_time_up_to_the_longest() -> None:
    async def main() -> None:
        queue = make(BackoffSteps(first=1, longest=60))
        waits = []
        queue.add(key("a"))
        for _ in range(9):
            await queue.get()
            waits.append(queue.retry(key("a")))
            queue.done(key("a"))
        steps = [1, 2, 4, 8, 16, 32, 60, 60, 60]
        assert all(step / 2 <= wait <= step for wait, step in zip(waits, steps, strict=True))
        assert len({wait / step for wait, step in zip(waits, steps, strict=True)}) == 9  # jitter differs
        assert queue.retries == 9

    run(main())


def test_waits_never_overflow() -> None:
    assert DEFAULT_WAIT.after(10**6, random.Random(1)) <= 60


async def test_a_success_makes_the_next_failure_the_first_again() -> None:
    queue = make(BackoffSteps(1, 60))
    for _ in range(5):
        queue.retry(key("a"))
    assert queue.failures(key("a")) == 5
    queue.forget(key("a"))
    assert queue.failures(key("a")) == 0
    assert queue.retry(key("a")) <= 1


def test_a_retry_keeps_the_priority_of_the_attempt() -> None:
    async def main() -> None:
        queue = make(BackoffSteps(1, 60))
        queue.add(key("a"), priority=LOW)
        await queue.get()
        queue.retry(key("a"))
        queue.done(key("a"))
        await asyncio.sleep(1)
        queue.add(key("b"))
        assert names(await drain(queue)) == ["b", "a"]

    run(main())


async def test_get_waits_for_a_key() -> None:
    queue = make()
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not getter.done()
    queue.add(key("a"))
    assert await getter == key("a")


async def test_closing_ends_those_who_wait_and_those_who_come() -> None:
    queue = make()
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert await asyncio.gather(*getters) == [None] * 3
    assert await queue.get() is None


async def test_a_closed_queue_hands_out_nothing_and_lets_work_finish() -> None:
    queue = make()
    queue.add(key("a"))
    queue.add(key("b"))
    await queue.get()
    queue.add(key("a"))
    queue.close()
    queue.add(key("c"), after=1)
    queue.retry(key("a"))
    queue.done(key("a"))
    assert await queue.get() is None
    assert (len(queue), queue.delayed, queue.closed) == (0, 0, True)


async def test_a_worker_cancelled_as_it_was_woken_passes_the_key_on() -> None:
    queue = make()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add(key("a"))  # wakes the first
    first.cancel()
    assert await second == key("a")
    assert first.cancelled()


async def test_a_worker_cancelled_just_before_an_add_does_not_swallow_it() -> None:
    queue = make()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    queue.add(key("a"))
    assert await second == key("a")


async def test_a_cancelled_worker_leaves_nothing_behind() -> None:
    queue = make()
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    getter.cancel()
    await asyncio.wait([getter])
    queue.add(key("a"))
    assert await queue.get() == key("a")


def test_overtaken_delays_do_not_pile_up() -> None:
    async def main() -> None:
        queue = make()
        for _ in range(10_000):
            queue.add(key("a"), after=600)
            queue.add(key("a"))
            await drain(queue)
        assert len(queue._delayed_keys._heap) < 200

    run(main())


def test_it_counts_adds_and_time_in_line_and_in_work() -> None:
    async def main() -> None:
        queue = make()
        queue.add(key("a"))
        queue.add(key("a"))
        await asyncio.sleep(2)
        await queue.get()
        await asyncio.sleep(5)
        assert queue.in_work() == [5]
        queue.done(key("a"))
        assert (queue.adds, queue.waited.total, queue.worked.total, queue.in_work()) == (1, 2, 5, [])

    run(main())


@pytest.mark.parametrize(
    ("named", "text"),
    [(Key("hub", "shop", "web"), "hub/shop/web"), (Key("hub", None, "node-1"), "hub/node-1")],
)
def test_a_key_reads_as_a_path(named: Key, text: str) -> None:
    assert str(named) == text
