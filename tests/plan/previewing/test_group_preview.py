"""What the moves of pods and the end of a rollout group come to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.meta import ObjectMeta
from kedge.api.pods import ContainerStatus, Pod, PodCondition, PodStatus
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.previewing.group_preview import (
    PodMove,
    PodMoveKind,
    group_preview,
    is_settled,
    measured_pods,
    pod_waves,
    ready_in,
    waits_for_time,
)
from kedge.plan.state import State
from kedge.plan.zoning.group_story import GroupStory, PodStory, ZoneStory
from kedge.plan.zoning.scaling import ScaleCode

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def move(pod: str, at: float, done: float | None, zone: str = "") -> PodMove:
    return PodMove(pod, zone or pod.rpartition("-")[0], PodMoveKind.replaced, at, done)


def zone(state: State = State.available, *waits: Wait, is_scaling: bool = False, why: str = "") -> ZoneStory:
    return ZoneStory("a", state, "r2", 3, 3, 3, 1, why, scaling_waits=waits, is_scaling=is_scaling)


def pod_story(number: int, why: str = "") -> PodStory:
    """A pod of zone a; it is ready if nothing is said of it."""
    return PodStory(f"a-{number}", State.waiting if why else State.available, "r2", True, not why, why)


def story(*zones: ZoneStory) -> GroupStory:
    return GroupStory("ns", "group", State.available, zones)


def wait(code: ScaleCode, until: datetime | None = None) -> Wait:
    return Wait("a", code, {}, (Blocker("b", until=until),))


@pytest.mark.parametrize(
    ("moves", "waves"),
    [
        ([], []),
        ([move("a-0", 0, 5), move("a-1", 0, 5)], [("a", ["a-0", "a-1"], 0, 5)]),
        ([move("a-0", 0, 5), move("a-1", 5, 9)], [("a", ["a-0"], 0, 5), ("a", ["a-1"], 5, 9)]),
        ([move("a-10", 0, 5), move("a-2", 0, 5)], [("a", ["a-2", "a-10"], 0, 5)]),
        ([move("a-0", 0, None), move("a-1", 3, 5)], [("a", ["a-0", "a-1"], 0, None)]),
        ([move("b-0", 0, 5), move("a-0", 0, 5)], [("a", ["a-0"], 0, 5), ("b", ["b-0"], 0, 5)]),
        ([move("a-0", 0, 9), move("a-1", 0, 5)], [("a", ["a-0", "a-1"], 0, 9)]),
        (
            [move("a-0", 0, 5), move("a-1", 0, 9), move("a-2", 5, 10)],
            [("a", ["a-0", "a-1"], 0, 9), ("a", ["a-2"], 5, 10)],
        ),
    ],
)
def test_waves(moves: list[PodMove], waves: list[tuple[str, list[str], float, float | None]]) -> None:
    found = [(wave.zone, [one.pod for one in wave.pods], wave.begins, wave.ends) for wave in pod_waves(moves)]
    assert found == waves


@given(
    st.lists(
        st.builds(
            lambda number, at, took, name: move(f"{name}-{number}", at, None if took is None else at + took),
            st.integers(0, 20),
            st.integers(0, 50),
            st.none() | st.integers(1, 9),
            st.sampled_from("ab"),
        )
    )
)
def test_every_move_is_in_one_wave_of_its_zone(moves: list[PodMove]) -> None:
    waves = pod_waves(moves)
    assert sorted(map(repr, moves)) == sorted(repr(one) for wave in waves for one in wave.pods)
    assert all(one.zone == wave.zone for wave in waves for one in wave.pods)
    assert [wave.begins for wave in waves] == sorted(wave.begins for wave in waves)


@pytest.mark.parametrize(
    ("zones", "settled", "timed"),
    [
        ([zone()], True, False),
        ([zone(State.paused)], False, False),
        ([zone(is_scaling=True)], False, True),
        ([zone(State.available, wait(ScaleCode.leader_missing))], False, False),
        ([zone(State.available, wait(ScaleCode.min_time, NOW))], False, True),
        ([zone(State.available, wait(ScaleCode.force_invalid))], True, False),
        ([zone(), zone(State.paused)], False, False),
        ([zone(), zone(is_scaling=True)], False, True),
    ],
)
def test_where_a_group_stands(zones: list[ZoneStory], settled: bool, timed: bool) -> None:
    assert (is_settled(story(*zones)), waits_for_time(story(*zones))) == (settled, timed)


def test_a_zone_that_stays_says_why() -> None:
    found = group_preview(story(zone(State.paused, why="it is paused")), [move("a-0", 1, None)])
    assert (found.is_done, found.ends, found.last_move) == (False, None, 1)
    assert [(stay.zone, stay.why) for stay in found.stays] == [("a", "it is paused")]


def test_a_group_that_gets_there_ends_with_its_last_move() -> None:
    moves = [move("a-10", 2, None), move("a-1", 0, 9), move("a-2", 2, 7)]
    found = group_preview(story(zone(), zone()), moves)
    assert (found.is_done, found.ends, found.last_move, found.stays) == (True, 9, 9, ())
    assert [one.pod for one in found.moves] == ["a-1", "a-2", "a-10"]
    assert (found.path, found.pods) == ("ns/group", 6)
    assert group_preview(story(zone()), [move("a-0", 8, None), move("a-1", 0, 5)]).ends == 8
    assert group_preview(story(zone()), []).ends == 0


def test_a_preview_for_programs_has_its_waves() -> None:
    found = group_preview(story(zone()), [move("a-0", 0, 5), move("a-1", 5, 9)])
    assert [wave.begins for wave in found.waves] == [0, 5]
    shown = found.as_json()
    assert (shown["name"], len(shown["moves"])) == ("group", 2)
    assert [wave["begins"] for wave in shown["waves"]] == [0, 5]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (replace(zone(State.moving, why="a waits"), pods=(pod_story(0, "is missing"),)), "a waits"),
        (replace(zone(State.moving), pods=(pod_story(0), pod_story(1, "is missing"))), "a-1 is missing"),
        (
            replace(zone(State.moving), pods=tuple(pod_story(number, "is missing") for number in range(3))),
            "a-0 is missing, a-1 is missing and a-2 is missing",
        ),
        (
            replace(zone(State.moving), pods=tuple(pod_story(number, "is missing") for number in range(4))),
            "a-0 is missing, a-1 is missing, a-2 is missing and 1 more",
        ),
        (replace(zone(is_scaling=True, why="all is well"), scaling="is to be scaled"), "is to be scaled"),
        (replace(zone(State.paused, why="it is paused"), scaling="is kept"), "it is paused; is kept"),
    ],
)
def test_what_is_said_of_a_zone_that_stays(given: ZoneStory, why: str) -> None:
    found = group_preview(story(zone(), replace(given, name="b", updated=1)), [])
    assert [(stay.zone, stay.why, stay.outdated, stay.pods) for stay in found.stays] == [("b", why, 2, 3)]


def test_a_problem_of_a_zone_is_told_even_if_it_gets_there() -> None:
    found = group_preview(story(zone(), replace(zone(), name="b", problem="1 counts")), [])
    assert (found.is_done, found.problems) == (True, ("b: 1 counts",))


# How long pods take


def pod(ready_after: float | None, *, restarts: int = 0, age: float = 100.0, reason: str = "", others: int = 0) -> Pod:
    """A pod with one container, and others that never restarted."""
    created = NOW - timedelta(seconds=age)
    since = created + timedelta(seconds=ready_after or 0)
    ready = PodCondition(type="Ready", status="False" if ready_after is None else "True", last_transition_time=since)
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    container = {"name": "c", "ready": ready_after is not None, "state": state}
    statuses = [{**container, "restartCount": count} for count in (restarts, *[0] * others)]
    status = PodStatus(
        phase="Running",
        conditions=(ready,),
        container_statuses=tuple(msgspec.convert(one, ContainerStatus) for one in statuses),
    )
    return Pod(metadata=ObjectMeta(name="a-0", creation_timestamp=created), status=status)


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        (pod(20.0), [20.0]),
        (pod(0.0), [1.0]),
        (pod(None), []),
        (pod(20.0, restarts=1), []),
        (pod(20.0, restarts=1, others=1), []),
    ],
)
def test_how_long_a_pod_took(found: Pod, seconds: list[float]) -> None:
    assert [one.seconds for one in measured_pods([found]).values()] == seconds


@pytest.mark.parametrize(
    ("found", "left"),
    [
        (pod(None, age=5.0), 15.0),
        (pod(None, age=30.0), 0.0),
        (pod(None, age=40.0), 0.0),
        (pod(None, age=41.0), None),
        (pod(None, age=5.0, reason="CrashLoopBackOff"), None),
    ],
)
def test_when_a_pod_that_is_not_ready_is_taken_to_be(found: Pod, left: float | None) -> None:
    assert ready_in(found, 20.0, NOW) == left
