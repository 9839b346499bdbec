"""App revisions: what a revision of an Application says to a rollout, and which of its components that moves. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kedge.api.meta import controller_of
from kedge.api.oam.applications import ApplicationRevision
from kedge.plan.fields import Object, at, text
from kedge.plan.oam.application import RevisedComponent, components_of
from kedge.plan.oam.refused import OamRefused
from kedge.plan.text import listed


class AppRevision(Struct, frozen=True):
    """One state of an Application."""

    application: str
    name: str
    components: tuple[RevisedComponent, ...]
    owners: tuple[Mapping[str, Any], ...] = ()
    """Whom workloads that are made of it belong to: the Application."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.components)

    def component(self, name: str) -> RevisedComponent | None:
        """One component, by its name."""
        return next((one for one in self.components if one.name == name), None)


def app_revision(revision: ApplicationRevision) -> AppRevision:
    """What a revision of an Application says."""
    meta, owner = revision.metadata, controller_of(revision.metadata)
    owners: tuple[Mapping[str, Any], ...] = ()
    if owner is not None:
        owners = ({"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid},)
    application = text(revision.spec.application, "metadata", "name")
    return AppRevision(application, meta.name, components_of(revision), owners)


def component_names(application: Object) -> tuple[str, ...]:
    """The components of an Application, by name."""
    found = at(application, "spec", "components")
    return tuple(text(one, "name") for one in found) if isinstance(found, list) else ()


def latest_revision(application: Object) -> str:
    """The newest revision of an Application; empty if it has none of its present state."""
    is_seen = at(application, "status", "observedGeneration") == at(application, "metadata", "generation")
    return text(application, "status", "latestRevision", "name") if is_seen else ""


def rolled_component(target: Sequence[str], source: Sequence[str] | None, asked: Sequence[str]) -> str:
    """The component that a rollout moves, of those that target and source have. Refuses to guess.

    `source` is None if there is none; `asked` is what the rollout names.
    """
    if len(asked) > 1:
        raise OamRefused("only one component can be rolled out at a time")
    common = [name for name in target if source is None or name in source]
    if asked:
        return _common(asked[0], target, common)
    if len(common) > 1:
        raise OamRefused(f"cannot find a default component, too many common components: [{' '.join(common)}]")
    if not common:
        has = f"the target has {listed(target) or 'none'}, the source {listed(source or ()) or 'none'}"
        raise OamRefused(f"cannot find a default component, there is no common component: {has}")
    return common[0]


def _common(name: str, target: Sequence[str], common: Sequence[str]) -> str:
    if name not in target:
        raise OamRefused(f"componentList names {name}, and the target has only {listed(target) or 'no component'}")
    if name not in common:
        raise OamRefused(f"componentList names {name}: it is not a common component in the application")
    return name
