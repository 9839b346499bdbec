"""Clusters that were asked for something and are in no ledger: asked once more, and charged in full till then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.works import Work
from kedge.plan.aligning.adopting import UNSEEN, adopted
from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.binding import BindingPlan, plan_binding
from kedge.plan.aligning.interpreter import calculate_template_hash, sequence_of
from kedge.plan.aligning.ledger import UNKNOWN, Report, Spec
from kedge.plan.aligning.ledger_text import Ledger, ledger_text
from plan.aligning.test_binding import bound, deployed, deployment, seen, strategy_of, work

OWN = {"maxUnavailable": 2, "maxSurge": 1}


def copies() -> dict[str, Work | None]:
    """Each cluster has a copy of the whole workload, and all of its pods."""
    plan = plan_binding(seen(deployment(), {"a": None, "b": None}, is_divided=False))
    return {name: replace(work(one), status=work(one, seq=0).status) for name, one in plan.manifests.items()}


def after(plan: BindingPlan, works: dict[str, Work | None], **given: Any) -> BindingPlan:
    return plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(plan.ledger), **given))


def test_copies_that_are_divided_from_now_on_are_asked_for_the_same_once_more_and_move_when_they_say_so() -> None:
    works, spec = copies(), bound(a=5, b=5)
    plan = plan_binding(seen(deployment("app:2"), works, spec=spec))
    assert {name: strategy_of(one) for name, one in plan.manifests.items()} == dict.fromkeys("ab", ("app:1", 10, OWN))
    assert {name: sequence_of(one) for name, one in plan.manifests.items()} == {"a": UNSEEN + 2, "b": UNSEEN + 4}
    assert [one.code for one in plan.waiting.values()] == [AlignCode.unacknowledged] * 2
    again = after(plan, works, spec=spec)
    assert (again.ledger, again.manifests) == (plan.ledger, plan.manifests)

    one_of_them = {**works, "a": work(plan.manifests["a"])}
    halfway = after(plan, one_of_them, spec=spec)
    assert strategy_of(halfway.manifests["a"])[0] == "app:1"  # the other may take all its pods away yet
    both: dict[str, Work | None] = {name: work(one) for name, one in plan.manifests.items()}
    moved = after(plan, both, spec=spec)
    assert strategy_of(moved.manifests["a"])[0] == "app:2"
    assert moved.alignment is not None
    assert moved.alignment.held.fewest >= 8


def test_a_ledger_that_was_lost_is_made_anew_with_numbers_that_nobody_had() -> None:
    first, works = deployed()
    plan = plan_binding(seen(deployment("app:2"), works))
    assert {name: sequence_of(one) for name, one in first.manifests.items()} == {"a": 2, "b": 1}
    assert {name: [one.seq for one in specs] for name, specs in plan.ledger.specs.items()} == {
        "a": [UNSEEN + 3, UNSEEN + 4],
        "b": [UNSEEN + 5, UNSEEN + 6],
    }
    assert [strategy_of(one)[0] for one in plan.manifests.values()] == ["app:1"] * 2


def test_a_cluster_that_reports_more_than_the_ledger_has_is_asked_once_more() -> None:
    first, works = deployed()
    ahead = {**works, "a": work(first.manifests["a"], seq=9)}
    plan = after(first, ahead)
    assert [one.template for one in plan.ledger.specs["a"]][:1] == [UNKNOWN]
    assert [one.seq for one in plan.ledger.specs["a"]] == [UNSEEN + 10, UNSEEN + 11]
    assert plan.ledger.specs["b"] == first.ledger.specs["b"]  # what the other may take away is not known
    assert plan.waiting["b"].code == AlignCode.budget_spent


def test_a_cluster_that_leaves_at_the_same_time_keeps_its_pods_until_others_have_them() -> None:
    plan = plan_binding(seen(deployment("app:2"), copies(), spec=bound(b=10)))
    assert plan.delete == ()
    assert strategy_of(plan.manifests["a"]) == ("app:1", 10, OWN)


def test_what_is_being_deleted_or_has_nothing_left_is_not_adopted() -> None:
    works = copies()
    assert works["a"] is not None
    leaving = replace(works["a"].metadata, deletion_timestamp=datetime(2030, 1, 1, tzinfo=UTC))
    plan = plan_binding(seen(deployment(), {**works, "a": replace(works["a"], metadata=leaving)}, spec=bound(b=10)))
    assert set(plan.ledger.specs) == {"b"}
    empty = plan_binding(seen(deployment(), {**works, "a": work(deployment(replicas=0))}, spec=bound(b=10)))
    assert (set(empty.ledger.specs), empty.delete) == ({"b"}, ("a",))
    going = replace(work(deployment(replicas=0)), status=work(deployment(replicas=3)).status)
    still = plan_binding(seen(deployment(), {**works, "a": going}, spec=bound(b=10)))
    assert (set(still.ledger.specs), still.delete) == ({"a", "b"}, ())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": 4}, (4, 2, 1, 0)),
        ({"replicas": 8, "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}}}, (8, 2, 0, 0)),
        ({"replicas": 0, "strategy": {"rollingUpdate": {"maxUnavailable": 2, "maxSurge": 0}}}, (0, 1, 0, 0)),
        ({"replicas": None, "strategy": {"type": "Recreate"}}, (1, 1, 0, 0)),
    ],
)
def test_what_it_was_asked_for_is_read_from_its_manifest(spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    manifest = deployment(**spec)
    replicas, unavailable, surge, partition = expected
    assert adopted(Ledger(), {"a": manifest}, {}, most=11).specs["a"] == (
        Spec(UNSEEN + 1, UNKNOWN, 11, 11, 11),
        Spec(UNSEEN + 2, calculate_template_hash(manifest), replicas, unavailable, surge, partition),
    )


def stateful(**spec: Any) -> dict[str, Any]:
    made = deployment()
    return {**made, "kind": "StatefulSet", "spec": {"template": made["spec"]["template"], "replicas": 5, **spec}}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}, (1, 0, 3)),
        ({"type": "OnDelete"}, (5, 0, 0)),
    ],
)
def test_one_that_goes_in_order_is_adopted_too(strategy: dict[str, Any], expected: tuple[int, int, int]) -> None:
    found = adopted(Ledger(), {"a": stateful(updateStrategy=strategy)}, {"a": Report(0, 5)}, most=5).specs["a"][-1]
    assert (found.unavailable, found.surge, found.partition) == expected


def numbered(seq: int, image: str = "app:1", replicas: int = 4) -> dict[str, Any]:
    manifest = deployment(image, replicas=replicas)
    notes = {**manifest["metadata"].get("annotations", {}), SEQUENCE: str(seq)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": notes}}


HASHES = {image: calculate_template_hash(deployment(image)) for image in ("app:1", "app:2")}


def entry(*specs: tuple[int, str]) -> tuple[Spec, ...]:
    return tuple(Spec(seq, HASHES[image], 4, 1) for seq, image in specs)


@pytest.mark.parametrize(
    ("specs", "asked", "reported", "is_known"),
    [
        (entry((4, "app:1")), numbered(4), 4, True),
        (entry((4, "app:1"), (5, "app:2")), numbered(4), 4, True),  # not written yet
        (entry((4, "app:1"), (5, "app:2")), numbered(5, "app:2"), 4, True),  # not acknowledged yet
        (entry((4, "app:1")), numbered(5, "app:2"), 4, False),  # the ledger is of before it was written
        (entry((4, "app:1"), (6, "app:2")), numbered(5, "app:2"), 4, False),  # another one was granted since
        (entry((4, "app:1"), (5, "app:1")), numbered(5, "app:2"), 4, False),  # the same number, given twice
        (entry((6, "app:1")), numbered(5, "app:1"), 0, False),  # granted as if it had no Work
        (entry((4, "app:1")), numbered(4), 5, False),
    ],
)
def test_a_cluster_is_asked_once_more_if_the_ledger_does_not_tell_of_its_work(
    specs: tuple[Spec, ...], asked: dict[str, Any], reported: int, *, is_known: bool
) -> None:
    found = adopted(Ledger({"a": specs}), {"a": asked}, {"a": Report(reported, 4)}, most=11).specs["a"]
    assert (found == specs) is is_known
    if not is_known:
        assert found[0].template == UNKNOWN
        assert found[0].seq > UNSEEN


def test_what_is_asked_once_more_is_what_the_work_says_when_it_is_written() -> None:
    first = adopted(Ledger(), {"a": numbered(4)}, {}, most=11)
    again = adopted(first, {"a": numbered(5, "app:2", replicas=6)}, {}, most=11)
    assert [one.seq for one in again.specs["a"]] == [one.seq for one in first.specs["a"]]
    assert (again.specs["a"][1].template, again.specs["a"][1].replicas) == (HASHES["app:2"], 6)
    written = {"a": numbered(again.specs["a"][1].seq, "app:2", replicas=6)}
    assert adopted(again, written, {"a": Report(5)}, most=11) == again


def test_a_cluster_without_a_work_that_an_older_ledger_tells_of_gets_no_pods_by_it() -> None:
    older = Ledger({"a": entry((4, "app:1")), "b": entry((3, "app:1"))})
    assert set(adopted(older, {"a": numbered(4)}, {"a": Report(4)}, most=11).specs) == {"a", "b"}
    assert set(adopted(older, {"a": numbered(5)}, {"a": Report(5)}, most=11).specs) == {"a"}


def test_a_cloneset_that_is_paused_is_asked_once_more_for_what_it_has_when_it_is_resumed() -> None:
    """While it is paused it has no surge: taken for its strategy, it would take pods away first."""
    strategy = {"type": "InPlaceIfPossible", "maxUnavailable": 0, "maxSurge": 1, "partition": 2, "paused": True}
    manifest = deployment(updateStrategy=strategy, replicas=3)
    manifest |= {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
    _, spec = adopted(Ledger(), {"a": manifest}, {}, 3).specs["a"]
    assert (spec.unavailable, spec.surge, spec.partition) == (0, 1, 2)
