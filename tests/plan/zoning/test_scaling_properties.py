"""What holds of every group, however odd its StatefulSets are."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.plan.zoning.leader import leader_of
from kedge.plan.zoning.mirror import write_backs
from kedge.plan.zoning.replicas import ScalingPlan, plan
from kedge.plan.zoning.scaling import (
    PASSES_BY_ITSELF,
    Reason,
    ReferenceProblem,
    ReferenceScale,
    ScaleCode,
    Scaling,
    force_replicas,
    replicas_of,
)
from kedge.plan.zoning.scaling_text import step_text, wait_text
from plan.zoning.scaled_sets import MIRRORS, NOW, TEMPLATE, URL, prepared, stamp, zone

LETTERS = "abcd"
MOMENTS = st.sampled_from(
    [
        "",
        "odd",
        stamp(NOW),
        stamp(NOW - timedelta(hours=11)),
        stamp(NOW - timedelta(hours=13)),
        stamp(NOW + timedelta(hours=1)),
    ]
)
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        zones.DOWNSCALE_LEADER: st.sampled_from(["", "odd", *(f"ingester-zone-{letter}" for letter in LETTERS)]),
        zones.FORCE_REPLICAS: st.sampled_from(["", "-1", "0", "4", "odd"]),
        zones.UPSCALE_WHEN_LEADER_READY: st.sampled_from(["true", "false", ""]),
        zones.LAST_DOWNSCALE: MOMENTS,
        zones.MIRROR_NAME: st.sampled_from(["", "replicas"]),
        zones.MIRROR_KIND: st.sampled_from(["", "CustomResource"]),
        zones.MIRROR_API_VERSION: st.sampled_from(["my.group/v1", "a/b/c", ""]),
        zones.DELAYED_DOWNSCALE: st.sampled_from(["1h", "odd", "0", ""]),
        zones.DELAYED_DOWNSCALE_URL: st.sampled_from([URL, "odd", ""]),
    },
)
LABELS = st.fixed_dictionaries({}, optional={zones.MIN_TIME_BETWEEN_ZONES: st.sampled_from(["", "12h", "-1h", "odd"])})
MIRRORING = st.just(dict(MIRRORS))


@st.composite
def zone_sets(draw: st.DrawFn, letter: str) -> StatefulSet:
    annotations = {**draw(st.one_of(st.just({}), MIRRORING)), **draw(ANNOTATIONS)}
    replicas = draw(st.one_of(st.none(), st.integers(0, 6)))
    return zone(letter, replicas, ready=draw(st.integers(0, 6)), annotations=annotations, labels=draw(LABELS))


@st.composite
def groups(draw: st.DrawFn) -> Scaling:
    sets = tuple(draw(zone_sets(letter)) for letter in LETTERS[: draw(st.integers(1, 4))])
    scale = draw(
        st.one_of(st.just(ReferenceProblem("no")), st.builds(ReferenceScale, st.integers(0, 6), st.integers(0, 6)))
    )
    said = st.dictionaries(st.integers(0, 6), st.sampled_from([0.0, 59.0, 61.0, -10.0])).map(prepared)
    names = st.sampled_from([one.metadata.name for one in sets])
    return Scaling(
        sets, NOW, scales=draw(st.sampled_from([{}, {TEMPLATE: scale}])), answers=draw(st.dictionaries(names, said))
    )


def others_downscaled(scaling: Scaling, name: str) -> list[datetime]:
    stamps = [
        one.metadata.annotations[zones.LAST_DOWNSCALE]
        for one in scaling.sets
        if one.metadata.name != name and zones.LAST_DOWNSCALE in one.metadata.annotations
    ]
    return [datetime.fromisoformat(text) for text in stamps]


@given(groups())
def test_a_step_is_to_what_its_source_says_and_never_below_it(scaling: Scaling) -> None:
    found = plan(scaling)
    if (step := found.step) is None:
        return
    target = next(one for one in scaling.sets if one.metadata.name == step.name)
    assert step.current == replicas_of(target) != step.replicas
    if step.reason is Reason.leader:
        leader = next(one for one in scaling.sets if one.metadata.name == leader_of(target))
        assert step.replicas == replicas_of(leader)
    elif step.reason is Reason.reference:
        scale = scaling.scales[TEMPLATE]
        assert isinstance(scale, ReferenceScale)
        assert step.replicas >= scale.wanted if step.is_down else step.replicas == scale.wanted
    else:
        forced = force_replicas(target)
        assert forced is not None
        assert step.replicas >= forced if step.is_down else step.replicas == forced


@given(groups())
def test_a_follower_is_never_scaled_down_before_the_time(scaling: Scaling) -> None:
    step = plan(scaling).step
    if step is not None and step.is_down and step.reason is Reason.leader:
        assert all(NOW - moment > timedelta(hours=12) for moment in others_downscaled(scaling, step.name))


@given(groups())
def test_a_set_that_has_something_wrong_is_not_scaled(scaling: Scaling) -> None:
    found = plan(scaling)
    wrong = {wait.unit for wait in found.waits if wait.code != ScaleCode.force_invalid}
    assert found.step is None or found.step.name not in wrong
    assert found.ask is None or found.ask.name not in wrong
    assert found.step is None or found.ask is None


@given(groups(), st.data())
def test_what_is_wrong_with_one_set_takes_no_step_from_the_others(scaling: Scaling, data: st.DataObject) -> None:
    odd = zone(
        "0", 1, annotations=data.draw(st.sampled_from([{zones.DOWNSCALE_LEADER: "x"}, {zones.MIRROR_NAME: "x"}]))
    )
    with_odd = plan(Scaling((odd, *scaling.sets), NOW, scales=scaling.scales, answers=scaling.answers))
    alone = plan(scaling)
    assert (with_odd.step, with_odd.ask) == (alone.step, alone.ask)


@given(groups())
def test_the_order_in_which_sets_are_given_does_not_matter(scaling: Scaling) -> None:
    turned = Scaling(scaling.sets[::-1], NOW, scales=scaling.scales, answers=scaling.answers)
    assert plan(turned) == plan(scaling)
    assert write_backs(turned, {}) == write_backs(scaling, {})


@given(groups())
def test_everything_can_be_said(scaling: Scaling) -> None:
    found: ScalingPlan = plan(scaling)
    assert all(wait_text(wait) for wait in found.waits)
    assert found.step is None or step_text(found.step)
    assert found.look_again is None or found.look_again > NOW
    assert set(ScaleCode) > PASSES_BY_ITSELF
