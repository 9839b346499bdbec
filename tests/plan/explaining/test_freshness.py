"""Whether what is told is about the hub as it is now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kedge.api.coordination import Lease, LeaseSpec
from kedge.api.fleet import PINNED
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.resource import Resource
from kedge.api.times import format_micro_time
from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.freshness import (
    against_lease,
    against_placement,
    against_selection,
    needs_selection,
    silent_since,
)
from kedge.plan.explaining.phrases import explained, summary
from kedge.plan.explaining.story import Story
from kedge.plan.selecting.selection import SelectedObject, Selection
from kedge.plan.state import State

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PLACES = (ClusterPlace("cluster-1", State.available, "2", is_up=True),)
DONE = Story("ClusterResourcePlacement", None, "web", State.available, "", "2", PLACES)
WAITING = replace(DONE, state=State.waiting, why="1 of 1 cluster waits")
SELECTED = Selection(
    objects=(SelectedObject(Resource("", "v1", "Namespace", "namespaces", False), None, "shop", "u", "d"),)
)
SILENT = "the hub was not heard from since 2030-01-01T11:59:00Z: what it says may be old"


def test_what_is_selected_as_the_revision_holds_it_is_available() -> None:
    assert against_selection(DONE, SELECTED, SELECTED.digest) is DONE


@pytest.mark.parametrize(
    ("generation", "pinned", "is_done"), [(3, "", True), (4, "", False), (3, "1", False), (4, "1", False)]
)
def test_a_placement_that_was_changed_since_it_was_told_of_is_not_done(
    generation: int, pinned: str, is_done: bool
) -> None:
    meta = ObjectMeta(name="web", generation=generation, annotations={PINNED: pinned} if pinned else {})
    now = ClusterResourcePlacement(metadata=meta, spec=PlacementSpec(resource_selectors=()))
    told = against_placement(replace(DONE, generation=3), now)
    assert told.is_done == is_done
    assert told.why == ("" if is_done else "it was changed, and the hub has not caught up yet")


@pytest.mark.parametrize("held", ["", "other"])
def test_what_has_changed_since_is_not(held: str) -> None:
    told = against_selection(DONE, SELECTED, held)
    why = "what it selects has changed since revision 2, and the hub has not caught up yet"
    assert (told.state, told.is_done, told.why, told.is_unknowable) == (State.moving, False, why, False)
    assert summary(told) == f"revision 2, available on 1 of 1 cluster: {why}"


def test_what_has_changed_since_under_staged_runs_waits_for_one() -> None:
    told = against_selection(replace(DONE, is_external=True), SELECTED, "other")
    assert told.why == "what it selects has changed since revision 2, and no staged update run has brought it yet"


@pytest.mark.parametrize("selection", [Selection(problem="secrets are forbidden"), Selection(pending="not yet")])
def test_what_cannot_be_read_is_no_success(selection: Selection) -> None:
    told = against_selection(DONE, selection, SELECTED.digest)
    assert (told.is_done, told.is_unknowable, told.is_readable) == (False, True, False)
    assert told.why.startswith("it cannot be told whether revision 2 is what is on the hub now: ")


@pytest.mark.parametrize("story", [WAITING, replace(DONE, pinned="2")])
def test_what_is_not_done_or_held_at_a_revision_is_not_held_against_it(story: Story) -> None:
    assert not needs_selection(story)
    assert against_selection(story, SELECTED, "other") is story


def test_a_hub_that_is_not_heard_from_is_no_success() -> None:
    told = against_lease(DONE, NOW - timedelta(minutes=1))
    assert (told.state, told.is_done, told.is_unknowable, told.why) == (State.unknown, False, True, SILENT)
    assert explained(told)[0].endswith(f"revision 2, available on 1 of 1 cluster: {SILENT}")
    assert sum(SILENT in line for line in explained(told)) == 1
    assert against_lease(DONE, None) is DONE


def test_of_what_is_not_done_it_is_said_beside_it() -> None:
    told = against_lease(WAITING, NOW - timedelta(minutes=1))
    assert (told.state, told.why, told.is_unknowable) == (State.waiting, WAITING.why, False)
    assert SILENT in explained(told)


def lease(ago: float, *, holder: str = "me", duration: int | None = 15) -> Lease:
    renewed = format_micro_time(NOW - timedelta(seconds=ago))
    return Lease(spec=LeaseSpec(holder_identity=holder, lease_duration_seconds=duration, renew_time=renewed))


@pytest.mark.parametrize(
    ("found", "since"),
    [
        (None, None),
        (Lease(), None),
        (lease(0), None),
        (lease(15), None),
        (lease(15.1), 15.1),
        (lease(16, duration=None), 16),
        (lease(14, duration=None), None),
        (lease(40, duration=60), None),
        (lease(-15), None),
        (lease(-3600), -3600),
        (lease(1, holder=""), 1),
    ],
)
def test_a_lease_that_is_not_renewed_for_longer_than_it_holds_is_a_silent_hub(
    found: Lease | None, since: float | None
) -> None:
    assert silent_since(found, NOW) == (None if since is None else NOW - timedelta(seconds=since))
