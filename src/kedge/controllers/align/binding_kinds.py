"""Binding kinds: the two kinds of bindings, and what is different about them; their controllers are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from msgspec import Struct

from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.keys import (
    BINDING_FINALIZER,
    BINDING_ID,
    BINDING_NAME,
    BINDING_NAMESPACE,
    CLUSTER_BINDING_FINALIZER,
    CLUSTER_BINDING_ID,
    CLUSTER_BINDING_NAME,
)
from kedge.api.meta import ObjectMeta
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.queue import Key
from kedge.plan.aligning.refusing import work_name_of


def _work_names(binding: ResourceBinding) -> Iterable[str]:
    return (work_name_of(binding),)


_INDEXES: Final = {"work": _work_names}


class BindingKind(Struct, frozen=True):
    """One of the two.

    Declared as the namespaced one, which has the same attributes: of a union of two types a checker makes, where a
    function is generic, what they have in common, and that is nothing.
    """

    type: type[ResourceBinding]
    finalizer: str
    permanent_id: str
    """The label that Works have of it."""
    name_note: str
    """The annotation by which a Work names its binding."""
    namespace_note: str | None = None
    """The one with the namespace of the binding."""

    @property
    def plural(self) -> str:
        return self.type.resource.plural

    def cache(self, cluster: Cluster) -> Cache[ResourceBinding]:
        """The bindings of this kind, one cache for all that look at them. The index `work` is what their Works are
        called."""
        return cluster.cache(self.type, indexes=_INDEXES)

    def notes(self, meta: ObjectMeta) -> dict[str, str]:
        """How a Work names this binding."""
        found = {self.name_note: meta.name}
        return found if self.namespace_note is None else {self.namespace_note: meta.namespace or "", **found}

    def named_in(self, notes: Mapping[str, str], cluster: str) -> Key | None:
        """The binding of this kind that a Work names in its annotations."""
        if self.name_note not in notes:
            return None
        namespace = notes.get(self.namespace_note) if self.namespace_note is not None else None
        return Key(cluster, namespace or None, notes[self.name_note])


NAMESPACED: Final = BindingKind(ResourceBinding, BINDING_FINALIZER, BINDING_ID, BINDING_NAME, BINDING_NAMESPACE)
CLUSTER_SCOPED: Final = BindingKind(
    cast("type[ResourceBinding]", ClusterResourceBinding),
    CLUSTER_BINDING_FINALIZER,
    CLUSTER_BINDING_ID,
    CLUSTER_BINDING_NAME,
)
BINDING_KINDS: Final = (NAMESPACED, CLUSTER_SCOPED)
