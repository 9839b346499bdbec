"""Revisions: each state of a component or an Application under a name with a running number, `web-v3`.

A state that equals the newest one is no new revision, so that looking at it twice, or from two processes, makes none.
Numbers only grow. The name follows from what exists: whoever creates the same name second fails, and looks again.

An Application may also name the revision of a component itself. Under one name there is always one state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.apps import ControllerRevision
from kedge.api.oam.applications import ApplicationRevision
from kedge.api.oam.components import Component, LatestRevision
from kedge.api.oam.keys import COMPONENT_OF_REVISION
from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, text
from kedge.plan.oam.refused import OamRefused

LONGEST_NAME: Final = 63
"""Of a revision: its name is the value of a label."""
_NUMBER: Final = re.compile(r"-v([1-9][0-9]{0,17})")
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


class Revision(Struct, frozen=True, order=True):
    """One state of something."""

    number: int
    name: str
    hash: str

    @property
    def latest(self) -> LatestRevision:
        """As a status names it."""
        return LatestRevision(name=self.name, revision=self.number, revision_hash=self.hash)


class Found(Struct, frozen=True):
    """The revision that a state has."""

    revision: Revision
    is_new: bool
    """Whether it has to be created."""


def component_hash(spec: Object) -> str:
    """The hash of what a component says (its `spec`)."""
    return digest({name: value for name, value in spec.items() if name in ("workload", "parameters") and value})


def application_hash(spec: Object) -> str:
    """The hash of what an Application says. How it is rolled out counts for nothing."""
    return digest({name: value for name, value in spec.items() if name != "rolloutPlan"})


def revision_number(name: str, of: str) -> int | None:
    """The number in the name of a revision of this component or Application; None if it is none."""
    found = _NUMBER.fullmatch(name.removeprefix(of)) if name.startswith(of) else None
    return int(found.group(1)) if found is not None else None


def application_of(name: str) -> str:
    """The Application, or component, whose revision this is by its name; empty if that does not say."""
    of = name.rpartition("-v")[0]
    return of if revision_number(name, of) is not None else ""


def revision_name(of: str, number: int) -> str:
    """The name of a revision. Refuses one that is too long."""
    name = f"{of}-v{number}"
    if len(name) > LONGEST_NAME:
        raise OamRefused(f"the name {of} is too long: its revision {name} may have at most {LONGEST_NAME} characters")
    return name


def find_revision(of: str, hash: str, own: Iterable[Revision], taken: Iterable[str] = ()) -> Found:  # noqa: A002
    """The revision of a state, given those that its owner has and the names that are taken by others.

    The newest one if it has the same hash; else a new one, with a number above all.
    """
    known = tuple(own)
    newest = max(known, default=None)
    if newest is not None and newest.hash == hash:
        return Found(newest, is_new=False)
    numbers = [one.number for one in known] + [revision_number(name, of) or 0 for name in taken]
    number = max(numbers, default=0) + 1
    return Found(Revision(number, revision_name(of, number), hash), is_new=True)


def named_revision(
    component: str,
    name: str,
    hash: str,  # noqa: A002
    own: Iterable[Revision],
    among: Iterable[ControllerRevision],
) -> Found:
    """The revision of this name, and new if there is none. Refuses one that keeps something else."""
    if _NAME.fullmatch(name) is None or len(name) > LONGEST_NAME:
        raise OamRefused(
            f"component {component}: its externalRevision {name!r} must be the name of an object, of at most"
            f" {LONGEST_NAME} characters"
        )
    there = next((one for one in among if one.metadata.name == name), None)
    if there is None:
        number = max((one.number for one in own), default=0) + 1
        return Found(Revision(number, name, hash), is_new=True)
    whose = there.metadata.labels.get(COMPONENT_OF_REVISION)
    if whose != component:
        of = f"a revision of the component {whose}" if whose else "no revision of a component"
        raise OamRefused(f"component {component}: its externalRevision {name} is {of}: give this one another name")
    if component_hash(at(there.data, "spec") or {}) != hash:
        raise OamRefused(
            f"component {component}: its externalRevision {name} keeps another state of it already: give this one"
            " another name"
        )
    return Found(Revision(there.revision, name, hash), is_new=False)


def revisions_of_component(component: str, owner: str, among: Iterable[ControllerRevision]) -> tuple[Revision, ...]:
    """The revisions of a component that this owner (by uid) has made."""
    return tuple(
        Revision(number, one.metadata.name, component_hash(at(one.data, "spec") or {}))
        for one in among
        if one.metadata.labels.get(COMPONENT_OF_REVISION) == component
        and any(each.uid == owner for each in one.metadata.owner_references)
        and (number := revision_number(one.metadata.name, component) or one.revision)
    )


def revisions_of_application(application: str, among: Iterable[ApplicationRevision]) -> tuple[Revision, ...]:
    """The revisions of an Application."""
    return tuple(
        Revision(number, one.metadata.name, application_hash(at(one.spec.application, "spec") or {}))
        for one in among
        if at(one.spec.application, "metadata", "name") == application
        and (number := revision_number(one.metadata.name, application)) is not None
    )


def component_revision(component: Object, revision: Revision, owner: Mapping[str, Any]) -> Object:
    """The ControllerRevision that keeps a Component, controlled by `owner`.

    It has a controller because a StatefulSet would take over one that has none, and no label that the pods of a
    component have.
    """
    meta = component["metadata"]
    kept = {
        "apiVersion": Component.resource.api_version,
        "kind": Component.resource.kind,
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "spec": component["spec"],
    }
    return {
        "metadata": {
            "name": revision.name,
            "namespace": meta["namespace"],
            "labels": {COMPONENT_OF_REVISION: meta["name"]},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "revision": revision.number,
        "data": kept,
    }


def component_in(revision: ControllerRevision) -> Object:
    """The Component that a ControllerRevision keeps, in the namespace of the revision.

    Refuses one that keeps none, or one of another namespace: whoever may write here changes nothing there.
    """
    of, found = f"the ControllerRevision {revision.metadata.name}", revision.data
    if not isinstance(found, Mapping) or not isinstance(at(found, "spec", "workload"), Mapping):
        raise OamRefused(f"{of} keeps no Component: its data.spec.workload is missing")
    name = text(found, "metadata", "name")
    if _NAME.fullmatch(name) is None:
        raise OamRefused(f"{of} keeps a Component without a proper name: its data.metadata.name is {name!r}")
    namespace = revision.metadata.namespace
    if text(found, "metadata", "namespace") not in ("", namespace):
        raise OamRefused(
            f"{of} keeps a Component of another namespace than {namespace}: leave data.metadata.namespace out"
        )
    return {**found, "metadata": {"name": name, "namespace": namespace}}
