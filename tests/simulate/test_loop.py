"""The seeded loop: time that does not pass, an order the seed chooses, and nothing outside."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.simulate.loop import Deadlock, Livelock, Loop, NotSimulated, run
from kedge.simulate.process_tasks import ProcessGroup

SEEDS = st.integers(0, 2**32)


def virtual() -> Loop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    return loop


async def order_of(count: int, turns: int = 1) -> list[int]:
    """In which order so many tasks run, turn by turn."""
    ran: list[int] = []

    async def one(number: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
            ran.append(number)

    await asyncio.gather(*(one(number) for number in range(count)))
    return ran


# Time


def test_a_day_passes_at_once() -> None:
    async def day() -> float:
        await asyncio.sleep(86_400)
        return virtual().time()

    assert run(day()) == 86_400


def test_timers_go_off_in_order_whatever_the_seed() -> None:
    async def timers() -> list[float]:
        rang: list[float] = []
        for at in (3.0, 1.0, 2.0, 1.5):
            virtual().call_at(at, rang.append, at)
        await asyncio.sleep(5)
        return rang

    assert {tuple(run(timers(), seed=seed)) for seed in range(20)} == {(1.0, 1.5, 2.0, 3.0)}


def test_timers_of_one_moment_go_off_in_any_order() -> None:
    async def timers() -> tuple[int, ...]:
        rang: list[int] = []
        for number in range(3):
            virtual().call_at(1.0, rang.append, number)
        await asyncio.sleep(5)
        return tuple(rang)

    assert len({run(timers(), seed=seed) for seed in range(200)}) == 6


def test_a_cancelled_timer_does_not_go_off_and_is_forgotten() -> None:
    async def many() -> tuple[int, int]:
        loop, rang = virtual(), list[int]()
        for number in range(1000):
            loop.call_at(10.0, rang.append, number).cancel()
        loop.call_at(10.0, rang.append, -1)
        left = len(loop._timers)
        await asyncio.sleep(20)
        assert rang == [-1]
        return left, loop.timers

    left, after = run(many())
    assert left < 300
    assert after == 0


# Order


def test_without_a_seed_tasks_run_in_the_order_they_were_made() -> None:
    assert run(order_of(4, turns=2)) == [0, 1, 2, 3, 0, 1, 2, 3]


@given(SEEDS)
def test_the_same_seed_gives_the_same_order(seed: int) -> None:
    assert run(order_of(6, turns=4), seed=seed) == run(order_of(6, turns=4), seed=seed)


def test_seeds_find_every_order() -> None:
    assert len({tuple(run(order_of(4), seed=seed)) for seed in range(400)}) == 24


def test_a_task_can_be_slow_and_be_overtaken() -> None:
    orders = {tuple(run(order_of(2, turns=2), seed=seed)) for seed in range(100)}
    assert (0, 0, 1, 1) in orders
    assert (1, 1, 0, 0) in orders


@given(SEEDS)
def test_nobody_starves(seed: int) -> None:
    ran = run(order_of(5, turns=50), seed=seed)
    seen: Counter[int] = Counter()
    for number in ran[:200]:
        seen[number] += 1
        assert max(seen.values()) <= 2 * min(seen[other] for other in range(5)) + 4


@given(SEEDS)
def test_callbacks_keep_the_order_they_were_registered_in(seed: int) -> None:
    async def callbacks() -> list[int]:
        called: list[int] = []
        noise = asyncio.create_task(order_of(3))
        for number in range(10):
            asyncio.get_running_loop().call_soon(called.append, number)
        await noise
        return called

    assert run(callbacks(), seed=seed) == list(range(10))


@given(SEEDS)
def test_a_done_callback_comes_before_whoever_awaits(seed: int) -> None:
    async def watched() -> list[str]:
        happened: list[str] = []
        task = asyncio.create_task(order_of(2))
        task.add_done_callback(lambda _: happened.append("callback"))
        await task
        happened.append("awaited")
        return happened

    assert run(watched(), seed=seed) == ["callback", "awaited"]


# What asyncio is made of works in any order


async def a_lock_excludes() -> None:
    lock, inside = asyncio.Lock(), 0

    async def enter() -> None:
        nonlocal inside
        async with lock:
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(5)))


async def a_queue_keeps_its_order() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)

    async def fill() -> None:
        for number in range(20):
            await queue.put(number)

    filling = asyncio.create_task(fill())
    assert [await queue.get() for _ in range(20)] == list(range(20))
    await filling


async def a_semaphore_counts() -> None:
    semaphore, inside, most = asyncio.Semaphore(2), 0, 0

    async def enter() -> None:
        nonlocal inside, most
        async with semaphore:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(6)))
    assert most == 2


async def a_group_fails_as_one() -> None:
    ended: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(name)

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError

    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(wait(name))
            group.create_task(fail())
    assert sorted(ended) == ["a", "b", "c"]
    assert virtual().time() == 1


async def a_timeout_ends_what_it_bounds() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await order_of(3)
            await asyncio.Event().wait()
    assert virtual().time() == 3


async def a_condition_wakes_everyone() -> None:
    condition, woken = asyncio.Condition(), 0

    async def wait() -> None:
        nonlocal woken
        async with condition:
            await condition.wait()
            woken += 1

    waiting = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(1)
    async with condition:
        condition.notify_all()
    await asyncio.gather(*waiting)
    assert woken == 3


@pytest.mark.parametrize(
    "works",
    [
        a_lock_excludes,
        a_queue_keeps_its_order,
        a_semaphore_counts,
        a_group_fails_as_one,
        a_timeout_ends_what_it_bounds,
        a_condition_wakes_everyone,
    ],
)
def test_in_any_order(works: Callable[[], Coroutine[Any, Any, None]]) -> None:
    for seed in range(100):
        run(works(), seed=seed)


def test_a_group_is_cancelled_in_the_same_order_in_every_run() -> None:
    async def cancelled() -> list[int]:
        order: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                order.append(number)
                raise

        tasks = [asyncio.create_task(wait(number)) for number in range(50)]
        await asyncio.sleep(1)
        for task in set(tasks):
            task.cancel()
        await asyncio.wait(tasks)
        return order

    first = run(cancelled(), seed=1)
    clutter = [object() for _ in range(12_345)]
    assert run(cancelled(), seed=1) == first
    assert clutter


# Standing still


@pytest.mark.parametrize("seed", [None, *range(10)])
def test_a_stopped_group_does_not_run_until_it_goes_on(seed: int | None) -> None:
    async def stopped() -> tuple[list[float], list[float]]:
        loop, group, ours, others = virtual(), ProcessGroup("g"), list[float](), list[float]()

        async def tick(into: list[float]) -> None:
            for _ in range(6):
                await asyncio.sleep(1.0)
                into.append(loop.time())

        tasks = [loop.start_in(group, tick(ours), "ours"), loop.start_in(None, tick(others), "others")]
        await asyncio.sleep(1.5)
        loop.stop_group(group)
        await asyncio.sleep(10.0)
        loop.resume_group(group)
        await asyncio.wait(tasks)
        return ours, others

    ours, others = run(stopped(), seed=seed)
    assert others == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert ours == [1.0, 11.5, 12.5, 13.5, 14.5, 15.5]


def test_what_a_group_makes_belongs_to_it() -> None:
    async def made() -> list[str]:
        loop, group = virtual(), ProcessGroup("g")

        async def inner() -> None: ...

        async def outer() -> list[Any]:
            async with asyncio.TaskGroup() as tasks:
                return [asyncio.current_task(), tasks.create_task(inner()), asyncio.ensure_future(inner())]

        tasks = await loop.start_in(group, outer(), "outer")
        await asyncio.sleep(1)
        return [str(task.group) for task in tasks]

    assert run(made()) == ["g", "g", "g"]


# What it refuses


async def a_thread() -> None:
    await asyncio.to_thread(print)


async def a_socket() -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def a_server() -> None:
    await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)


async def a_program() -> None:
    await asyncio.create_subprocess_exec("true")


async def a_name() -> None:
    await asyncio.get_running_loop().getaddrinfo("localhost", 1)


async def a_signal() -> None:
    asyncio.get_running_loop().add_signal_handler(15, print)


@pytest.mark.parametrize(
    ("reaches_out", "for_what"),
    [
        (a_thread, "threads"),
        (a_socket, "sockets"),
        (a_server, "sockets"),
        (a_program, "subprocesses"),
        (a_name, "sockets"),
        (a_signal, "signals"),
    ],
)
def test_there_is_no_outside(reaches_out: Callable[[], Coroutine[Any, Any, None]], for_what: str) -> None:
    with pytest.raises(NotSimulated, match=f"there are no {for_what} in virtual time"):
        run(reaches_out())


def test_other_threads_are_refused() -> None:
    async def called_from_elsewhere() -> list[Exception]:
        loop, refused = virtual(), list[Exception]()

        def call() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except NotSimulated as error:
                refused.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        return refused

    assert len(run(called_from_elsewhere())) == 1


async def waits_for_ever(what: asyncio.Event) -> None:
    await what.wait()


def test_a_deadlock_names_who_waits_and_where() -> None:
    async def stuck() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(waits_for_ever(asyncio.Event()), name="the one that waits")

    with pytest.raises(Deadlock, match=r"the one that waits waits in waits_for_ever \(.*test_loop\.py:\d+\)"):
        run(stuck())


def test_a_livelock_names_who_is_busy() -> None:
    async def busy() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match=r"turns, and no time has passed\n.*busy \(.*test_loop.py:\d+\)"):
        run(busy())


def test_tasks_left_behind_are_an_error() -> None:
    async def leave() -> None:
        left = asyncio.create_task(asyncio.sleep(10), name="left")
        assert not left.done()

    with pytest.raises(RuntimeError, match="tasks left behind:\n  left waits in sleep"):
        run(leave())
