"""What is written for the workload of a component: tables, and what always holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.oam.keys import CLAIM, FROZEN
from kedge.plan.batching.claims import Frozen
from kedge.plan.fields import at, patched, text
from kedge.plan.oam.emission import (
    APPLIED,
    Emission,
    WantedComponent,
    belongs_to,
    emission,
    is_available,
    is_settled,
    live_of_revision,
)
from kedge.plan.oam.refused import OamRefused
from kedge.plan.workloads import Strategy
from plan.oam.objects import DEPLOYMENT, STATEFUL_SET, component

UNNUMBERED = patched(DEPLOYMENT, {"spec": {"replicas": None}})
GAME = {"apiVersion": "example.com/v1", "kind": "Game"}


def wanted(workload: Any = DEPLOYMENT, revision: str = "web-v2", **options: Any) -> WantedComponent:
    given = {"application": "shop", "app_revision": "shop-v2", **options}
    return WantedComponent(component(workload), revision, **given)


def live(name: str = "web", revision: str = "web-v1", workload: Any = DEPLOYMENT, **changes: Any) -> Any:
    """A workload that was written for the component once."""
    replicas = changes.pop("replicas", 3)
    available = changes.pop("available", replicas)
    notes = changes.pop("annotations", {})
    labels = {
        "app.oam.dev/name": changes.pop("application", "shop"),
        "app.oam.dev/component": "web",
        "app.oam.dev/revision": revision,
        "app.oam.dev/appRevision": changes.pop("app_revision", "shop-v2"),
    }
    meta = {"name": name, "namespace": "prod", "labels": labels, "annotations": notes, "generation": 1, **changes}
    counts = dict.fromkeys(("replicas", "availableReplicas", "updatedReplicas", "readyReplicas"), available)
    status = {"observedGeneration": 1, **counts}
    return patched(workload, {"metadata": meta, "spec": {"replicas": replicas}, "status": status})


def settled(of: WantedComponent, name: str = "web", **changes: Any) -> Any:
    """A workload as it is after it was applied."""
    first = emission(of, ()).apply
    stamp = text(first, "metadata", "annotations", APPLIED)
    return live(name, of.revision, annotations={APPLIED: stamp} | changes.pop("annotations", {}), **changes)


# In batches


def test_a_new_deployment_is_made_frozen_under_the_name_of_its_revision() -> None:
    found = emission(wanted(rolled=True), [live("web-v1")])
    assert found.live is None
    assert (at(found.apply, "metadata", "name"), at(found.apply, "spec", "replicas")) == ("web-v2", 0)
    assert at(found.apply, "spec", "paused") is True
    assert (found.remove, found.patch, found.wait) == ((), None, "")


def test_a_workload_at_its_revision_is_left_to_the_rollout() -> None:
    there = live("web-v2", "web-v2", replicas=1)
    assert emission(wanted(rolled=True), [there, live("web-v1")]) == Emission(live=there)


def test_a_stateful_set_is_changed_in_place_and_keeps_its_pods() -> None:
    there = live(workload=STATEFUL_SET, replicas=5)
    found = emission(wanted(STATEFUL_SET, rolled=True, replicas=1), [there])
    assert found.live is there
    assert at(found.apply, "spec", "replicas") == 5
    assert at(found.apply, "spec", "updateStrategy", "rollingUpdate", "partition") == 5
    assert text(found.apply, "metadata", "labels", "app.oam.dev/revision") == "web-v2"


def test_what_is_remembered_can_be_read_by_whoever_gives_it_back() -> None:
    found = emission(wanted(STATEFUL_SET, rolled=True), [live(workload=STATEFUL_SET)])
    record = msgspec.json.decode(text(found.apply, "metadata", "annotations", FROZEN), type=Frozen)
    assert record == Frozen(Strategy())


@pytest.mark.parametrize(
    ("changes", "wait"),
    [
        ({"annotations": {CLAIM: "Rollout/web/u"}}, "Rollout/web/u moves StatefulSet prod/web now"),
        ({"deletionTimestamp": "2030-01-01T00:00:00Z"}, "StatefulSet prod/web is being deleted"),
    ],
)
@pytest.mark.parametrize("rolled", [True, False])
def test_a_workload_that_moves_or_goes_is_not_written(changes: Any, wait: str, rolled: bool) -> None:
    there = live(workload=STATEFUL_SET, **changes)
    assert emission(wanted(STATEFUL_SET, rolled=rolled), [there]) == Emission(live=there, wait=wait)


def test_a_kind_that_nobody_knows_is_left_to_the_rollout_or_applied_as_it_is() -> None:
    assert emission(wanted(GAME, rolled=True), []) == Emission()
    found = emission(wanted(GAME, replicas=3), [])
    assert at(found.apply, "metadata", "name") == "web"
    assert "spec" not in (found.apply or {})


# At once


def test_a_new_workload_is_applied_as_it_is() -> None:
    found = emission(wanted(), [])
    assert (at(found.apply, "metadata", "name"), at(found.apply, "spec", "replicas")) == ("web", 3)
    assert (at(found.apply, "spec", "paused"), found.live) == (None, None)
    assert FROZEN not in (at(found.apply, "metadata", "annotations") or {})


def test_what_was_applied_is_not_applied_again() -> None:
    there = settled(wanted())
    assert emission(wanted(), [there]) == Emission(live=there)


@pytest.mark.parametrize("other", [wanted(revision="web-v3"), wanted(replicas=4), wanted(UNNUMBERED)])
def test_another_revision_or_number_is_applied(other: WantedComponent) -> None:
    found = emission(other, [settled(wanted())])
    assert found.apply is not None


def test_another_revision_of_the_application_alone_changes_a_label() -> None:
    there = settled(wanted(), app_revision="shop-v1")
    patch = {"metadata": {"labels": {"app.oam.dev/appRevision": "shop-v2"}}}
    assert emission(wanted(), [there]) == Emission(patch=patch, live=there)
    assert emission(wanted(app_revision=""), [there]) == Emission(live=there)
    moving = live("web-v2", "web-v2", app_revision="shop-v1", annotations={CLAIM: "x"})
    assert emission(wanted(rolled=True), [moving]) == Emission(live=moving)
    free = live("web-v2", "web-v2", app_revision="shop-v1")
    assert emission(wanted(rolled=True), [free]) == Emission(patch=patch, live=free)


@pytest.mark.parametrize(
    ("of", "there", "replicas"),
    [
        (wanted(), None, 3),
        (wanted(UNNUMBERED), None, None),
        (wanted(replicas=7), None, 7),
        (wanted(replicas=0), None, 0),
        (wanted(), live(replicas=9), 3),  # another revision says another number
        (wanted(UNNUMBERED), live(replicas=9), 9),  # none says any: never back to the default
        (wanted(UNNUMBERED), live(replicas=0), 0),
        (wanted(autoscaled=True), live(replicas=9), 9),
        (wanted(replicas=7), live(replicas=9), 7),
        (wanted(), live(revision="web-v2", replicas=9), 9),  # given back by a rollout with another size
        (wanted(replicas=7), live(revision="web-v2", replicas=9), 7),
    ],
)
def test_how_many_replicas_are_applied(of: WantedComponent, there: Any, replicas: int | None) -> None:
    found = emission(of, [there] if there is not None else [])
    assert at(found.apply, "spec", "replicas") == replicas


def test_the_workload_with_most_pods_goes_on_under_its_name_and_the_others_go_when_it_is_available() -> None:
    among = [live("web-v1", "web-v1", replicas=1), live("web-v3", "web-v3", replicas=4), live("web", "", replicas=0)]
    found = emission(wanted(revision="web-v4"), among)
    assert (found.live, at(found.apply, "metadata", "name"), found.remove) == (among[1], "web-v3", ())
    assert at(found.apply, "spec", "selector", "matchLabels", "kedge.dev/workload") == "web-v3"

    of = wanted(revision="web-v4")
    coming = settled(of, "web-v3", replicas=4, available=2)
    assert emission(of, [among[0], coming, among[2]]).remove == (among[2],)
    there = settled(of, "web-v3", replicas=4)
    assert emission(of, [among[0], there, among[2]]).remove == (among[0], among[2])
    claimed = live("web-v1", "web-v1", annotations={CLAIM: "x"}, replicas=1)
    assert emission(of, [claimed, there]).remove == ()


def test_of_two_with_as_many_pods_the_newer_goes_on() -> None:
    among = [live("web-v10", "web-v10"), live("web-v9", "web-v9")]
    assert emission(wanted(revision="web-v11"), among).live is among[0]
    going = live("web-v10", "web-v10", deletionTimestamp="2030-01-01T00:00:00Z")
    assert emission(wanted(revision="web-v11"), [going, among[1]]).live is among[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (live("a", "web-v9", replicas=2), live("b", "web-v10", replicas=1)),  # most pods
        (live("a", "web-v10"), live("b", "web-v9")),  # the newest
        (live("a", "web-v1"), live("b", "")),  # one that says what it is
        (live("a", "web-v9"), live("b", "web-v10", replicas=9, deletionTimestamp="2030-01-01T00:00:00Z")),
    ],
)
def test_which_of_two_workloads_goes_on(one: Any, other: Any) -> None:
    for among in ([one, other], [other, one]):
        assert emission(wanted(revision="web-v11"), among).live is one


def test_of_several_of_a_kind_that_nobody_knows_the_newest_goes_on() -> None:
    among = [live("a", "web-v2", GAME), live("b", "web-v3", GAME)]
    assert emission(wanted(GAME, revision="web-v4"), among).live is among[1]


def test_of_several_of_the_revision_the_one_with_most_pods_is_rolled_out() -> None:
    few, most = live("web", "web-v2", replicas=1), live("web-v2", "web-v2", replicas=3)
    theirs = live("theirs", "web-v2", application="other", replicas=9)
    for among in ([few, most, theirs], [theirs, most, few]):
        assert live_of_revision(wanted(), among) is most
        assert emission(wanted(rolled=True), among) == Emission(live=most)
    assert live_of_revision(wanted(), [theirs, live("web-v1")]) is None


@pytest.mark.parametrize(
    ("annotations", "settled_now"),
    [({}, True), ({CLAIM: "Rollout/web/u"}, False), ({FROZEN: "{}"}, False), ({CLAIM: "x", FROZEN: "{}"}, False)],
)
def test_a_workload_is_settled_when_nobody_moves_it_or_is_to_begin(annotations: Any, settled_now: bool) -> None:
    assert is_settled(live(annotations=annotations)) is settled_now
    assert is_settled({"metadata": {}}) is True


def test_one_with_pods_left_is_not_without_pods() -> None:
    of = wanted()
    leaving = patched(live("web-v1", replicas=0), {"status": {"replicas": 1}})
    assert emission(of, [settled(of, available=0), leaving]).remove == ()


def test_a_frozen_workload_gets_its_strategy_back_after_its_template() -> None:
    assert FROZEN not in at(emission(wanted(), [live()]).apply, "metadata", "annotations")
    there = live(annotations={FROZEN: "{}"})
    found = emission(wanted(), [there])
    assert text(found.apply, "metadata", "annotations", FROZEN) == "{}"
    applied = settled(wanted(), annotations={FROZEN: "{}"})
    found = emission(wanted(), [applied])
    assert found.apply is None
    assert at(found.patch, "metadata", "annotations") == {FROZEN: None}
    assert at(found.patch, "spec") == {"strategy": {"type": "RollingUpdate", "rollingUpdate": None}, "paused": None}


# Whose it is


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (live("web", application="other"), "exists already and belongs to the Application other: delete it, or give"),
        ({**DEPLOYMENT, "metadata": {"name": "web", "namespace": "prod"}}, "exists already and was made by somebody"),
    ],
)
def test_what_belongs_to_somebody_else_is_refused(there: Any, message: str) -> None:
    with pytest.raises(OamRefused, match=f"component web: Deployment prod/web {message}"):
        emission(wanted(), [there])
    with pytest.raises(OamRefused, match="exists already"):
        emission(wanted(rolled=True), [patched(there, {"metadata": {"name": "web-v2"}})])


def test_another_component_is_somebody_else() -> None:
    assert belongs_to(live(), "shop", "web")
    assert not belongs_to(live(), "shop", "db")
    assert not belongs_to(live(), "", "web")
    assert not belongs_to({}, "", "web")


@pytest.mark.parametrize(
    ("obj", "available"),
    [
        (live(), True),
        (live(available=2), False),
        (patched(live(), {"status": {"updatedReplicas": 1}}), False),
        (patched(live(), {"metadata": {"generation": 2}}), False),
        (live(replicas=0), True),
        (GAME, True),
    ],
)
def test_available_are_all_pods_of_the_present_template(obj: Any, available: bool) -> None:
    assert is_available(obj) is available


names = st.sampled_from(["web", "web-v1", "web-v2", "web-v3"])
lives = st.builds(
    live,
    names,
    st.sampled_from(["web-v1", "web-v2", ""]),
    st.sampled_from([DEPLOYMENT, STATEFUL_SET]),
    replicas=st.integers(0, 5),
    available=st.integers(0, 5),
    application=st.sampled_from(["shop", "other"]),
    annotations=st.sampled_from([{}, {CLAIM: "x"}, {FROZEN: "{}"}]),
)


@given(st.lists(lives, max_size=4, unique_by=lambda one: one["metadata"]["name"]), st.booleans(), st.data())
def test_what_always_holds(among: list[Any], rolled: bool, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([DEPLOYMENT, STATEFUL_SET, UNNUMBERED]))
    of_kind = [one for one in among if one["kind"] == kind["kind"]]
    try:
        found = emission(wanted(kind, rolled=rolled), of_kind)
    except OamRefused:
        assert any(not belongs_to(one, "shop", "web") for one in of_kind)
        return
    written = [found.live, *found.remove] if found.apply or found.patch else list(found.remove)
    for one in written:
        assert one is None or (belongs_to(one, "shop", "web") and CLAIM not in one["metadata"]["annotations"])
    assert found.live not in found.remove
    if rolled:
        assert found.remove == ()
        before = at(found.live, "spec", "replicas") if found.live is not None else 0
        assert found.apply is None or at(found.apply, "spec", "replicas") == before
    if found.live is not None and found.apply is not None:
        assert at(found.apply, "spec", "replicas") is not None


def test_what_was_applied_is_told_by_an_annotation() -> None:
    assert APPLIED == "kedge.dev/applied-hash"
    assert "kedge.dev/applied-hash" in at(emission(wanted(), []).apply, "metadata", "annotations")
