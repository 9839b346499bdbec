"""What is said of a rollout in batches: every batch, what it waits for, and since when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.meta import ObjectMeta
from kedge.api.oam.rollout_status import BatchState, HookResult, MetricResult, RollingState
from kedge.api.pods import Pod
from kedge.plan.batching.rollout_story import (
    NOT_NOTICED,
    explained_batch,
    explained_rollout,
    rollout_line,
    tell_rollout,
)
from kedge.plan.state import State
from plan.batching.rollout_examples import NOW, every_kind, meta, status, trait

_R, _B = RollingState, BatchState


def test_every_batch_is_told_with_its_goal_what_is_observed_and_what_it_waits_for() -> None:
    waits = "4 of 5 pods are available (for 40s)"
    assert explained_rollout(tell_rollout(trait()), NOW) == [
        f"RolloutTrait shop/web to Deployment web-v2 is rolling, batch 1 of 3, 4 of 10 pods ready: {waits}",
        "it waits for that since 2026-03-01T11:59:20Z",
        "batch 0: 2 pods, goal 2 of 10, done",
        f"batch 1: 3 pods, goal 5 of 10, 4 ready, waits for its pods and metrics: {waits}",
        "batch 2: 5 pods, goal 10 of 10, not begun: batch 1 comes first",
    ]


@pytest.mark.parametrize(
    ("said", "plan", "state", "word", "batches"),
    [
        (status(), {}, State.moving, "is rolling", "dmw"),
        (status(), {"paused": True}, State.paused, "is paused", "dpw"),
        (status(batch=_B.ready), {"batch_partition": 1}, State.waiting, "is rolling", "ddw"),
        (status(batch=_B.ready), {"last_batch_to_rollout": 1}, State.waiting, "is rolling", "ddw"),
        (status(batch=_B.ready, message=""), {}, State.moving, "is rolling", "ddw"),
        (status(batch=_B.ready), {"batch_partition": 2}, State.moving, "is rolling", "ddw"),
        (status(_R.finalising), {}, State.moving, "is ending", "ddw"),
        (status(_R.succeeded, current_batch=2), {}, State.available, "has succeeded", "ddd"),
        (status(_R.failing), {}, State.failed, "is failing", "dfw"),
        (status(_R.failed), {}, State.failed, "has failed", "dfw"),
        (status(_R.abandoning), {}, State.moving, "gives up its old target", "dmw"),
        (status(_R.deleting), {}, State.leaving, "is being deleted", "dlw"),
        (status(_R.verifying, batches=()), {}, State.waiting, "is being verified", ""),
        (status(_R.locating, batches=(), message=""), {}, State.moving, "looks for its workloads", ""),
        (status(_R.initializing, current_batch=0), {}, State.moving, "takes its workloads over", "mww"),
    ],
)
def test_a_rollout_and_its_batches_have_a_state_in_a_word(
    said: dict[str, Any], plan: dict[str, Any], state: State, word: str, batches: str
) -> None:
    story = tell_rollout(trait(said, **plan))
    assert (story.state, story.word) == (state, word)
    letters = {State.available: "d", State.moving: "m", State.waiting: "w", State.failed: "f"}
    letters |= {State.paused: "p", State.leaving: "l"}
    assert "".join(letters[batch.state] for batch in story.batches) == batches


def test_batches_behind_the_partition_say_how_to_go_on() -> None:
    held = tell_rollout(trait(status(batch=_B.ready, message="batch 1 is the last one"), batch_partition=1))
    assert explained_batch(held, held.batches[1], NOW) == ["batch 1: 3 pods, goal 5 of 10, done"]
    last = "batch 1 is the last one that may roll: raise batchPartition to go on"
    assert explained_batch(held, held.batches[2], NOW) == [f"batch 2: 5 pods, goal 10 of 10, not begun: {last}"]
    assert held.why == "batch 1 is the last one"


def test_a_failure_is_told_with_its_reason_and_what_can_be_done() -> None:
    story = tell_rollout(trait(status(_R.failed, failure="it was aborted", message="")))
    assert (story.has_ended, story.is_done, story.since) == (True, False, None)
    told = explained_rollout(story, NOW)
    assert told[0].endswith("has failed, batch 1 of 3, 4 of 10 pods ready: it was aborted")
    assert told[2] == "batch 1: 3 pods, goal 5 of 10, 4 ready, stopped: it was aborted"
    assert told[3] == "batch 2: 5 pods, goal 10 of 10, not begun: the rollout has failed"
    assert told[-1] == (
        "`kedge retry rollouttrait/web -n shop` starts it again, `kedge rollback rollouttrait/web -n shop` goes back"
    )


def test_a_success_is_told_without_a_reason() -> None:
    story = tell_rollout(trait(status(_R.succeeded, current_batch=2, upgraded_ready_replicas=10, message="old")))
    assert story.is_done
    assert rollout_line(story, NOW) == "has succeeded, batch 2 of 3, 10 of 10 pods ready"


@pytest.mark.parametrize(
    ("said", "metadata"),
    [
        (status(None), meta()),
        (status(_R.succeeded, observed_generation=0), meta()),
        (status(_R.failed), meta(retry="run-1")),
        (status(), meta(abort="true")),
    ],
)
def test_what_the_controller_has_not_taken_note_of_is_not_the_end(said: dict[str, Any], metadata: ObjectMeta) -> None:
    story = tell_rollout(trait(said, metadata=metadata))
    assert (story.state, story.has_ended, story.doubt) == (State.unknown, False, NOT_NOTICED)
    assert NOT_NOTICED in rollout_line(story, NOW)


@pytest.mark.parametrize(
    ("said", "metadata"),
    [
        (status(_R.failed, retried="run-1"), meta(retry="run-1")),
        (status(_R.failed), meta(abort="true")),
        (status(_R.succeeded), meta(abort="true", retry="run-9")),
    ],
)
def test_what_was_taken_note_of_leaves_no_doubt(said: dict[str, Any], metadata: ObjectMeta) -> None:
    story = tell_rollout(trait(said, metadata=metadata))
    assert (story.has_ended, story.doubt) == (True, "")


def test_what_webhooks_and_metrics_said_is_told_with_the_batch() -> None:
    said = status(
        hooks=(HookResult("1", "gate", "Failed", 2, "HTTP 503"),),
        metrics=(
            MetricResult("errors", 1, successful=1, failed=0, value="0.2"),
            MetricResult("errors", 0, successful=3, failed=1, inconclusive=2, message="too slow"),
        ),
    )
    story = tell_rollout(trait(said))
    assert story.batches[1].gates == (
        "webhook gate: Failed after 2 calls: HTTP 503",
        "metric errors: 1 measurement in its range, 0 out of it, the last one 0.2",
    )
    assert story.batches[0].gates == (
        "metric errors: 3 measurements in its range, 1 out of it, 2 without an answer: too slow",
    )
    assert explained_batch(story, story.batches[1], NOW)[1] == "  webhook gate: Failed after 2 calls: HTTP 503"


def test_what_is_wrong_with_pods_is_told_of_the_first_ten() -> None:
    pods = [broken(f"web-v2-x-{number:02}") for number in range(12)]
    story = tell_rollout(trait(), pods)
    assert len(story.troubles) == 11
    assert story.troubles[0].startswith("pod web-v2-x-00: ImagePullBackOff")
    assert story.troubles[-1] == "and 2 more pods"
    assert story.troubles[0] in explained_rollout(story, NOW)


def broken(name: str) -> Pod:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-v2-x", "uid": "2", "controller": True}
    return decoded(
        {
            "metadata": {"name": name, "namespace": "shop", "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "app", "image": "app:bad"}]},
            "status": {"containerStatuses": [{"name": "app", "state": waiting}]},
        }
    )


def decoded(body: dict[str, Any]) -> Pod:
    return msgspec.convert(body, Pod)


def test_every_kind_names_its_target() -> None:
    assert [tell_rollout(one).title for one in every_kind()] == [
        "RolloutTrait shop/web to Deployment web-v2",
        "Rollout shop/web to revision web-v2",
        "AppRollout shop/web to application revision shop-v2",
        "ApplicationDeployment shop/web to Application shop-b",
    ]


def test_a_story_is_data_for_programs() -> None:
    found = tell_rollout(trait()).as_json()
    assert (found["state"], found["done"], found["since"]) == ("moving", False, "2026-03-01T11:59:20Z")
    assert [batch["goal"] for batch in found["batches"]] == [2, 5, 10]
    assert tell_rollout(trait()).batch == "2/3"
    assert tell_rollout(trait(status(batches=()))).batch == ""
