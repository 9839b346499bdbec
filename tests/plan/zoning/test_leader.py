"""How many replicas a follower of a leader gets, and when: the tables."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import zones
from kedge.api.apps import StatefulSet, StatefulSetStatus
from kedge.plan.zoning.replicas import plan
from kedge.plan.zoning.scaling import (
    ReferenceScale,
)
from kedge.plan.zoning.scaling_text import wait_text
from plan.zoning.scaled_sets import (
    MIRRORS,
    NOW,
    TEMPLATE,
    codes,
    downscaled,
    follower,
    group,
    stamp,
    steps,
    zone,
)

HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)
READY = {zones.UPSCALE_WHEN_LEADER_READY: "true"}


def ready_follower(letter: str, leader: str, replicas: int, ready: int | None = None) -> StatefulSet:
    annotations = {zones.DOWNSCALE_LEADER: f"ingester-zone-{leader}", **READY}
    return zone(letter, replicas, ready=ready, annotations=annotations)


@pytest.mark.parametrize(
    ("sets", "step"),
    [
        pytest.param((zone("a", 3),), "", id="no leader"),
        pytest.param((zone("a", 4), follower("b", "a", 2)), "b=4", id="up"),
        pytest.param((zone("a", 4), follower("b", "a", 4)), "", id="equal"),
        pytest.param((zone("a", 5), follower("b", "a", 3), follower("c", "a", 3)), "b=5", id="the first of two"),
        pytest.param((zone("a", 1), follower("b", "a", None)), "", id="equal to what is not set"),
        pytest.param((zone("a", 5), follower("b", "a", 3, force_replicas="3")), "", id="forced, equal"),
        pytest.param((zone("a", 4), follower("b", "a", 2, mirror_name="x")), "b=4", id="half a reference is none"),
        pytest.param((zone("a", 4), follower("b", "a", 2, mirror_kind="X")), "b=4", id="the other half"),
        pytest.param((zone("a", 2), follower("b", "a", 3)), "b=2", id="down, never downscaled"),
        pytest.param((zone("a", 0), follower("b", "a", None)), "b=0", id="replicas that are not set are 1"),
        pytest.param((zone("a", 5), follower("b", "a", 3), follower("c", "b", 3)), "b=5", id="one at a time"),
        pytest.param((zone("a", 5), follower("b", "a", 5), follower("c", "b", 3)), "c=5", id="a chain"),
        pytest.param((zone("a", 3), follower("b", "a", 3, force_replicas="7")), "b=7", id="forced"),
        pytest.param(
            (downscaled("a", 3, HOUR), follower("b", "a", 5, force_replicas="0")), "b=0", id="forced, no min time"
        ),
        pytest.param((zone("a", 3), zone("b", 3, annotations={zones.FORCE_REPLICAS: "7"})), "", id="forced, no leader"),
    ],
)
def test_a_follower_gets_the_replicas_of_its_leader(sets: tuple[StatefulSet, ...], step: str) -> None:
    assert steps(plan(group(*sets))) == step
    assert steps(plan(group(*reversed(sets)))) == step


@pytest.mark.parametrize(
    ("sets", "step", "waiting"),
    [
        ((zone("a", 4, ready=3), ready_follower("b", "a", 2), ready_follower("c", "b", 2)), "", ["b LeaderNotReady"]),
        ((zone("a", 4, ready=4), ready_follower("b", "a", 2), ready_follower("c", "b", 2)), "b=4", []),
        ((zone("a", 4), ready_follower("b", "a", 4, 3), ready_follower("c", "b", 2)), "", ["c LeaderNotReady"]),
        ((zone("a", 4), ready_follower("b", "a", 4, 4), ready_follower("c", "b", 2)), "c=4", []),
        ((zone("a", 4, ready=5), ready_follower("b", "a", 2)), "", ["b LeaderNotReady"]),
        ((zone("a", 2, ready=0), ready_follower("b", "a", 4)), "b=2", []),
        ((zone("a", 4, ready=0), ready_follower("b", "a", 4)), "", []),
        ((zone("a", 4, ready=0), follower("b", "a", 2, upscale_when_leader_ready="yes")), "b=4", []),
    ],
)
def test_an_upscale_waits_for_a_ready_leader_if_asked_to(
    sets: tuple[StatefulSet, ...], step: str, waiting: list[str]
) -> None:
    found = plan(group(*sets))
    assert (steps(found), codes(found)) == (step, waiting)


def test_a_leader_whose_status_is_older_than_its_spec_is_not_ready() -> None:
    status = StatefulSetStatus(observed_generation=1, replicas=1, ready_replicas=1)
    sets = (zone("a", 1, status=status, generation=2), ready_follower("b", "a", 0))
    assert codes(plan(group(*sets))) == ["b LeaderNotReady"]


def test_a_leader_with_a_pod_that_is_not_ready_is_not_ready_whatever_its_status_says() -> None:
    sets = (zone("a", 4, ready=4), ready_follower("b", "a", 2))
    found = plan(group(*sets, ready_pods={"ingester-zone-a": 3}))
    assert codes(found) == ["b LeaderNotReady"]
    assert wait_text(found.waits[0]) == "not scaled up before leader ingester-zone-a is ready: 3 of 4 pods are"
    assert steps(plan(group(*sets, ready_pods={"ingester-zone-a": 4}))) == "b=4"


@pytest.mark.parametrize(
    ("sets", "step", "waiting"),
    [
        pytest.param((zone("a", 2), follower("b", "a", 3)), "b=2", [], id="no history: no label needed"),
        pytest.param((downscaled("a", 2, HOUR), follower("b", "a", 3)), "", ["b MinTimeMissing"], id="no label"),
        pytest.param(
            (downscaled("a", 2, HOUR), follower("b", "a", 3, min_time="")), "", ["b MinTimeInvalid"], id="empty label"
        ),
        pytest.param(
            (downscaled("a", 2, HOUR), follower("b", "a", 3, min_time="invalid")), "", ["b MinTimeInvalid"], id="bad"
        ),
        pytest.param(
            (downscaled("a", 2, HOUR), follower("b", "a", 3, min_time="1d")), "", ["b MinTimeInvalid"], id="Go has no d"
        ),
        pytest.param(
            (downscaled("a", 2, HOUR), follower("b", "a", 3, min_time="-1h")), "", ["b MinTimeInvalid"], id="negative"
        ),
        pytest.param(
            (downscaled("a", 2, HOUR), follower("b", "a", 3, min_time="2562048h")), "", ["b MinTimeInvalid"], id="huge"
        ),
        pytest.param(
            (downscaled("a", 2, 10 * HOUR), follower("b", "a", 3, min_time="12h")),
            "",
            ["b MinTimeBetweenZones"],
            id="10 h",
        ),
        pytest.param((downscaled("a", 2, 14 * HOUR), follower("b", "a", 3, min_time="12h")), "b=2", [], id="14 h"),
        pytest.param((downscaled("a", 2, HOUR), follower("b", "a", 3, min_time="0")), "b=2", [], id="no time"),
        pytest.param((downscaled("a", 3, HOUR), follower("b", "a", 3)), "", [], id="equal: no label needed"),
        pytest.param(
            (downscaled("a", 2, 12 * HOUR), follower("b", "a", 3, min_time="12h")),
            "",
            ["b MinTimeBetweenZones"],
            id="exactly 12 h is not more",
        ),
        pytest.param(
            (downscaled("a", 2, -HOUR), follower("b", "a", 3, min_time="12h")),
            "",
            ["b MinTimeBetweenZones"],
            id="in the future",
        ),
        pytest.param(
            (downscaled("a", 2, 14 * HOUR), follower("b", "a", 3, min_time="12h"), downscaled("c", 9, HOUR)),
            "",
            ["b MinTimeBetweenZones"],
            id="the most recent of several",
        ),
        pytest.param(
            (zone("a", 2), follower("b", "a", 3, last_downscale=stamp(NOW), min_time="12h")),
            "b=2",
            [],
            id="not its own",
        ),
        pytest.param(
            (downscaled("a", 5, HOUR), follower("b", "a", 3, min_time="12h")), "b=5", [], id="upscales do not wait"
        ),
    ],
)
def test_zones_are_scaled_down_a_minimum_time_apart(
    sets: tuple[StatefulSet, ...], step: str, waiting: list[str]
) -> None:
    found = plan(group(*sets))
    assert (steps(found), codes(found)) == (step, waiting)


@pytest.mark.parametrize(
    ("labels", "annotation", "step"),
    [
        pytest.param({}, "12h", "", id="not over"),
        pytest.param({}, "1h", "b=2", id="over"),
        pytest.param({"min_time": "1h"}, "12h", "", id="an annotation counts before a label"),
        pytest.param({"min_time": "12h"}, "", "", id="one without a value does not"),
    ],
)
def test_the_minimum_time_may_be_an_annotation(labels: dict[str, str], annotation: str, step: str) -> None:
    b = follower("b", "a", 3, min_time_between_zones=annotation, **labels)
    found = plan(group(downscaled("a", 2, 10 * HOUR), b))
    assert (steps(found), codes(found)) == (step, [] if step else ["b MinTimeBetweenZones"])
    assert all("12h apart" in wait_text(wait) for wait in found.waits)


def test_the_end_of_the_minimum_time_is_a_moment_to_look_again_at() -> None:
    sets = (downscaled("a", 2, 10 * HOUR), follower("b", "a", 3, min_time="12h"))
    found = plan(group(*sets))
    assert found.look_again == NOW + 2 * HOUR + MS
    assert found.waits[0].numbers == {"seconds": 12 * 3600}
    text = (
        "not scaled down until 2030-01-01T14:00:00Z: ingester-zone-a was scaled down at 2030-01-01T02:00:00Z, 12h apart"
    )
    assert wait_text(found.waits[0]) == text
    assert steps(plan(replace(group(*sets), now=found.look_again))) == "b=2"


@pytest.mark.parametrize("text", ["", "yesterday", "2030-01-01", "2030-01-01T00:00:00", "0001-01-01T00:00:00+10:00"])
def test_a_last_downscale_that_is_no_time_keeps_the_other_zones_from_scaling_down(text: str) -> None:
    sets = (
        zone("a", 2, annotations={zones.LAST_DOWNSCALE: text}),
        follower("b", "a", 3, min_time="12h"),
        follower("c", "a", 1),
    )
    found = plan(group(*sets))
    assert (steps(found), codes(found)) == ("c=2", ["b LastDownscaleInvalid"])
    said = f"can't parse grafana.com/last-downscale annotation of ingester-zone-a: {text!r} is no RFC 3339 time"
    assert wait_text(found.waits[0]) == said


def test_a_last_downscale_at_the_end_of_the_calendar_is_waited_for_without_a_moment() -> None:
    late = zone("a", 2, annotations={zones.LAST_DOWNSCALE: "9999-12-31T23:59:59Z"})
    found = plan(group(late, follower("b", "a", 3, min_time="12h")))
    assert (codes(found), found.look_again) == (["b MinTimeBetweenZones"], None)
    assert wait_text(found.waits[0]).startswith("not scaled down until a time beyond the calendar")


@pytest.mark.parametrize(
    ("sets", "step", "told"),
    [
        (
            (follower("a", "x", 1), zone("b", 4), follower("c", "b", 2)),
            "c=4",
            [
                (
                    "could not find leader for ingester-zone-a using grafana.com/rollout-downscale-leader: "
                    "there is no StatefulSet ingester-zone-x in its rollout group"
                )
            ],
        ),
        (
            (follower("a", "a", 1, force_replicas="5"), zone("b", 4), follower("c", "b", 2)),
            "c=4",
            ["not scaled: annotation grafana.com/rollout-downscale-leader makes ingester-zone-a its own leader"],
        ),
        (
            (follower("a", "b", 1), follower("b", "a", 2), follower("c", "b", 3)),
            "c=2",
            [
                (
                    "not scaled: annotation grafana.com/rollout-downscale-leader leads in a circle: "
                    "ingester-zone-a follows ingester-zone-b follows ingester-zone-a"
                ),
                (
                    "not scaled: annotation grafana.com/rollout-downscale-leader leads in a circle: "
                    "ingester-zone-b follows ingester-zone-a follows ingester-zone-b"
                ),
            ],
        ),
        (
            (
                follower("a", "b", 1),
                follower("b", "c", 2),
                follower("c", "a", 3),
                follower("d", "a", 1),
                follower("e", "d", 4),
            ),
            "e=1",
            [
                (
                    "not scaled: annotation grafana.com/rollout-downscale-leader leads in a circle: "
                    f"ingester-zone-{one} follows ingester-zone-{two} follows ingester-zone-{three} "
                    f"follows ingester-zone-{one}"
                )
                for one, two, three in ("abc", "bca", "cab")
            ],
        ),
        (
            (zone("a", 2), zone("b", 3, annotations={zones.DOWNSCALE_LEADER: "ingester-zone-a", **MIRRORS})),
            "",
            [
                (
                    "not scaled: it follows leader ingester-zone-a and mirrors a reference: remove "
                    "grafana.com/rollout-downscale-leader or grafana.com/rollout-mirror-replicas-from-resource-name"
                )
            ],
        ),
    ],
)
def test_a_leader_that_cannot_be_followed_stops_nobody_else(
    sets: tuple[StatefulSet, ...], step: str, told: list[str]
) -> None:
    found = plan(group(*sets, scales={TEMPLATE: ReferenceScale(9, 9)}))
    assert (steps(found), [wait_text(wait) for wait in found.waits]) == (step, told)


def test_a_follower_without_a_leader_does_not_stop_those_that_mirror() -> None:
    sets = (follower("a", "x", 1), zone("b", 2, annotations=MIRRORS))
    assert steps(plan(group(*sets, scales={TEMPLATE: ReferenceScale(5, 2)}))) == "b=5"


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({}, "missing label grafana.com/min-time-between-zones-downscale on follower"),
        (
            {"min_time": "-1h"},
            "unable to parse label grafana.com/min-time-between-zones-downscale value on follower: '-1h' is negative",
        ),
    ],
)
def test_a_bad_minimum_time_is_said_as_the_peer_says_it(labels: dict[str, str], text: str) -> None:
    (wait,) = plan(group(downscaled("a", 2, HOUR), follower("b", "a", 3, **labels))).waits
    assert wait_text(wait) == text
