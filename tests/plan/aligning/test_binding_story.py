"""Where a binding stands, as it is told: granted, in flight, proven, by cluster; and why it waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.works import Work, WorkStatus
from kedge.plan.aligning.binding import BindingInput, plan_binding
from kedge.plan.aligning.binding_story import BindingStory, PodShare, tell_binding
from kedge.plan.aligning.binding_text import binding_line, cluster_line, explained_binding
from kedge.plan.aligning.interpreter import calculate_template_hash as hash_of
from kedge.plan.aligning.interpreter import revised
from kedge.plan.aligning.ledger import Spec
from kedge.plan.aligning.ledger_text import Ledger, ledger_text
from kedge.plan.state import State
from plan.aligning.test_binding import bound, deployed, deployment, seen, work

WAITS = "at most 2 of 10 pods may be unavailable, and 1 may be extra: b holds that until new pods there are available"


def told(found: BindingInput, conditions: Sequence[Any] = (), **meta: Any) -> BindingStory:
    spec = msgspec.to_builtins(found.spec)
    status = {"conditions": conditions}
    binding = {"metadata": {"name": "demo-deployment", "namespace": "shop", **meta}, "spec": spec, "status": status}
    return tell_binding(msgspec.convert(binding, ResourceBinding), found)


def under_way(*, updated: int = 0, seq: int | None = None, **given: Any) -> BindingInput:
    """The second release, written to b, which has got so far with it."""
    first, works = deployed()
    plan = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    works["b"] = work(plan.manifests["b"], updated=updated, seq=seq)
    return seen(deployment("app:2"), works, ledger=ledger_text(plan.ledger), **given)


def applied(found: Work | None, *, status: str = "True", message: str = "") -> Work:
    """A Work that its cluster could apply or not."""
    condition = {"type": "Applied", "status": status, "reason": "x", "message": message}
    plain = msgspec.to_builtins(found)
    plain["status"]["conditions"] = [{**condition, "lastTransitionTime": "2030-01-01T00:00:00Z"}]
    return msgspec.convert(plain, Work)


def refused(found: Work, why: str) -> Work:
    return applied(found, status="False", message=why)


def reporting(found: Work | None, **counts: int) -> Work:
    """A Work whose cluster reports other counts."""
    plain = msgspec.to_builtins(found)
    plain["status"]["manifestStatuses"][0]["status"] |= counts
    return msgspec.convert(plain, Work)


def clone_set(image: str = "app:1", **strategy: Any) -> dict[str, Any]:
    given = deployment(image, updateStrategy={"maxUnavailable": 2, **strategy})
    given["spec"].pop("strategy")
    return {**given, "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}


def test_a_binding_at_rest_is_available_and_holds_nothing() -> None:
    first, works = deployed()
    story = told(seen(deployment(), works, ledger=ledger_text(first.ledger)))
    assert (story.state, story.is_done, story.why) == (State.available, True, "")
    assert (story.in_flight, story.total("proven"), story.fewest, story.most) == (PodShare(), 10, 8, 11)
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
    assert (b.state, b.granted, b.in_flight, b.proven) == (State.moving, PodShare(2, 1), PodShare(2, 1), 2)
    assert (a.state, a.granted, a.in_flight, a.why) == (State.waiting, PodShare(0, 1), PodShare(), WAITS)
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
    story = told(under_way(updated=6, seq=0))
    assert explained_binding(story)[-1] == "  write 3 is not acknowledged: its last report is about none of them"


def test_counts_are_those_of_the_last_report_as_long_as_no_other_template_was_asked_for() -> None:
    first, works = deployed()
    fewer = Spec(9, first.ledger.specs["a"][0].template, 3, 1)
    ledger = Ledger({**first.ledger.specs, "a": (*first.ledger.specs["a"], fewer)})
    works["a"] = work(revised(first.manifests["a"], fewer, {SEQUENCE: "9"}), updated=2, generation=5)
    a = told(seen(deployment(), works, ledger=ledger_text(ledger), spec=bound(a=3, b=6))).clusters[0]
    assert (a.updated, a.acknowledged) == (2, 0)


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


def test_the_first_release_is_next_and_nothing_was_written_before() -> None:
    story = told(seen(deployment(), {"a": None, "b": None}))
    a = story.clusters[0]
    assert (a.state, a.why, a.written) == (State.next, "it is written next: 4 replicas, 1 extra", 0)
    assert cluster_line(story, a).startswith("0 of 4 pods updated, 0 available; granted nothing, in flight 0+0")
    assert explained_binding(story)[0].startswith("ResourceBinding shop/demo-deployment: Deployment shop/demo in 2")
    assert not any(line.startswith("  ") for line in explained_binding(story))
    clones = told(seen(clone_set(), {"a": None, "b": None}))
    assert clones.clusters[0].why == "it is written next: 4 replicas, at most 1 unavailable"


def test_how_many_pods_are_kept_back_is_said() -> None:
    first = plan_binding(seen(clone_set(), {"a": None, "b": None}))
    works: dict[str, Work | None] = {name: work(manifest) for name, manifest in first.manifests.items()}
    story = told(seen(clone_set("app:2", partition=5), works, ledger=ledger_text(first.ledger)))
    assert story.clusters[1].why == "it is written next: 6 replicas, at most 2 unavailable, 4 kept back"


@pytest.mark.parametrize(
    ("counts", "state", "why"),
    [
        ({}, State.available, ""),
        ({"availableReplicas": 3}, State.moving, "3 of 4 pods available"),
        ({"replicas": 5}, State.moving, "4 of 4 pods available"),  # one of them may be an old one
    ],
)
def test_a_cluster_that_has_all_it_was_asked_for_is_available_when_its_pods_are(
    counts: dict[str, int], state: State, why: str
) -> None:
    first, works = deployed()
    works["a"] = reporting(works["a"], **counts)
    a = told(seen(deployment(), works, ledger=ledger_text(first.ledger))).clusters[0]
    assert (a.state, a.why) == (state, why)


def test_of_a_partition_all_pods_have_to_be_available_too() -> None:
    first = plan_binding(seen(clone_set(), {"a": None, "b": None}))
    works: dict[str, Work | None] = {name: work(manifest) for name, manifest in first.manifests.items()}
    works["a"] = reporting(works["a"], availableReplicas=3, updatedAvailableReplicas=4)
    a = told(seen(clone_set(), works, ledger=ledger_text(first.ledger))).clusters[0]
    assert (a.state, a.why) == (State.moving, "3 of 4 pods available")


def test_a_cluster_that_needs_nothing_but_has_not_acknowledged_it_is_moving() -> None:
    first, works = deployed()
    spec = bound(a=4, b=5)
    plan = plan_binding(seen(deployment(), works, ledger=ledger_text(first.ledger), spec=spec))
    b = told(seen(deployment(), works, ledger=ledger_text(plan.ledger), spec=spec)).clusters[1]
    assert (b.state, b.why) == (State.moving, "it has not reported yet that it acts on what was written last")


@pytest.mark.parametrize(
    ("pods", "why"), [(2, "its last 2 pods go"), (1, "its last 1 pod go"), (0, "its last 0 pods go")]
)
def test_a_cluster_that_leaves_says_how_many_pods_it_has_left(pods: int, why: str) -> None:
    first, works = deployed()
    empty = Spec(9, first.ledger.specs["a"][0].template, 0, 0, 1)
    ledger = Ledger({**first.ledger.specs, "a": (empty,)})
    given = work(revised(first.manifests["a"], empty, {SEQUENCE: "9"}))
    works["a"] = reporting(given, alignmentSeq=9, replicas=pods, updatedReplicas=pods, availableReplicas=0)
    a = told(seen(deployment(), works, ledger=ledger_text(ledger), spec=bound(b=6))).clusters[0]
    assert (a.state, a.why, a.goal, a.wanted) == (State.leaving, why, 0, 0)
    stays = told(seen(deployment(), works, ledger=ledger_text(ledger), spec=bound(a=0, b=6))).clusters[0]
    assert stays.state is (State.leaving if pods else State.available)


@pytest.mark.parametrize(
    ("counts", "state"), [({}, State.available), ({"availableReplicas": 3}, State.moving), (None, State.moving)]
)
def test_a_copy_that_is_applied_is_done_when_it_is_healthy(counts: dict[str, int] | None, state: State) -> None:
    copied = plan_binding(seen(deployment(), {"a": None}, is_divided=False, spec=bound(a=10))).manifests["a"]
    found = msgspec.structs.replace(work(copied), status=WorkStatus()) if counts is None else work(copied)
    given = applied(reporting(found, **counts) if counts else found)
    story = told(seen(deployment(), {"a": given}, is_divided=False, spec=bound(a=10)))
    assert story.clusters[0].state is state
    assert explained_binding(story)[1:] == [f"a: {state.value}"]
    assert (story.replicas, story.fewest, story.most, story.budget) == (0, 0, 0, PodShare())


def test_why_nothing_is_scheduled_is_said_as_the_scheduler_says_it() -> None:
    condition = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "no cluster fits"}
    since = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
    found = seen(deployment(), {}, spec=bound())
    spec, meta = msgspec.to_builtins(found.spec), {"name": "demo-deployment", "namespace": "shop"}
    binding = {"metadata": meta, "spec": spec, "status": {"conditions": [{**condition, **since}]}}
    story = tell_binding(msgspec.convert(binding, ResourceBinding), found)
    assert (story.state, story.why) == (State.waiting, "it is scheduled to no cluster: no cluster fits")


def test_a_problem_is_said_in_the_line_of_the_binding() -> None:
    story = told(seen(deployment(), {"a": None}))
    assert binding_line(story).endswith("proven 0: the cluster b does not exist")
    assert "the cluster b does not exist" in explained_binding(story)


def test_a_binding_says_why_only_if_no_cluster_does() -> None:
    story = told(under_way(updated=2))
    assert binding_line(story).endswith("proven 2")
    quiet = msgspec.structs.replace(story.clusters[0], why="")
    assert binding_line(msgspec.structs.replace(story, clusters=(quiet, story.clusters[1]))).endswith("proven 2")
    silent = msgspec.structs.replace(story, clusters=(quiet,), why="it is scheduled to no cluster")
    assert binding_line(silent).endswith(": it is scheduled to no cluster")


def test_that_pods_may_only_be_starting_is_told_if_the_controller_said_so() -> None:
    """It alone knows since when they are there. Otherwise what it writes next is told."""
    budget = {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}
    asked = {"a": (deployment("app:1"), Spec(1, "", 4, 0, 1)), "b": (deployment("app:bad"), Spec(2, "", 2, 1))}
    specs = {name: msgspec.structs.replace(spec, template=hash_of(one)) for name, (one, spec) in asked.items()}
    works: dict[str, Work | None] = {
        name: reporting(work(revised(one, specs[name], {SEQUENCE: str(specs[name].seq)})), availableReplicas=available)
        for (name, (one, _)), available in zip(asked.items(), (3, 0), strict=True)
    }
    ledger = ledger_text(Ledger({name: (spec,) for name, spec in specs.items()}))
    found = seen(deployment("app:2", **budget), works, spec=bound(a=4, b=2), ledger=ledger)
    aligned = {"type": "Aligned", "status": "False", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    before, since = (
        told(found, [{**aligned, "reason": reason}]).clusters[1] for reason in ("BudgetSpent", "StartingPods")
    )
    assert before.why == "it is written next: 2 replicas, at most 1 unavailable"
    assert since.state is State.waiting
    assert since.why.startswith(
        "pods that do not work are given up once those in a and b have had time to become ready"
    )
