"""What the verbs of rollouts in batches come to: a patch, nothing to do, or a refusal that says what to do instead."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.keys import ABORT, RETRY
from kedge.api.oam.rollout_plan import RolloutBatch
from kedge.api.oam.rollout_status import BatchState, RollingState, SourceRecord
from kedge.api.oam.rollouts import AnyRollout, Rollout, RolloutTrait
from kedge.plan.batching.rollout_verbs import RolloutVerb, answer_to
from plan.batching.rollout_examples import V1, every_kind, meta, ref, status, trait

_R = RollingState
ROLLING, DONE, FAILED = status(), status(_R.succeeded), status(_R.failed, failure="it was aborted", runs=2)
FREED = {"paused": None, "batchPartition": None, "lastBatchToRollout": None}


@pytest.mark.parametrize(
    ("verb", "rollout", "patch"),
    [
        (RolloutVerb.pause, trait(), {"spec": {"rolloutPlan": {"paused": True}}}),
        (RolloutVerb.resume, trait(paused=True), {"spec": {"rolloutPlan": {"paused": None}}}),
        (RolloutVerb.abort, trait(), {"metadata": {"annotations": {ABORT: "true"}}}),
        (RolloutVerb.retry, trait(FAILED), {"metadata": {"annotations": {RETRY: "run-3", ABORT: None}}}),
    ],
)
def test_a_verb_is_one_patch(verb: RolloutVerb, rollout: RolloutTrait, patch: dict[str, Any]) -> None:
    found = answer_to(verb, rollout)
    assert (found.patch, found.is_refused) == (patch, False)


@pytest.mark.parametrize(
    ("verb", "rollout", "says"),
    [
        (RolloutVerb.pause, trait(paused=True), "RolloutTrait shop/web is paused already"),
        (RolloutVerb.resume, trait(), "RolloutTrait shop/web is not paused"),
        (
            RolloutVerb.resume,
            trait(status(batch=BatchState.ready, message="raise batchPartition"), batch_partition=1),
            "RolloutTrait shop/web is not paused: raise batchPartition",
        ),
        (RolloutVerb.abort, trait(metadata=meta(abort="true")), "RolloutTrait shop/web is aborted already"),
    ],
)
def test_what_is_done_already_changes_nothing(verb: RolloutVerb, rollout: RolloutTrait, says: str) -> None:
    found = answer_to(verb, rollout)
    assert (found.message, found.patch, found.is_refused) == (says, {}, False)


@pytest.mark.parametrize(
    ("verb", "rollout", "says"),
    [
        (RolloutVerb.pause, trait(DONE), "RolloutTrait shop/web has succeeded; nothing moves any more"),
        (RolloutVerb.resume, trait(DONE, paused=True), "has succeeded"),
        (RolloutVerb.abort, trait(FAILED), "has failed: it was aborted; nothing moves any more"),
        (RolloutVerb.retry, trait(DONE), "RolloutTrait shop/web has not failed: has succeeded"),
        (RolloutVerb.retry, trait(), "has not failed: is rolling"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    verb: RolloutVerb, rollout: RolloutTrait, says: str
) -> None:
    found = answer_to(verb, rollout)
    assert found.is_refused
    assert says in found.message
    assert found.patch == {}


@pytest.mark.parametrize("verb", list(RolloutVerb))
def test_a_rollout_that_is_being_deleted_takes_no_verb(verb: RolloutVerb) -> None:
    leaving = replace(meta(), deletion_timestamp=datetime(2026, 3, 1, tzinfo=UTC))
    found = answer_to(verb, trait(FAILED, metadata=leaving))
    assert (found.is_refused, found.message) == (True, "RolloutTrait shop/web is being deleted")


@pytest.mark.parametrize("rollout", every_kind(), ids=lambda one: one.resource.kind)
def test_every_kind_takes_the_verbs(rollout: AnyRollout) -> None:
    name = f"{rollout.resource.kind} shop/web"
    assert answer_to(RolloutVerb.pause, rollout).message.startswith(f"{name} is paused: ")
    assert answer_to(RolloutVerb.abort, rollout).message.startswith(f"{name} is aborted: ")


def test_the_request_to_retry_is_the_same_for_everybody_who_asks_after_the_same_failure() -> None:
    first, second = (answer_to(RolloutVerb.retry, trait(FAILED)) for _ in range(2))
    assert first.patch == second.patch
    later = answer_to(RolloutVerb.retry, trait(status(_R.failed, runs=3, retried="run-3")))
    assert later.patch["metadata"]["annotations"][RETRY] == "run-4"


# Rolling back


@pytest.mark.parametrize("said", [ROLLING, DONE, FAILED])
def test_a_trait_goes_back_to_the_workload_that_ran_before(said: dict[str, Any]) -> None:
    rollout = trait(said, metadata=meta(abort="true") if said is FAILED else None, paused=True, batch_partition=1)
    found = answer_to(RolloutVerb.rollback, rollout)
    assert not found.is_refused, found.message
    target = found.patch["spec"].pop("targetRef")
    assert {key: value for key, value in target.items() if value is not None} == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web-v1",
    }
    assert set(target) > {"uid"}, "a uid of the old target would be another object's"
    assert found.patch == {
        "metadata": {"annotations": {ABORT: None}},
        "spec": {
            "sourceRef": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}],
            "rolloutPlan": FREED,
        },
    }
    assert found.message == (
        "RolloutTrait shop/web goes back to Deployment web-v1, in its batches, and is no longer paused or held by "
        "batchPartition"
    )


def test_revisions_go_back_to_the_last_source() -> None:
    _, by_revision, by_app, _ = every_kind()
    spec = answer_to(RolloutVerb.rollback, by_revision).patch["spec"]
    assert spec == {"targetRevisionName": "web-v1", "sourceRevisionName": "web-v2", "rolloutPlan": FREED}
    spec = answer_to(RolloutVerb.rollback, by_app).patch["spec"]
    assert spec == {"targetAppRevisionName": "shop-v1", "sourceAppRevisionName": "shop-v2", "rolloutPlan": FREED}


NOTHING = "nothing but Deployment web-v1 ran before it, so there is nothing to go back to"
SET = ref("web", "StatefulSet")
EMPTY_V2 = SourceRecord("apps/v1", "Deployment", "web-v2", 0)


@pytest.mark.parametrize(
    ("rollout", "says"),
    [
        # the way back itself: what it moves away from had no pods before the first of both
        (trait(status(sources=(EMPTY_V2,)), target=ref("web-v1"), sources=(ref("web-v2"),)), NOTHING),
        (trait(status(sources=()), target=ref("web-v1"), sources=()), NOTHING),
        (
            trait(status(sources=(V1, replace(V1, name="web-v0", replicas=2)))),
            "Deployment web-v1 and Deployment web-v0 ran before it: set spec.targetRef to the one that is to run",
        ),
        (trait(status(observed_generation=0)), "has not taken note of the last change yet"),
        (trait(rollout_batches=(RolloutBatch(pod_list=("web-1",)),)), "names the pods of its batches"),
        (
            trait(status(sources=()), target=SET, sources=(SET,)),
            "changes StatefulSet web in place, so there is no other workload to go back to: set revertOnDelete",
        ),
        (
            trait(status(_R.failed, sources=()), target=SET, sources=(SET,)),
            "in place, so there is no other workload to go back to: give it its old pod template again",
        ),
        (
            trait(status(sources=(replace(V1, kind="StatefulSet", name="web"),)), target=SET, sources=(SET,)),
            "changes StatefulSet web in place",
        ),
        (
            trait(
                status(sources=(replace(V1, kind="StatefulSet", name="web"),), rollout_original_size=10),
                target=SET,
                sources=(),
            ),
            "changes StatefulSet web in place",
        ),
        (every_kind()[3], "set revertOnDelete and delete the rollout"),
        (every_kind(DONE)[3], "create a copy of Application shop-a and move to that"),
        (every_kind(status(sources=(EMPTY_V2,)))[1], "nothing but revision web-v2 ran before it"),
    ],
)  # fmt: skip
def test_what_cannot_go_back_says_why_and_what_to_do(rollout: AnyRollout, says: str) -> None:
    found = answer_to(RolloutVerb.rollback, rollout)
    assert found.is_refused, found
    assert says in found.message
    assert found.patch == {}


def test_after_the_way_back_from_a_success_a_trait_goes_back_to_that() -> None:
    ran = replace(V1, name="web-v2", replicas=10)
    found = answer_to(RolloutVerb.rollback, trait(status(_R.succeeded, sources=(ran,)), target=ref("web-v1")))
    assert found.message == "RolloutTrait shop/web goes back to Deployment web-v2, in its batches"


@pytest.mark.parametrize(
    ("sources", "target"),
    [
        ((("web-v1", 10), ("web-v2", 0)), "web-v1"),  # to v3, after v1 to v2 was replaced midway
        ((("web-v1", 10), ("web-v2", 10)), "web-v1"),  # in place
        ((("web-v3", 10), ("web-v2", 10)), ""),  # the way back in place
    ],
)
def test_a_revision_goes_back_to_what_ran_before_the_first_of_several_rollouts(
    sources: tuple[tuple[str, int], ...], target: str
) -> None:
    _, rollout, _, _ = every_kind(status(sources=tuple(replace(V1, revision=name, replicas=n) for name, n in sources)))
    assert isinstance(rollout, Rollout)
    third = replace(rollout, spec=replace(rollout.spec, target_revision_name="web-v3"))
    found = answer_to(RolloutVerb.rollback, third)
    assert found.is_refused is not bool(target), found.message
    assert not target or found.patch["spec"]["targetRevisionName"] == target


def test_a_revision_without_a_source_has_nothing_to_go_back_to() -> None:
    _, rollout, _, _ = every_kind()
    first = replace(rollout, status=replace(rollout.status, last_source_revision=""))
    assert "nothing but revision web-v2 ran before it" in answer_to(RolloutVerb.rollback, first).message
