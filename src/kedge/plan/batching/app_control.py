"""App control: how a rollout takes an Application over from its controller, and gives it back. Pure.

While a rollout moves a component, its Application has the component's name in `app.oam.dev/rolling-components`: its
controller then only writes the component's workload frozen, and never scales it. An Application that is brought in
(`app.oam.dev/rollout-template`) belongs to the rollout meanwhile; its controller gets it when the rollout removes that
annotation, after everything else was written.

After a success the target is its controller's alone. After anything else it stays held: else its controller would
finish at once what the rollout did not. An old Application is held until the rollout is taken back, so that nothing
brings back the pods that it lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.oam.keys import CREATING, ROLLING_COMPONENTS, ROLLOUT_TEMPLATE
from kedge.plan.batching.moves import WorkloadRef, Write
from kedge.plan.fields import Object, at, changed, count, text
from kedge.plan.oam.application import names_in
from kedge.plan.oam.revisions import revision_number

_TRUE: Final = "true"


class ControlledApplication(Struct, frozen=True):
    """An Application that a rollout is about, as it was observed."""

    obj: Object
    component: str
    is_target: bool = False
    is_current: bool = False
    """Whether its newest revision is the one that is rolled out."""
    had_pods: bool = False
    """Whether it ran before the rollout."""


class AppOwner(Struct, frozen=True):
    """The rollout that brings an Application in."""

    api_version: str
    kind: str
    name: str
    uid: str


def taken_by(application: Object, owner: AppOwner) -> str:
    """Which other rollout brings this Application in; empty if none does."""
    others = (one for one in _owners(application) if at(one, "controller") is True and text(one, "uid") != owner.uid)
    return next((f"{owner.kind} {text(one, 'name')}" for one in others if text(one, "kind") == owner.kind), "")


def awaits(application: Object, revision: str) -> bool:
    """Whether an Application waits for a rollout to bring it in, and would make this revision next."""
    newest = count(application, "status", "latestRevision", "revision")
    number = revision_number(revision, text(application, "metadata", "name"))
    return _is_template(application) and number == newest + 1


def bring_in(one: ControlledApplication, owner: AppOwner | None = None) -> Write | None:
    """The next write that takes an Application over; None if it is. With an owner it belongs to that.

    What the rollout has to say comes first. Only then the Application is handed to its controller.
    """
    is_template = _is_template(one.obj)
    notes = {ROLLING_COMPONENTS: ",".join(dict.fromkeys((*_rolling(one.obj), one.component)))}
    if is_template and one.is_target:
        notes[CREATING] = _TRUE
    meta: dict[str, Any] = {"annotations": notes}
    if owner is not None and one.is_target and not any(text(ref, "uid") == owner.uid for ref in _owners(one.obj)):
        meta["ownerReferences"] = [*_owners(one.obj), _reference(owner, one.obj)]
    if (write := _write(one.obj, meta)) is not None or not (is_template and one.is_target):
        return write
    return _write(one.obj, {"annotations": {ROLLOUT_TEMPLATE: None}})


def release(one: ControlledApplication, uid: str, *, succeeded: bool, reverted: bool) -> Write | None:
    """The write that gives an Application back to its controller at the end; None if it is."""
    is_free = (succeeded and one.is_current) if one.is_target else (reverted and one.had_pods)
    meta: dict[str, Any] = {"annotations": {}}
    if is_free:
        rest = [name for name in _rolling(one.obj) if name != one.component]
        meta["annotations"][ROLLING_COMPONENTS] = ",".join(rest) or None
    if one.is_target:
        meta["annotations"][CREATING] = None
    meta["ownerReferences"] = [ref for ref in _owners(one.obj) if text(ref, "uid") != uid] or None
    return _write(one.obj, meta)


def _is_template(application: Object) -> bool:
    return text(application, "metadata", "annotations", ROLLOUT_TEMPLATE) == _TRUE


def _rolling(application: Object) -> tuple[str, ...]:
    return names_in(text(application, "metadata", "annotations", ROLLING_COMPONENTS))


def _owners(application: Object) -> list[Mapping[str, Any]]:
    found = at(application, "metadata", "ownerReferences")
    return found if isinstance(found, list) else []


def _reference(owner: AppOwner, application: Object) -> Mapping[str, Any]:
    """It never keeps the rollout from going, nor goes with it while that is under way: a finalizer lets go of it."""
    is_controlled = any(at(one, "controller") is True for one in _owners(application))
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": not is_controlled,
        "blockOwnerDeletion": False,
    }


def _write(application: Object, meta: Mapping[str, Any]) -> Write | None:
    found = application["metadata"]
    patch = changed({"metadata": found}, {"metadata": meta})
    if not patch:
        return None
    ref = WorkloadRef(text(application, "apiVersion"), text(application, "kind"), found["namespace"], found["name"])
    return Write(ref, patch, uid=found["uid"], resource_version=found["resourceVersion"])
