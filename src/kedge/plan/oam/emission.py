"""Emission: what is written to the API for the workload of one component. Pure.

A component that is rolled out in batches is only written frozen, and only when its revision is another one than the
live workload's: from then on the rollout moves it. One that is not is applied as it is, under the name that its
workload has already; what else runs of it goes when it is available. Nobody writes a workload that a rollout has
claimed, nor one that belongs to somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.oam.keys import APP_REVISION_LABEL, CLAIM, COMPONENT_LABEL, FROZEN, NAME_LABEL
from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, name_of, patched, text
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import revision_number
from kedge.plan.oam.workloads import frozen, handler_of, revision_of, workload_of
from kedge.plan.workloads.handler import Replicas

APPLIED: Final = "kedge.dev/applied-hash"
"""Annotation: the hash of what was applied, so that it is applied again only when it changes."""


class WantedComponent(Struct, frozen=True):
    """One component that is to run."""

    component: Object
    """The Component, as its revision keeps it."""
    revision: str
    application: str = ""
    app_revision: str = ""
    rolled: bool = False
    """Whether it is rolled out in batches."""
    replicas: int | None = None
    """How many replicas its traits ask for."""
    autoscaled: bool = False
    """Whether an autoscaler among its traits sets the replicas."""

    @property
    def name(self) -> str:
        return text(self.component, "metadata", "name")

    def workload(self, *, rolled: bool, name: str = "") -> Object:
        """The workload it asks for."""
        return workload_of(
            self.component,
            revision=self.revision,
            application=self.application,
            app_revision=self.app_revision,
            rolled=rolled,
            name=name,
        )


class Emission(Struct, frozen=True):
    """What to write. Nothing of all: it is as it should be."""

    apply: Object | None = None
    """What to apply; with the uid and resourceVersion of `live`, if there is one."""
    patch: Mapping[str, Any] | None = None
    """A merge patch of `live`."""
    remove: tuple[Object, ...] = ()
    """Workloads that are no longer needed."""
    live: Object | None = None
    """The workload, as it is now."""
    wait: str = ""
    """What has to pass first, in words."""


def emission(wanted: WantedComponent, live: Iterable[Object]) -> Emission:
    """What to write for a component, given the live workloads of its kind that have its name or its labels."""
    found = tuple(live)
    return _rolled(wanted, found) if wanted.rolled else _plain(wanted, found)


def is_claimed(obj: Object | None) -> bool:
    """Whether a rollout moves it now."""
    return bool(claim_of(obj))


def claim_of(obj: Object | None) -> str:
    """The rollout that moves it now; empty if none does."""
    return text(obj, "metadata", "annotations", CLAIM)


def is_settled(obj: Object) -> bool:
    """Whether nobody moves it now, nor is to begin: no rollout has claimed it, and it is not frozen."""
    return not is_claimed(obj) and FROZEN not in (at(obj, "metadata", "annotations") or {})


def is_available(obj: Object) -> bool:
    """Whether all pods that it asks for are available. One of a kind that nobody knows is."""
    counts = _replicas(obj)
    return counts is None or (counts.observed and min(counts.updated, counts.available) >= counts.desired)


def belongs_to(obj: Object, application: str, component: str) -> bool:
    """Whether a live workload is the component's."""
    labels = at(obj, "metadata", "labels") or {}
    return labels.get(NAME_LABEL, "") == application and labels.get(COMPONENT_LABEL) == component


def live_of_revision(wanted: WantedComponent, live: Iterable[Object]) -> Object | None:
    """The workload that is of this revision already, by whatever name; of several, the one with most pods."""
    own = (one for one in live if belongs_to(one, wanted.application, wanted.name))
    same = (one for one in own if revision_of(one) == wanted.revision)
    return max(same, key=lambda one: _by_pods_and_age(wanted, one), default=None)


# In batches


def _rolled(wanted: WantedComponent, live: tuple[Object, ...]) -> Emission:
    manifest = wanted.workload(rolled=True)
    if handler_of(manifest) is None:
        return Emission()  # the rollout itself knows how to bring it in, or says that it does not
    there = live_of_revision(wanted, live) or _checked(wanted, _named(live, manifest))
    if there is None:
        return Emission(apply=frozen(manifest, None))
    if revision_of(there) == wanted.revision:
        return _relabelled(wanted, there)
    if reason := _must_wait(there):
        return Emission(live=there, wait=reason)
    return Emission(apply=frozen(manifest, there), live=there)


# At once


