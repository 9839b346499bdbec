"""Where a binding stands, as it is told: granted, in flight, proven, by cluster; and why it waits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.works import Work
from kedge.plan.aligning.binding import BindingInput, plan_binding
from kedge.plan.aligning.binding_story import (
    BindingStory,
    Share,
    binding_line,
    cluster_line,
    explained_binding,
    tell_binding,
)
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.state import State
from plan.aligning.test_binding import deployed, deployment, seen, work

WAITS = "at most 2 of 10 pods may be unavailable, and 1 may be extra: b holds that until new pods there are available"


def told(found: BindingInput, **meta: Any) -> BindingStory:
    spec = msgspec.to_builtins(found.spec)
    binding = {"metadata": {"name": "demo-deployment", "namespace": "shop", **meta}, "spec": spec}
    return tell_binding(msgspec.convert(binding, ResourceBinding), found)


def under_way(*, updated: int = 0, seq: int | None = None, **given: Any) -> BindingInput:
    """The second release, written to b, which has got so far with it."""
    first, works = deployed()
    plan = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    works["b"] = work(plan.manifests["b"], updated=updated, seq=seq)
    return seen(deployment("app:2"), works, ledger=ledger_text(plan.ledger), **given)


def refused(found: Work, why: str) -> Work:
    """A Work that its cluster could not apply."""
    since = "2030-01-01T00:00:00Z"
    condition = {"type": "Applied", "status": "False", "reason": "AppliedFailed", "message": why}
    plain = msgspec.to_builtins(found)
    plain["status"]["conditions"] = [{**condition, "lastTransitionTime": since}]
    return msgspec.convert(plain, Work)


def test_a_binding_at_rest_is_available_and_holds_nothing() -> None:
    first, works = deployed()
    story = told(seen(deployment(), works, ledger=ledger_text(first.ledger)))
    assert (story.state, story.is_done, story.why) == (State.available, True, "")
    assert (story.in_flight, story.total("proven"), story.fewest, story.most) == (Share(), 10, 8, 11)
    assert binding_line(story) == (
        "Deployment shop/demo in 2 clusters: 10 of 10 pods updated, available 10 (>= 8), pods 10 (<= 11);"
        " in flight 0+0 of 2+1, proven 10"
    )


def test_what_may_be_written_now_is_next() -> None:
    first, works = deployed()
    story = told(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    a, b = story.clusters
    assert (a.state, b.state, story.state) == (State.waiting, State.next, State.next)
    assert b.why == "it is written next: 6 replicas, at most 2 unavailable, 1 extra"
    assert a.why == WAITS


def test_one_cluster_rolls_and_the_other_says_whom_it_waits_for() -> None:
    story = told(under_way(updated=2))
    a, b = story.clusters
    assert (b.state, b.granted, b.in_flight, b.proven) == (State.moving, Share(2, 1), Share(2, 1), 2)
    assert (a.state, a.granted, a.in_flight, a.why) == (State.waiting, Share(0, 1), Share(), WAITS)
    assert cluster_line(story, b) == (
        "2 of 6 pods updated, 6 available; granted 2+1, in flight 2+1, proven 2: it replaces its pods with what it"
        " holds: 2 of 6 pods"
    )
    assert story.state is State.moving
    assert explained_binding(story)[1] == (
        "all clusters together keep at least 8 of 10 pods available, and have at most 11"
    )
    assert explained_binding(story)[-1] == (
        "  it may take 2 pods away and add 1; 2 and 1 of that count against the budget until it proves its new pods"
    )


def test_a_write_that_is_not_acknowledged_is_said() -> None:
    story = told(under_way(updated=6, seq=2))
    b = story.clusters[1]
    assert (b.written, b.acknowledged, b.updated, b.proven) == (3, 2, 0, 0)
    assert b.why.startswith("it has not reported yet")
    assert explained_binding(story)[-1] == "  write 3 is not acknowledged: its last report is about write 2"


def test_what_a_cluster_could_not_apply_is_a_failure() -> None:
    first, works = deployed()
    found = works["a"]
    assert found is not None
    works["a"] = refused(found, "the cluster serves no Deployment")
    story = told(seen(deployment(), works, ledger=ledger_text(first.ledger)))
    assert story.state is State.failed
    assert story.why == "a: it was not written there: the cluster serves no Deployment"


def test_a_copy_is_told_by_the_health_that_its_cluster_reports() -> None:
    _, works = deployed()
    story = told(seen(deployment(), works, is_divided=False))
    assert not story.is_aligned
    assert binding_line(story) == "Deployment shop/demo, a copy in 2 clusters, 0 of them done"
    assert {one.state for one in story.clusters} == {State.next}  # nobody has said that it is applied
    story = told(seen(deployment(), {"a": refused(work(deployment()), "no"), "b": works["b"]}, is_divided=False))
    assert cluster_line(story, story.clusters[0]) == "failed: it was not written there: no"


@pytest.mark.parametrize(
    ("found", "state", "why"),
    [
        (seen(None, {"a": None}), State.failed, "there is no Deployment shop/demo"),
        (seen(deployment(), {"a": None}, is_deleting=True), State.leaving, "it is being deleted, and its pods with it"),
        (seen(deployment(), {"a": None}), State.failed, "the cluster b does not exist"),
        (
            seen(deployment(), {"a": None, "b": None}, ledger="?"),
            State.failed,
            "the ledger of the alignment cannot be read: JSON is malformed: invalid character (byte 0)",
        ),
    ],
)
def test_what_keeps_a_binding_from_being_aligned_at_all(found: BindingInput, state: State, why: str) -> None:
    story = told(found)
    assert (story.state, story.why, story.is_done) == (state, why, False)


def test_a_binding_that_is_scheduled_to_no_cluster_waits() -> None:
    empty = msgspec.structs.replace(seen(deployment(), {}).spec, clusters=())
    assert told(seen(deployment(), {}, spec=empty)).why == "it is scheduled to no cluster"


def test_programs_get_the_sums_as_well() -> None:
    data = told(under_way(updated=2)).as_json()
    assert (data["in_flight"], data["proven"]) == ({"unavailable": 2, "surge": 1}, 2)
    assert data["done"] is False
