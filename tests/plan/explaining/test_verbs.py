"""What pausing, resuming and unpinning come to: each lifts what it is for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.api.fleet import PAUSED, PINNED
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.plan.explaining.verbs import pause, resume, unpin
from kedge.plan.verbs import VerbAnswer

FREE: dict[str, str] = {}
HELD = {PAUSED: "true"}
BACK = {PINNED: "3"}
BOTH = {**HELD, **BACK}
UNPIN = "rolled back to revision 3: `kedge unpin web` lets it go on to the newest"
TO_NEWEST = "web is no longer rolled back, and goes to the newest, to revision 7"
Verb = Callable[[ClusterResourcePlacement], VerbAnswer]


def newest(placement: ClusterResourcePlacement) -> VerbAnswer:
    return unpin(placement, 7)


@pytest.mark.parametrize(
    ("verb", "annotations", "writes", "says"),
    [
        (pause, FREE, {PAUSED: "true"}, "web is paused: no further cluster moves until `kedge resume web`"),
        (pause, BACK, {PAUSED: "true"}, "web is paused: no further cluster moves until `kedge resume web`"),
        (pause, HELD, None, "web is paused already"),
        (pause, BOTH, None, "web is paused already"),
        (resume, FREE, None, "web is not paused"),
        (resume, {PAUSED: "false"}, None, "web is not paused"),
        (resume, HELD, {PAUSED: None}, "web goes on"),
        (resume, BOTH, {PAUSED: None}, f"web goes on; it is still {UNPIN}"),
        (newest, FREE, None, "web is not rolled back"),
        (newest, HELD, None, "web is not rolled back"),
        (newest, BACK, {PINNED: None}, TO_NEWEST),
        (newest, BOTH, {PINNED: None}, f"{TO_NEWEST}; it is still paused: `kedge resume web` lets it go on"),
    ],
)
def test_a_verb_sees_to_one_annotation(
    verb: Verb, annotations: dict[str, str], writes: dict[str, str | None] | None, says: str
) -> None:
    answer = verb(placement(annotations))
    assert (answer.message, answer.is_refused) == (says, False)
    assert answer.patch == ({} if writes is None else {"metadata": {"annotations": writes}})


def test_a_placement_that_is_rolled_back_and_not_paused_is_not_resumed() -> None:
    """Who knew it to go on to the newest by that is told what does."""
    answer = resume(placement(BACK))
    assert answer == VerbAnswer(f"web is not paused, it is {UNPIN}", is_refused=True)


def placement(annotations: dict[str, str]) -> ClusterResourcePlacement:
    return ClusterResourcePlacement(
        metadata=ObjectMeta(name="web", annotations=annotations), spec=PlacementSpec(resource_selectors=())
    )
