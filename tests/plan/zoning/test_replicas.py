"""Which StatefulSet of a group is scaled now: the tables of following and mirroring."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import zones
from kedge.api.apps import StatefulSet, StatefulSetStatus
from kedge.plan.zoning.mirror import WriteBack, at_rest, references, write_backs
from kedge.plan.zoning.replicas import ScalingPlan, is_scaled, plan
from kedge.plan.zoning.scaling import (
    Reason,
    Reference,
    ReferenceProblem,
    ReferenceScale,
    ScaleCode,
    ScaleStep,
    Verdict,
    force_replicas,
    wait_for,
)
from kedge.plan.zoning.scaling_text import step_text, wait_text
from plan.zoning.scaled_sets import DELAYED, MIRRORS, NOW, TEMPLATE, downscaled, follower, group, prepared, stamp, zone

HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)
READY = {zones.UPSCALE_WHEN_LEADER_READY: "true"}


def steps(found: ScalingPlan) -> str:
    return f"{found.step.name[-1]}={found.step.replicas}" if found.step is not None else ""


def codes(found: ScalingPlan) -> list[str]:
    return [f"{wait.unit[-1]} {wait.code}" for wait in found.waits]


def ready_follower(letter: str, leader: str, replicas: int, ready: int | None = None) -> StatefulSet:
    annotations = {zones.DOWNSCALE_LEADER: f"ingester-zone-{leader}", **READY}
    return zone(letter, replicas, ready=ready, annotations=annotations)


@pytest.mark.parametrize(
    ("sets", "step"),
    [
        pytest.param((zone("a", 3),), "", id="no leader"),
        pytest.param((zone("a", 4), follower("b", "a", 2)), "b=4", id="up"),
        pytest.param((zone("a", 4), follower("b", "a", 4)), "", id="equal"),
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
        ((zone("a", 4, ready=0), follower("b", "a", 2, upscale_when_leader_ready="yes")), "b=4", []),
    ],
)
def test_an_upscale_waits_for_a_ready_leader_if_asked_to(
    sets: tuple[StatefulSet, ...], step: str, waiting: list[str]
) -> None:
    found = plan(group(*sets))
    assert (steps(found), codes(found)) == (step, waiting)


def test_a_leader_whose_status_is_older_than_its_spec_is_not_ready() -> None:
    status = StatefulSetStatus(observed_generation=1, replicas=4, ready_replicas=4)
    sets = (zone("a", 4, status=status, generation=2), ready_follower("b", "a", 2))
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


def test_the_end_of_the_minimum_time_is_a_moment_to_look_again_at() -> None:
    sets = (downscaled("a", 2, 10 * HOUR), follower("b", "a", 3, min_time="12h"))
    found = plan(group(*sets))
    assert found.look_again == NOW + 2 * HOUR + MS
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
    ("text", "number"),
    [
        (None, None),
        *((text, None) for text in ("-1", "invalid", "", " 5", "5.0", "0x5", "1_0", "2147483648", "9" * 5000, "٥")),
        ("5", 5),
        ("+5", 5),
        ("0", 0),
        ("2147483647", 2**31 - 1),
    ],
)
def test_forced_replicas(text: str | None, number: int | None) -> None:
    annotations = {} if text is None else {zones.FORCE_REPLICAS: text}
    assert force_replicas(zone("a", annotations=annotations)) == number
    scaled = zone("a", 3, annotations={**annotations, **MIRRORS})
    told = codes(plan(group(scaled, scales={TEMPLATE: ReferenceScale(3, 3)})))
    assert told == (["a ForceReplicasInvalid"] if text is not None and number is None else [])


@pytest.mark.parametrize(
    ("replicas", "scale", "annotations", "step", "written"),
    [
        pytest.param(2, ReferenceScale(5, 2), {}, "a=5", [5], id="up"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: "false"}, "a=5", [], id="no write-back"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: "bad value"}, "a=5", [], id="no boolean"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: ""}, "a=5", [], id="empty is no boolean"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: "T"}, "a=5", [5], id="T is true"),
        pytest.param(3, ReferenceScale(2, 3), {}, "a=2", [2], id="down"),
        pytest.param(3, ReferenceScale(3, 5), {}, "", [3], id="equal, but the status is not"),
        pytest.param(3, ReferenceScale(3, 3), {}, "", [], id="equal"),
        pytest.param(3, ReferenceProblem("oops"), {}, "", [], id="not known"),
        pytest.param(5, ReferenceScale(10, 5), {zones.FORCE_REPLICAS: "2"}, "a=2", [2], id="forced"),
        pytest.param(2, ReferenceScale(10, 2), {zones.FORCE_REPLICAS: "2"}, "", [], id="forced, equal"),
        pytest.param(2, ReferenceScale(10, 2), {zones.FORCE_REPLICAS: "x"}, "a=10", [10], id="forced, ignored"),
    ],
)
def test_a_mirror_gets_the_replicas_of_its_reference(
    replicas: int,
    scale: ReferenceScale | ReferenceProblem,
    annotations: dict[str, str],
    step: str,
    written: list[int],
) -> None:
    scaling = group(zone("a", replicas, annotations={**MIRRORS, **annotations}), scales={TEMPLATE: scale})
    found = plan(scaling)
    patched = {found.step.name: found.step.replicas} if found.step is not None else {}
    assert (steps(found), [one.replicas for one in write_backs(scaling, patched)]) == (step, written)


@pytest.mark.parametrize(("b", "c", "names"), [(None, "true", "bcd"), ("false", "bad value", "d")])
def test_zones_that_mirror_one_reference_write_back_once(b: str | None, c: str, names: str) -> None:
    def mirrors(letter: str, replicas: int, write_back: str | None = None) -> StatefulSet:
        more = {} if write_back is None else {zones.MIRROR_WRITE_BACK: write_back}
        return zone(letter, replicas, annotations={**MIRRORS, **more})

    scaling = group(
        zone("a", 4), mirrors("b", 5, b), mirrors("c", 5, c), mirrors("d", 2), scales={TEMPLATE: ReferenceScale(5, 2)}
    )
    assert steps(plan(scaling)) == "d=5"
    told = tuple(f"ingester-zone-{letter}" for letter in names)
    assert write_backs(scaling, {"ingester-zone-d": 5}) == (WriteBack(TEMPLATE, 5, told),)


def test_zones_that_differ_tell_their_reference_the_largest_number() -> None:
    scaling = group(
        zone("a", 3, annotations=MIRRORS), zone("b", 5, annotations=MIRRORS), scales={TEMPLATE: ReferenceScale(3, 3)}
    )
    assert write_backs(scaling, {}) == (WriteBack(TEMPLATE, 5, ("ingester-zone-a", "ingester-zone-b")),)
    assert write_backs(replace(scaling, scales={TEMPLATE: ReferenceScale(3, 5)}), {}) == ()


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        (
            {zones.MIRROR_NAME: "replicas"},
            (
                "not scaled: annotation grafana.com/rollout-mirror-replicas-from-resource-kind is missing: set both "
                "grafana.com/rollout-mirror-replicas-from-resource-name and "
                "grafana.com/rollout-mirror-replicas-from-resource-kind, or none"
            ),
        ),
        (
            {zones.MIRROR_KIND: "Deployment", zones.MIRROR_NAME: ""},
            (
                "not scaled: annotation grafana.com/rollout-mirror-replicas-from-resource-name is missing: set both "
                "grafana.com/rollout-mirror-replicas-from-resource-name and "
                "grafana.com/rollout-mirror-replicas-from-resource-kind, or none"
            ),
        ),
        (
            {**MIRRORS, zones.MIRROR_API_VERSION: "a/b/c"},
            (
                "invalid API version in grafana.com/rollout-mirror-replicas-from-resource-api-version annotation: "
                "'a/b/c' has more than one /"
            ),
        ),
        (MIRRORS, "not scaled: the scale of CustomResource.my.group/replicas is not known: it is forbidden"),
    ],
)
def test_a_reference_that_cannot_be_mirrored_scales_nothing_and_stops_nobody_else(
    annotations: dict[str, str], told: str
) -> None:
    other = Reference("apps", "Deployment", "web")
    second = {zones.MIRROR_NAME: "web", zones.MIRROR_KIND: "Deployment", zones.MIRROR_API_VERSION: "apps/v1"}
    scaling = group(
        zone("a", 3, annotations=annotations),
        zone("b", 3, annotations=second),
        scales={TEMPLATE: ReferenceProblem("it is forbidden"), other: ReferenceScale(4, 3)},
    )
    found = plan(scaling)
    assert (steps(found), [wait_text(wait) for wait in found.waits]) == ("b=4", [told])
    assert all(map(is_scaled, scaling.sets))


@pytest.mark.parametrize(
    ("api_version", "group_name"), [("", ""), ("v1", ""), ("/", ""), ("apps/v1", "apps"), ("apps/", "apps")]
)
def test_only_the_group_of_an_api_version_counts(api_version: str, group_name: str) -> None:
    one = zone("a", annotations={**MIRRORS, zones.MIRROR_API_VERSION: api_version})
    assert references(group(one)) == (Reference(group_name, "CustomResource", "replicas"),)


def test_a_follower_is_scaled_before_those_that_mirror_are_looked_at() -> None:
    sets = (zone("a", 2, annotations=MIRRORS), zone("b", 4), follower("c", "b", 3))
    assert steps(plan(group(*sets, scales={TEMPLATE: ReferenceScale(5, 2)}))) == "c=4"


def test_a_step_that_was_refused_lately_lets_the_next_one_go_first() -> None:
    refused = Verdict(waits=(wait_for("ingester-zone-b", ScaleCode.refused, reported="denied"),), until=NOW + HOUR)
    sets = (zone("a", 4), follower("b", "a", 2), follower("c", "a", 2))
    found = plan(group(*sets, postponed={"ingester-zone-b": refused}))
    assert (steps(found), codes(found), found.look_again) == ("c=4", ["b ScalingRefused"], NOW + HOUR)
    settled = plan(group(zone("a", 2), follower("b", "a", 2), postponed={"ingester-zone-b": refused}))
    assert (steps(settled), codes(settled)) == ("", [])


def test_sets_that_are_being_deleted_are_not_scaled() -> None:
    def deleted(one: StatefulSet) -> StatefulSet:
        return replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW))

    sets = (zone("a", 4), deleted(follower("b", "a", 2)), deleted(zone("c", 2, annotations=MIRRORS)))
    scaling = group(*sets, scales={TEMPLATE: ReferenceScale(5, 2)})
    assert plan(scaling) == ScalingPlan()
    assert (references(scaling), write_backs(scaling, {}), at_rest(scaling)) == ((), (), ())


@pytest.mark.parametrize(
    ("replicas", "scale", "answers", "step", "ask", "waiting"),
    [
        pytest.param(5, 3, None, "", 3, [], id="pods are asked first"),
        pytest.param(5, 3, {3: 70, 4: 70}, "a=3", None, [], id="both 70 min ago"),
        pytest.param(5, 3, {3: 30, 4: 0}, "", None, ["a DownscaleDelay"], id="30 min and now"),
        pytest.param(5, 3, {3: 70, 4: 0}, "", None, ["a DownscaleDelay"], id="the last now, the one before 70 min"),
        pytest.param(5, 3, {3: 60, 4: 60}, "a=3", None, [], id="exactly the delay"),
        pytest.param(5, 1, {4: 70, 3: 75, 2: 30, 1: 75}, "a=3", None, [], id="as far as it goes"),
        pytest.param(5, 3, {4: 70}, "", None, ["a PodsNotPrepared"], id="one did not say"),
        pytest.param(2, 5, None, "", 5, [], id="up: pods are told first"),
        pytest.param(2, 5, {}, "a=5", None, [], id="up"),
        pytest.param(3, 3, None, "", None, [], id="equal"),
    ],
)
def test_a_delayed_downscale_goes_as_far_as_the_pods_are_prepared(
    replicas: int, scale: int, answers: dict[int, float] | None, step: str, ask: int | None, waiting: list[str]
) -> None:
    said = {} if answers is None else {"ingester-zone-a": prepared(answers)}
    mirrors = zone("a", replicas, annotations={**MIRRORS, **DELAYED})
    scaling = group(mirrors, scales={TEMPLATE: ReferenceScale(scale, replicas)}, answers=said)
    found = plan(scaling)
    assert (steps(found), codes(found)) == (step, waiting)
    assert (found.ask.replicas if found.ask is not None else None) == ask
    assert at_rest(scaling) == ((mirrors,) if replicas == scale else ())


def test_a_zone_whose_pods_are_not_prepared_lets_the_next_zone_go() -> None:
    annotations = {**MIRRORS, **DELAYED}
    scaling = group(
        zone("a", 5, annotations=annotations),
        zone("b", 5, annotations=annotations),
        scales={TEMPLATE: ReferenceScale(4, 5)},
        answers={"ingester-zone-a": prepared({4: 30}), "ingester-zone-b": prepared({4: 70})},
    )
    found = plan(scaling)
    assert (steps(found), found.look_again) == ("b=4", NOW + timedelta(minutes=30))


def test_a_follower_with_a_delay_is_scaled_without_asking_its_pods() -> None:
    forced = follower("b", "a", 5, force_replicas="0")
    delayed = replace(forced, metadata=replace(forced.metadata, annotations={**forced.metadata.annotations, **DELAYED}))
    assert steps(plan(group(zone("a", 5), delayed))) == "b=0"


def test_a_bad_delay_scales_nothing_either_way_and_says_so_at_rest_too() -> None:
    annotations = {**MIRRORS, **DELAYED, zones.DELAYED_DOWNSCALE: "soon"}
    for wanted in (1, 3, 5):
        scaling = group(zone("a", 3, annotations=annotations), scales={TEMPLATE: ReferenceScale(wanted, 3)})
        assert (steps(plan(scaling)), codes(plan(scaling))) == ("", ["a DelayedDownscaleInvalid"])
        assert at_rest(scaling) == ()


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (ScaleStep("b", 3, 5, Reason.leader, "a"), "scaled up from 3 to 5 replicas to match leader a"),
        (
            ScaleStep("b", 5, 3, Reason.reference, str(Reference("", "Thing", "x"))),
            "scaled down from 5 to 3 replicas to mirror Thing/x",
        ),
        (
            ScaleStep("b", 5, 0, Reason.forced, zones.FORCE_REPLICAS),
            "scaled down from 5 to 0 replicas because of annotation grafana.com/rollout-force-replicas",
        ),
    ],
)
def test_steps_are_said_in_a_sentence(step: ScaleStep, text: str) -> None:
    assert step_text(step) == text
