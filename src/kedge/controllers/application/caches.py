"""Caches: what the controllers of Applications read. Shared by all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kedge.api.apps import ControllerRevision, DaemonSet, Deployment, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.api.meta import ObjectMeta
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.keys import COMPONENT_LABEL, COMPONENT_OF_REVISION, NAME_LABEL
from kedge.api.oam.rollouts import AppRollout
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.plan.fields import Object, group_of, text

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

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.applications = cluster.cache(Application)
        self.app_revisions = cluster.cache(ApplicationRevision, indexes=_NAMESPACED)
        self.components = cluster.cache(Component)
        self.configurations = cluster.cache(ApplicationConfiguration, indexes=_NAMESPACED)
        self.component_revisions = cluster.cache(ControllerRevision, labels=COMPONENT_OF_REVISION, indexes=_NAMESPACED)
        self.app_rollouts = cluster.cache(AppRollout, indexes=_NAMESPACED)
        self.workloads: tuple[Cache[Untyped], ...] = tuple(
            cluster.cache(untyped(kind.resource), labels=COMPONENT_LABEL, indexes=_OWNED) for kind in _WORKLOADS
        )
        self.clone_sets = cluster.cache(
            untyped(CloneSet.resource), labels=COMPONENT_LABEL, indexes=_OWNED, optional=True
        )

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

    def _present(self) -> tuple[Cache[Untyped], ...]:
        return (*self.workloads, self.clone_sets) if self.clone_sets.is_synced else self.workloads


def owner_reference(kind: Any, meta: ObjectMeta) -> dict[str, Any]:
    """Who owns what is made of it."""
    resource = kind.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": meta.name, "uid": meta.uid}


def _type_of(cache: Cache[Untyped]) -> Object:
    resource = cache.codec.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def _is_of(cache: Cache[Untyped], workload: Object) -> bool:
    resource = cache.codec.resource
    return (resource.group, resource.kind) == (group_of(workload), text(workload, "kind"))


def _whole(found: Untyped, typed: Object) -> Object:
    """Items of a list do not say their kind."""
    return {**found, "apiVersion": typed["apiVersion"], "kind": typed["kind"]}
