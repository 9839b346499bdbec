"""What the pods of a CloneSet are made of, what can be changed in place, and which revision is the current one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from embedded.workloads.making import NOW, pod
from kedge.api.apps import ControllerRevision
from kedge.api.kruise import CloneSet
from kedge.embedded.workloads.cloneset_plan import ClonePod, WantedClones
from kedge.embedded.workloads.cloneset_pods import closed_gate, image_changes, new_pod, wanted, with_stuck
from kedge.embedded.workloads.cloneset_status import current_revision
from kedge.embedded.workloads.revisions import content


def template(image: str = "a:1", *others: dict[str, Any], labels: Any = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": image, "ports": [{"containerPort": 80}]}
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [main, *others], **spec}}


def revision(name: str, number: int, held: dict[str, Any]) -> ControllerRevision:
    return msgspec.convert({"metadata": {"name": name}, "revision": number, "data": content(held)}, ControllerRevision)


def clone_set(strategy: Any = None, current: str = "", **spec: Any) -> CloneSet:
    body = {"selector": {"matchLabels": {"app": "web"}}, "updateStrategy": strategy or {}, **spec}
    meta = {"name": "web", "namespace": "shop", "uid": "web"}
    return msgspec.convert({"metadata": meta, "spec": body, "status": {"currentRevision": current}}, CloneSet)


SIDE = {"name": "side", "image": "s:1"}


@pytest.mark.parametrize(
    ("old", "new", "images"),
    [
        (template(), template("a:2"), {"main": "a:2"}),
        (template(), template(), {}),
        (template("a:1", SIDE), template("a:1", {**SIDE, "image": "s:2"}), {"side": "s:2"}),
        (template("a:1", SIDE), template("a:2", {**SIDE, "image": "s:2"}), {"main": "a:2", "side": "s:2"}),
        (template(), template("a:2", SIDE), None),
        (template("a:1", SIDE), template("a:2", {**SIDE, "name": "other"}), None),
        (template(), template("a:2", labels={"app": "web", "tier": "b"}), None),
        (template(), template("a:2", nodeSelector={"a": "b"}), None),
        (
            template(initContainers=[{"name": "i", "image": "i:1"}]),
            template(initContainers=[{"name": "i", "image": "i:2"}]),
            None,
        ),
        ({}, {}, {}),
        ({"spec": None}, {"spec": {"containers": None}}, {}),
    ],
)
def test_only_images_of_containers_change_in_place(old: Any, new: Any, images: Any) -> None:
    assert image_changes(old, new) == images


def test_a_pod_that_may_be_updated_in_place_has_a_gate() -> None:
    made = revision("web-1", 1, template())
    gate = {"conditionType": "InPlaceUpdateReady"}
    assert "readinessGates" not in new_pod(clone_set(), made)["spec"]
    assert new_pod(clone_set({"type": "InPlaceOnly"}), made)["spec"]["readinessGates"] == [gate]
    gated = revision("web-1", 1, template(readinessGates=[gate]))
    assert new_pod(clone_set({"type": "InPlaceIfPossible"}), gated)["spec"]["readinessGates"] == [gate]
    labels = new_pod(clone_set(), made)["metadata"]["labels"]
    assert labels == {"app": "web", "controller-revision-hash": "web-1"}


def test_the_gate_is_closed_and_the_pod_not_ready_before_it_is_updated() -> None:
    said = {one["type"]: one["status"] for one in closed_gate(pod(ready=5), NOW)["conditions"]}
    assert said == {"InPlaceUpdateReady": "False", "Ready": "False"}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({}, WantedClones(10, "a", "b", max_unavailable=2)),
        ({"partition": "41%", "maxSurge": "1%"}, WantedClones(10, "a", "b", 5, 2, 1)),
        ({"maxSurge": 1, "paused": True}, WantedClones(10, "a", "b", 0, 2, 0, updates=False)),
        ({"type": "OnDelete"}, WantedClones(10, "a", "b", 0, 2, 0, updates=False)),
    ],
)
def test_what_a_set_should_be(strategy: Any, expected: WantedClones) -> None:
    assert wanted(clone_set(strategy, replicas=10), "a", "b", partition_rollback=True) == expected


def test_pods_are_stuck_only_in_place_only_and_if_more_than_images_differ() -> None:
    known = {
        "a": revision("a", 1, template("a:1")),
        "b": revision("b", 2, template("a:2")),
        "c": revision("c", 3, template("a:2", SIDE)),
    }
    clones = tuple(ClonePod(name, name) for name in ("a", "b", "c", "gone"))

    def stuck(kind: str, current: str, update: str) -> list[str]:
        found = clone_set({"type": kind})
        given = wanted(found, current, update, partition_rollback=True)
        return [one.name for one in with_stuck(found, clones, given, known) if one.stuck]

    assert stuck("InPlaceOnly", "a", "b") == ["c", "gone"]
    assert stuck("InPlaceOnly", "a", "c") == ["a", "b", "c", "gone"]
    assert stuck("InPlaceIfPossible", "a", "c") == stuck("ReCreate", "a", "c") == []


@pytest.mark.parametrize(
    ("said", "pods", "current"),
    [
        ("a", "a a b", "a"),
        ("a", "b b c", "a"),
        ("a", "c c c", "c"),  # all are updated
        ("a", "c c", "a"),  # but one is missing
        ("", "", "c"),
        ("", "b b a", "a"),  # the status does not say: the oldest that there is
        ("gone", "b b", "b"),
        ("", "c c", "c"),
    ],
)
def test_the_current_revision(said: str, pods: str, current: str) -> None:
    history = [revision(name, number, template()) for number, name in enumerate("abc")]
    clones = [ClonePod(f"p{number}", name) for number, name in enumerate(pods.split())]
    assert current_revision(clone_set(current=said, replicas=3), clones, history, "c") == current
