"""How long pods that do not work are taken to be starting only, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kedge.controllers.align.starting_pods import SECONDS, StartingPods, next_look
from kedge.kube.queue import Key
from kedge.plan.aligning.ledger import Member, Report, Spec
from support.virtual import run

KEY = Key("hub", "shop", "web-deployment")
FIRST = Report(1, pods=3, updated=1, available=2)


def left_after(reports: Sequence[Report], *, every: float, min_ready_seconds: int = 0) -> float:
    """Seconds that pods have left when the last of these has come, one after the other."""

    async def body() -> float:
        starting, template = StartingPods(), {"spec": {"minReadySeconds": min_ready_seconds}}
        for report in reports[:-1]:
            starting.left(KEY, {"a": report}, template)
            await asyncio.sleep(every)
        return starting.left(KEY, {"a": reports[-1]}, template).get("a", 0.0)

    return run(body())


@pytest.mark.parametrize(
    ("reports", "left"),
    [
        pytest.param([FIRST], SECONDS, id="first seen"),
        pytest.param([FIRST, FIRST], SECONDS - 10, id="the same again"),
        pytest.param([FIRST] * 4, 0, id="the same for long enough"),
        pytest.param([FIRST, Report(1, 2, 1, 2)], SECONDS, id="a pod less"),
        pytest.param([FIRST, Report(1, 3, 2, 2)], SECONDS, id="one more is replaced"),
        pytest.param([FIRST, Report(2, 3, 1, 2)], SECONDS, id="it acts on something newer"),
        pytest.param([FIRST, Report(1, 3, 1, 3)], SECONDS, id="one more works"),
        pytest.param([FIRST, Report(1, 3, 1, 1), FIRST], SECONDS - 20, id="one works again"),
    ],
)
def test_pods_have_time_from_when_their_cluster_last_got_on(reports: list[Report], left: float) -> None:
    assert left_after(reports, every=10.0) == pytest.approx(left)


def test_a_pod_that_has_to_be_ready_for_a_while_has_that_time_as_well() -> None:
    assert left_after([FIRST, FIRST], every=10.0, min_ready_seconds=60) == pytest.approx(SECONDS + 50)


def test_a_cluster_whose_number_of_pods_keeps_changing_does_not_keep_others_waiting_for_ever() -> None:
    evicted = [FIRST, Report(1, 2, 1, 2)]
    assert left_after([*(evicted * 15)][:30], every=10.0) == pytest.approx(10)
    assert left_after(evicted * 20, every=10.0) == 0
    assert left_after([*(evicted * 20), Report(2, 3, 1, 2)], every=10.0) == SECONDS  # it is asked for something else
    assert left_after([*(evicted * 20), *([evicted[1]] * 4), FIRST], every=10.0) == SECONDS  # it came to rest


def test_a_binding_that_is_gone_is_forgotten() -> None:
    async def body() -> dict[str, float]:
        starting = StartingPods()
        starting.left(KEY, {"a": FIRST}, {})
        await asyncio.sleep(SECONDS)
        starting.forget(KEY)
        return starting.left(KEY, {"a": FIRST}, {})

    assert run(body()) == {"a": SECONDS}


def test_a_cluster_that_comes_back_has_that_time_anew() -> None:
    async def body() -> dict[str, float]:
        starting = StartingPods()
        starting.left(KEY, {"a": FIRST}, {})
        starting.left(KEY, {}, {})
        await asyncio.sleep(SECONDS)
        return starting.left(KEY, {"a": FIRST}, {})

    assert run(body()) == {"a": SECONDS}


def test_it_is_looked_at_again_when_the_first_of_those_that_do_not_work_has_had_its_time() -> None:
    broken, working = Report(1, 3, 3, 2), Report(1, 3, 3, 3)
    members = [
        Member(name, 3, "v1", (Spec(1, "v1", 3, 1),), report, is_starting=True)
        for name, report in (("a", broken), ("b", broken), ("c", working))
    ]
    assert next_look({"a": 20.0, "b": 10.0, "c": 5.0}, members) == 10.0
    assert next_look({"c": 5.0}, members[2:]) is None
