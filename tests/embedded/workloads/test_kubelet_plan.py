"""The life of a pod on a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from embedded.workloads.making import NOW, ago, pod
from kedge.api.pods import ContainerState, ContainerStatus, Pod, Running, Terminated, Waiting
from kedge.embedded.workloads.kubelet_plan import Due, Stage, next_stage, status_after
from kedge.plan.workloads import pods

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": True}
BAD = {"containers": [{"name": "web", "image": "web:bad-2"}]}
LEAVING = {"deletionTimestamp": ago(0)}


def steered(
    found: str = "Running", *, ready: float | None = None, spec: Any = None, meta: Any = None, **words: str
) -> Pod:
    annotations = {f"kedge.dev/{word.replace('_', '-')}": value for word, value in words.items()}
    return pod(phase=found, ready=ready, spec=spec, annotations=annotations, **(meta or {}))


def after(stage: Stage, found: Pod) -> Pod:
    """The pod once its status says what the stage makes of it."""
    status = msgspec.to_builtins(found.status) | status_after(stage, found, NOW, host="172.16.0.1", address="10.64.0.1")
    return msgspec.convert({**msgspec.to_builtins(found), "status": status}, Pod)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(steered("Pending"), Due(Stage.runs), id="it starts at once"),
        pytest.param(steered(""), Due(Stage.runs), id="no phase is Pending"),
        pytest.param(steered("Pending", spec=BAD), Due(Stage.cannot_be_pulled), id="a bad image"),
        pytest.param(steered(), Due(Stage.is_ready, 0.2), id="ready after a while"),
        pytest.param(steered(ready_after="3s"), Due(Stage.is_ready, 3.0), id="ready when told"),
        pytest.param(steered(ready_after="soon"), Due(Stage.is_ready, 0.2), id="a duration that is none"),
        pytest.param(steered(never_ready="true"), None, id="never ready"),
        pytest.param(steered(ready=5), None, id="ready, and nothing to come"),
        pytest.param(steered(ready=5, never_ready="true"), Due(Stage.is_no_longer_ready), id="no longer ready"),
        pytest.param(steered(crash_loop="true"), Due(Stage.crashes), id="crashes"),
        pytest.param(steered(ready=5, crash_loop="true"), Due(Stage.crashes), id="crashes though ready"),
        pytest.param(steered(ready=5, flap_every="4s"), Due(Stage.is_no_longer_ready, 4.0), id="flaps"),
        pytest.param(steered(flap_every="4s"), Due(Stage.is_ready, 0.2), id="and comes back"),
        pytest.param(steered(ready=5, meta={"ownerReferences": [JOB]}), Due(Stage.completes, 0.2), id="a Job's pod"),
        pytest.param(steered("Succeeded"), None, id="over"),
        pytest.param(steered("Failed"), None, id="failed"),
        pytest.param(steered(meta=LEAVING), Due(Stage.goes), id="deleted"),
        pytest.param(steered("Succeeded", meta=LEAVING), Due(Stage.goes), id="deleted when over"),
        pytest.param(steered(delete_after="9s", meta=LEAVING), Due(Stage.goes, 9.0), id="deleted, taking its time"),
        pytest.param(steered(meta={**LEAVING, "finalizers": ["a/b"]}), None, id="deleted, and held"),
    ],
)
def test_what_becomes_of_a_pod(found: Pod, expected: Due | None) -> None:
    assert next_stage(found) == expected


def test_a_pod_that_runs_has_an_address_and_says_since_when() -> None:
    running = after(Stage.runs, steered("Pending"))
    assert (running.status.phase, running.status.pod_ip, running.status.host_ip) == (
        "Running",
        "10.64.0.1",
        "172.16.0.1",
    )
    assert running.status.start_time == NOW
    assert [(one.type, one.status) for one in running.status.conditions] == [
        ("Initialized", "True"),
        ("ContainersReady", "False"),
        ("Ready", "False"),
    ]


def test_a_bad_image_is_told_as_a_back_off() -> None:
    stuck = after(Stage.cannot_be_pulled, steered("Pending", spec=BAD))
    assert stuck.status.phase == "Pending"
    waiting = Waiting(reason="ImagePullBackOff", message="Back-off pulling image web:bad-2")
    assert stuck.status.container_statuses[0].state == ContainerState(waiting=waiting)
    assert next_stage(stuck) is None


def test_a_crash_counts_as_a_restart_and_survives_the_recovery() -> None:
    crashed = after(Stage.crashes, steered(ready=5, crash_loop="true"))
    waiting = crashed.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"
    assert not pods.is_ready(crashed)
    recovered = after(Stage.is_ready, crashed)
    assert (pods.restarts(recovered), pods.is_ready(recovered)) == (1, True)
    ended = Terminated(exit_code=1, reason="Error", started_at=NOW, finished_at=NOW)
    assert recovered.status.container_statuses[0].last_state == ContainerState(terminated=ended)


def changed(image: str, running: str = "web:1") -> Pod:
    """A pod that is ready, with a container that runs another image than it is to run."""
    found = steered(ready=5, spec={"containers": [{"name": "web", "image": image}, {"name": "beside", "image": "b"}]})
    statuses = tuple(ContainerStatus(name=name, image=runs) for name, runs in (("web", running), ("beside", "b")))
    return replace(found, status=replace(found.status, container_statuses=statuses))


def test_a_container_with_a_new_image_restarts_and_its_pod_is_ready_again_later() -> None:
    found = changed("web:2")
    assert next_stage(found) == Due(Stage.restarts)
    restarted = after(Stage.restarts, found)
    assert not pods.is_ready(restarted)
    assert [(one.image, one.restart_count) for one in restarted.status.container_statuses] == [("web:2", 1), ("b", 0)]
    assert next_stage(restarted) == Due(Stage.is_ready, 0.2)
    assert next_stage(after(Stage.is_ready, restarted)) is None


def test_a_container_with_a_new_image_that_is_bad_waits_for_a_good_one() -> None:
    stuck = after(Stage.restarts, changed("web:bad"))
    waiting = stuck.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "ImagePullBackOff"
    assert stuck.status.phase == "Running"
    assert next_stage(stuck) is None
    assert next_stage(changed("web:2", running="web:bad")) == Due(Stage.restarts)


def test_gates_open_when_the_pod_is_ready() -> None:
    gated = steered(spec={"readinessGates": [{"conditionType": "example.com/gate"}]})
    opened = after(Stage.is_ready, gated)
    assert ("example.com/gate", "True") in [(one.type, one.status) for one in opened.status.conditions]


def test_init_containers_are_done_when_a_pod_runs_and_sidecars_stay() -> None:
    spec = {"initContainers": [{"name": "first"}, {"name": "beside", "restartPolicy": "Always"}]}
    first, beside = after(Stage.runs, steered("Pending", spec=spec)).status.init_container_statuses
    assert first.state == ContainerState(
        terminated=Terminated(exit_code=0, reason="Completed", started_at=NOW, finished_at=NOW)
    )
    assert beside.state == ContainerState(running=Running(started_at=NOW))


WORDS = st.fixed_dictionaries(
    {},
    optional={
        "ready_after": st.sampled_from(["0s", "1s", "never"]),
        "never_ready": st.sampled_from(["true", "false"]),
        "crash_loop": st.sampled_from(["true", "false"]),
        "complete_after": st.just("1s"),
    },
)


@given(WORDS, st.sampled_from([None, BAD]), st.booleans())
def test_a_pod_that_does_not_flap_comes_to_rest(words: dict[str, Any], spec: Any, of_a_job: bool) -> None:
    found = steered("Pending", spec=spec, meta={"ownerReferences": [JOB]} if of_a_job else None, **words)
    for _ in range(5):
        due = next_stage(found)
        if due is None:
            break
        found = after(due.stage, found)
    assert next_stage(found) is None