def _plain(wanted: WantedComponent, live: tuple[Object, ...]) -> Emission:
    own = tuple(one for one in live if belongs_to(one, wanted.application, wanted.name))
    there = max(own, key=lambda one: _by_pods_and_age(wanted, one), default=None)
    manifest = wanted.workload(rolled=False, name=text(there, "metadata", "name"))
    if there is None:
        _checked(wanted, _named(live, manifest))
        return Emission(apply=_stamped(wanted, _scaled(wanted, manifest, None)))
    if reason := _must_wait(there):
        return Emission(live=there, wait=reason)
    if revision_of(there) != wanted.revision or text(there, "metadata", "annotations", APPLIED) != _hash(wanted):
        return Emission(apply=_stamped(wanted, _kept_frozen(_scaled(wanted, manifest, there), there)), live=there)
    if FROZEN in (at(there, "metadata", "annotations") or {}):
        return Emission(patch=_unfreeze_patch(manifest), live=there)
    rest = _relabelled(wanted, there)
    others = tuple(one for one in own if one is not there and not _must_wait(one))
    return Emission(rest.apply, rest.patch, _removable(others, there), there)


def _by_pods_and_age(wanted: WantedComponent, live: Object) -> tuple[bool, int, int]:
    """Of several workloads of a component, the one with most pods counts; then the newest."""
    counts = _replicas(live)
    number = revision_number(revision_of(live), wanted.name) or 0
    return at(live, "metadata", "deletionTimestamp") is None, counts.desired if counts else 0, number


def _scaled(wanted: WantedComponent, manifest: Object, live: Object | None) -> Object:
    """With the replicas that somebody asked for. A workload that is there never loses its number by leaving it out."""
    handler, given = handler_of(manifest), at(manifest, "spec", "replicas")
    if handler is None:
        return manifest
    now = handler.replicas(live).desired if live is not None else None
    is_kept = now is not None and (wanted.autoscaled or revision_of(live) == wanted.revision)
    number = next((n for n in (wanted.replicas, now if is_kept else None, given, now) if n is not None), None)
    return patched(manifest, handler.scale(number) or {}) if number is not None else manifest


def _kept_frozen(manifest: Object, live: Object) -> Object:
    """With what is remembered of its strategy: it is given back in a write of its own, after the template."""
    before = text(live, "metadata", "annotations", FROZEN)
    return patched(manifest, {"metadata": {"annotations": {FROZEN: before}}}) if before else manifest


def _unfreeze_patch(manifest: Object) -> Mapping[str, Any]:
    handler = handler_of(manifest)
    strategy = handler.with_strategy(handler.strategy(manifest)) if handler is not None else None
    return {**(strategy or {}), "metadata": {"annotations": {FROZEN: None}}}


def _removable(others: tuple[Object, ...], there: Object) -> tuple[Object, ...]:
    """Those that have no pods; and all of them once the one that stays is available."""
    return others if is_available(there) else tuple(one for one in others if _has_no_pods(one))


def _has_no_pods(obj: Object) -> bool:
    counts = _replicas(obj)
    return counts is not None and counts.desired == 0 and not at(obj, "status", "replicas")


def _stamped(wanted: WantedComponent, manifest: Object) -> Object:
    return patched(manifest, {"metadata": {"annotations": {APPLIED: _hash(wanted)}}})


def _hash(wanted: WantedComponent) -> str:
    """Of all that is asked for but the revision of the Application, which may change when nothing else does."""
    return digest([wanted.component.get("spec"), wanted.revision, wanted.replicas])


# Both


def _relabelled(wanted: WantedComponent, there: Object) -> Emission:
    """With the revision of the Application that it is of now, unless a rollout is at work."""
    is_same = text(there, "metadata", "labels", APP_REVISION_LABEL) == wanted.app_revision
    if is_same or not wanted.app_revision or is_claimed(there):
        return Emission(live=there)
    return Emission(patch={"metadata": {"labels": {APP_REVISION_LABEL: wanted.app_revision}}}, live=there)


def _must_wait(live: Object) -> str:
    if at(live, "metadata", "deletionTimestamp") is not None:
        return f"{name_of(live)} is being deleted"
    return f"{claim_of(live)} moves {name_of(live)} now" if is_claimed(live) else ""


def _named(live: Iterable[Object], manifest: Object) -> Object | None:
    name = text(manifest, "metadata", "name")
    return next((one for one in live if text(one, "metadata", "name") == name), None)


def _checked(wanted: WantedComponent, there: Object | None) -> Object | None:
    """Refuses to write what is somebody else's."""
    if there is None or belongs_to(there, wanted.application, wanted.name):
        return there
    owner = text(there, "metadata", "labels", NAME_LABEL)
    whose = f"belongs to the Application {owner}" if owner else "was made by somebody else"
    raise OamRefused(
        f"component {wanted.name}: {name_of(there)} exists already and {whose}: delete it, or give the component"
        " another name"
    )


def _replicas(obj: Object) -> Replicas | None:
    handler = handler_of(obj)
    return handler.replicas(obj) if handler is not None else None
