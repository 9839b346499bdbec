"""How many replicas one that mirrors a reference gets, and what the reference is told: the tables."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.plan.zoning.mirror import WriteBack, at_rest, references, write_backs
from kedge.plan.zoning.replicas import is_scaled, plan
from kedge.plan.zoning.scaling import (
    Reason,
    Reference,
    ReferenceProblem,
    ReferenceScale,
)
from kedge.plan.zoning.scaling_text import wait_text
from plan.zoning.scaled_sets import (
    DELAYED,
    MIRRORS,
    NOW,
    TEMPLATE,
    codes,
    group,
    prepared,
    steps,
    zone,
)

HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)
READY = {zones.UPSCALE_WHEN_LEADER_READY: "true"}


@pytest.mark.parametrize(
    ("replicas", "scale", "annotations", "step", "written"),
    [
        pytest.param(2, ReferenceScale(5, 2), {}, "a=5", [5], id="up"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: "false"}, "a=5", [], id="no write-back"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: "bad value"}, "a=5", [], id="no boolean"),
        pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: ""}, "a=5", [], id="empty is no boolean"),
        *(
            pytest.param(2, ReferenceScale(5, 2), {zones.MIRROR_WRITE_BACK: text}, "a=5", [5], id=f"{text} is true")
            for text in ("1", "t", "T", "TRUE", "true", "True")
        ),
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
    is_forced = annotations.get(zones.FORCE_REPLICAS, "x") != "x"
    assert found.step is None or found.step.reason is (Reason.forced if is_forced else Reason.reference)
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


def test_a_bad_delay_scales_nothing_either_way_and_says_so_at_rest_too() -> None:
    annotations = {**MIRRORS, **DELAYED, zones.DELAYED_DOWNSCALE: "soon"}
    for wanted in (1, 3, 5):
        scaling = group(zone("a", 3, annotations=annotations), scales={TEMPLATE: ReferenceScale(wanted, 3)})
        assert (steps(plan(scaling)), codes(plan(scaling))) == ("", ["a DelayedDownscaleInvalid"])
        assert at_rest(scaling) == ()


def test_a_bad_delay_of_one_that_mirrors_nothing_is_not_told() -> None:
    odd = {**DELAYED, zones.DELAYED_DOWNSCALE: "soon"}
    follows = {**odd, zones.DOWNSCALE_LEADER: "ingester-zone-a"}
    both = zone("c", annotations={**follows, **MIRRORS})
    assert codes(plan(group(zone("a", annotations=odd), zone("b", annotations=follows)))) == []
    assert codes(plan(group(zone("a"), both))) == ["c LeaderAndReference"]


def test_pods_are_not_told_to_cancel_while_the_reference_is_not_known() -> None:
    mirrors = zone("a", annotations={**MIRRORS, **DELAYED})
    assert at_rest(group(mirrors, scales={TEMPLATE: ReferenceProblem("no")})) == ()
    assert at_rest(group(mirrors)) == ()


def test_references_are_read_in_order_and_each_once() -> None:
    def mirrors(letter: str, name: str) -> StatefulSet:
        return zone(letter, annotations={**MIRRORS, zones.MIRROR_NAME: name})

    found = references(group(mirrors("a", "y"), mirrors("b", "x"), mirrors("c", "y")))
    assert [one.name for one in found] == ["x", "y"]
