"""Caches: what the controllers of Applications read. Shared by all of them.

Kinds that have to be defined first may be missing: then there are none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kedge.api.apps import ControllerRevision, DaemonSet, Deployment, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.api.meta import ObjectMeta
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.keys import COMPONENT_LABEL, COMPONENT_OF_REVISION, NAME_LABEL
from kedge.api.oam.rollouts import AppRollout
from kedge.controllers.application.placed_caches import PlacedCache, Watches, watch
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.kube.queue import Key
from kedge.kube.source import WatchedObject, own_key
from kedge.plan.fields import Object, group_of, text

T = TypeVar("T")
_WORKLOADS: Final = (Deployment, StatefulSet, DaemonSet)


def _by_namespace(obj: Any) -> Iterable[str]:
    return (obj.metadata.namespace or "",)


def _by_component(obj: Untyped) -> Iterable[str]:
    meta = obj["metadata"]
    return (f"{meta['namespace']}/{meta['labels'][COMPONENT_LABEL]}",)


def _by_application(obj: Untyped) -> Iterable[str]:
    meta = obj["metadata"]
    return (f"{meta['namespace']}/{meta['labels'].get(NAME_LABEL, '')}",)


_NAMESPACED: Final = {"namespace": _by_namespace}
_OWNED: Final = {"component": _by_component, "application": _by_application}


class ApplicationCaches:
    """Applications, what is made of them, and their workloads."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = ()) -> None:
        self.cluster = cluster
        placed = partial(PlacedCache, cluster, namespaces=namespaces)
        own: dict[str, Any] = {"optional": True}
        self.applications: PlacedCache[Application] = placed(Application, **own)
        self.app_revisions: PlacedCache[ApplicationRevision] = placed(ApplicationRevision, indexes=_NAMESPACED, **own)
        self.components: PlacedCache[Component] = placed(Component, **own)
        self.configurations: PlacedCache[ApplicationConfiguration] = placed(
            ApplicationConfiguration, indexes=_NAMESPACED, **own
        )
        self.component_revisions: PlacedCache[ControllerRevision] = placed(
            ControllerRevision, labels=COMPONENT_OF_REVISION, indexes=_NAMESPACED
        )
        self.app_rollouts: PlacedCache[AppRollout] = placed(AppRollout, indexes=_NAMESPACED, **own)
        self.workloads: tuple[PlacedCache[Untyped], ...] = tuple(
            placed(untyped(kind.resource), labels=COMPONENT_LABEL, indexes=_OWNED) for kind in _WORKLOADS
        )
        self.clone_sets: PlacedCache[Untyped] = placed(
            untyped(CloneSet.resource), labels=COMPONENT_LABEL, indexes=_OWNED, **own
        )

    def watch(self, placed: PlacedCache[T], to: Callable[[WatchedObject[T]], Iterable[Key]] = own_key) -> Watches:
        """What wakes keys as these objects change."""
        return watch(self.cluster, placed, to)

    def knows(self, workload: Object) -> bool:
        """Whether workloads of this kind are here."""
        return any(_is_of(cache, workload) for cache in self._present())

    def workloads_of(self, workload: Object, namespace: str, component: str) -> tuple[Object, ...]:
        """The workloads of this kind that have the component's label."""
        found = (
            cache.by("component", f"{namespace}/{component}") for cache in self._present() if _is_of(cache, workload)
        )
        return tuple(_whole(one, workload) for many in found for one in many)

    def workloads_in(self, namespace: str, application: str) -> tuple[Object, ...]:
        """All workloads of an Application."""
        return tuple(
            _whole(one, _type_of(cache))
            for cache in self._present()
            for one in cache.by("application", f"{namespace}/{application}")
        )

    def revisions_in(self, namespace: str) -> tuple[ControllerRevision, ...]:
        """The component revisions of a namespace."""
        return self.component_revisions.by("namespace", namespace)

    def _present(self) -> tuple[PlacedCache[Untyped], ...]:
        return (*self.workloads, self.clone_sets) if self.clone_sets.is_synced else self.workloads


def owner_reference(kind: Any, meta: ObjectMeta) -> dict[str, Any]:
    """Who owns what is made of it."""
    resource = kind.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": meta.name, "uid": meta.uid}


def _type_of(cache: PlacedCache[Untyped]) -> Object:
    resource = cache.codec.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def _is_of(cache: PlacedCache[Untyped], workload: Object) -> bool:
    resource = cache.codec.resource
    return (resource.group, resource.kind) == (group_of(workload), text(workload, "kind"))


def _whole(found: Untyped, typed: Object) -> Object:
    """Items of a list do not say their kind."""
    return {**found, "apiVersion": typed["apiVersion"], "kind": typed["kind"]}
