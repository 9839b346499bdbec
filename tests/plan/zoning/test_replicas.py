"""Which StatefulSet of a group is scaled now, whatever it follows or mirrors."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.plan.zoning.mirror import at_rest, references, write_backs
from kedge.plan.zoning.replicas import ScalingPlan, is_scaled, plan
from kedge.plan.zoning.scaling import (
    Reason,
    Reference,
    ReferenceScale,
    ScaleCode,
    ScaleStep,
    ScalingVerdict,
    force_replicas,
    wait_for,
)
from kedge.plan.zoning.scaling_text import step_text, wait_text
from plan.zoning.scaled_sets import (
    DELAYED,
    MIRRORS,
    NOW,
    TEMPLATE,
    codes,
    follower,
    group,
    steps,
    zone,
)

HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)
READY = {zones.UPSCALE_WHEN_LEADER_READY: "true"}


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


def test_a_follower_is_scaled_before_those_that_mirror_are_looked_at() -> None:
    sets = (zone("a", 2, annotations=MIRRORS), zone("b", 4), follower("c", "b", 3))
    assert steps(plan(group(*sets, scales={TEMPLATE: ReferenceScale(5, 2)}))) == "c=4"


def test_a_step_that_was_refused_lately_lets_the_next_one_go_first() -> None:
    refused = ScalingVerdict(
        waits=(wait_for("ingester-zone-b", ScaleCode.refused, reported="denied"),), until=NOW + HOUR
    )
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


def test_a_follower_with_a_delay_is_scaled_without_asking_its_pods() -> None:
    forced = follower("b", "a", 5, force_replicas="0")
    delayed = replace(forced, metadata=replace(forced.metadata, annotations={**forced.metadata.annotations, **DELAYED}))
    assert steps(plan(group(zone("a", 5), delayed))) == "b=0"


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


def test_a_long_annotation_makes_no_long_sentence() -> None:
    scaled = zone("a", annotations={**MIRRORS, zones.FORCE_REPLICAS: "x" * 100_000})
    (wait,) = plan(group(scaled, scales={TEMPLATE: ReferenceScale(3, 3)})).waits
    assert len(wait_text(wait)) == 1024


def test_a_step_to_the_same_number_is_not_down() -> None:
    assert not ScaleStep("b", 3, 3, Reason.leader, "a").is_down


def test_only_a_leader_or_a_reference_makes_a_set_scaled() -> None:
    assert not is_scaled(zone("a", annotations={**DELAYED, zones.FORCE_REPLICAS: "3"}))
    assert is_scaled(follower("b", "a"))
    assert is_scaled(zone("c", annotations=MIRRORS))


@pytest.mark.parametrize("found", ["follow", "mirror", "ask", "step"])
def test_the_first_of_several_moments_is_the_one_to_look_again_at(found: str) -> None:
    def later(letter: str, hours: int) -> dict[str, ScalingVerdict]:
        return {f"ingester-zone-{letter}": ScalingVerdict(until=NOW + hours * HOUR)}

    mirrors = [zone(letter, 2, annotations=MIRRORS) for letter in "de"]
    last = {
        "follow": follower("f", "a", 4),
        "mirror": follower("f", "a", 4),
        "ask": zone("f", 2, annotations={**MIRRORS, **DELAYED}),
        "step": zone("f", 2, annotations=MIRRORS),
    }[found]
    early = {"follow": later("b", 1), "mirror": later("d", 1)}.get(found, later("d", 1))
    postponed = {**later("b", 2), **later("c", 3), **later("d", 4), **later("e", 5), **early}
    sets = (zone("a", 4), follower("b", "a", 2), follower("c", "a", 2), *mirrors, last)
    scales = {TEMPLATE: ReferenceScale(4, 4)}
    assert plan(group(*sets, scales=scales, postponed=postponed)).look_again == NOW + HOUR


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ScaleCode.refused, "not scaled: no"),
        (ScaleCode.group_unread, "not scaled: the StatefulSets of the group cannot be read: no"),
        (ScaleCode.write_back_failed, "the status of x was not updated: no"),
    ],
)
def test_what_the_server_refuses_is_said_in_a_sentence(code: ScaleCode, text: str) -> None:
    assert wait_text(wait_for("a", code, "x", "no")) == text
