"""What ControllerRevisions tell of a workload that is changed in place."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kedge.api.apps import ControllerRevision
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.plan.batching.claims import frozen_record
from kedge.plan.batching.in_place import old_revision
from kedge.plan.batching.moves import Workload
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.set_revisions import manifest_of, with_revisions
from kedge.plan.workloads import template_hash
from kedge.plan.workloads.stateful_sets import StatefulSets
from plan.batching.in_place_worlds import CLAIM, STATUS, StatefulWorld, batch, drive, pod, template

MOVES = PartitionMoves(StatefulSets())
V1, V2 = (template_hash(template(image)) for image in ("web:1", "web:2"))


def revision(
    number: int, image: str, *, owner: str = "u", name: str = "", controller: bool = True
) -> ControllerRevision:
    held = template(image)
    return ControllerRevision(
        metadata=ObjectMeta(
            name=name or f"web-{template_hash(held)}",
            labels={"controller-revision-hash": template_hash(held)},
            owner_references=(
                OwnerReference(api_version="apps/v1", kind="Set", name="web", uid=owner, controller=controller),
            ),
        ),
        revision=number,
        data={"spec": {"template": {**held, "$patch": "replace"}}},
    )


HISTORY = (revision(2, "web:2"), revision(1, "web:1"), revision(9, "web:3", owner="other"))


def frozen(world: StatefulWorld) -> StatefulWorld:
    """A user wrote another template while nothing moved, and the rollout took over."""
    held = {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}
    world.patch({"spec": {"template": template("web:2"), "updateStrategy": held}})
    world.refresh()
    assert drive(world, lambda: MOVES.initialize(world.seen(), STATUS, CLAIM))
    return world


def test_the_newest_revision_is_the_present_one() -> None:
    found = with_revisions(StatefulWorld(3).seen(), HISTORY)
    assert found.target.update_revision == V2
    assert found.sources == ()
    orphan = revision(5, "web:3", controller=False)
    assert with_revisions(StatefulWorld(3).seen(), (*HISTORY, orphan)).target.update_revision == V2
    assert with_revisions(StatefulWorld(3).seen(), ()).target.update_revision == ""


def test_what_is_known_already_is_kept() -> None:
    seen = frozen(StatefulWorld(3)).seen(source="web:0")
    seen = replace(seen, target=replace(seen.target, update_revision="known"))
    assert with_revisions(seen, HISTORY) == seen
    elsewhere = replace(seen, in_place=False)
    assert with_revisions(elsewhere, HISTORY) is elsewhere


def test_the_revision_of_before_is_remembered_and_found() -> None:
    world = frozen(StatefulWorld(3))
    record = frozen_record(world.seen().target)
    assert record is not None
    assert record.revision == V1
    (source,) = with_revisions(world.seen(), HISTORY).sources
    assert source == Workload(world.ref, manifest={"spec": {"template": template("web:1")}}, revision=f"web-{V1}")
    assert with_revisions(world.seen(), HISTORY[:1]).sources == ()


def test_a_template_that_a_user_wrote_is_taken_back() -> None:
    world = frozen(StatefulWorld(3))
    assert drive(world, lambda: MOVES.roll(world.seen(), STATUS, batch(2, 3)))
    assert drive(world, lambda: MOVES.revert(with_revisions(world.seen(), HISTORY), STATUS, batch(2, 3)))
    assert world.held() == {V1: 3}


def test_a_revision_that_holds_nothing_brings_nothing_back() -> None:
    assert manifest_of(ControllerRevision()) == {"spec": {"template": {}}}
    assert manifest_of(revision(1, "web:1")) == {"spec": {"template": template("web:1")}}


def test_the_old_revision_is_that_of_most_old_pods() -> None:
    def workload(*revisions: str, update: str = "new", **status: Any) -> Workload:
        seen = StatefulWorld(0).seen().target
        pods = tuple(pod(f"web-{at}", one) for at, one in enumerate(revisions))
        obj = {**(seen.obj or {}), "status": status}
        return replace(seen, obj=obj, pods=pods, update_revision=update)

    assert old_revision(workload("a", "b", "b", "new", "new", "new")) == "b"
    assert old_revision(workload("new", "")) == "new"
    assert old_revision(workload()) == "new"
    assert old_revision(workload("a", currentRevision="web-a")) == "web-a"
    assert old_revision(workload("a", "", "", update="")) == "a"
    assert old_revision(workload(update="")) == ""
