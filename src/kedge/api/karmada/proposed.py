"""Proposed bindings: the ResourceBinding of the group `karmada.io`, as the proposal of alignment writes it.

Karmada's own is of the group `work.karmada.io` and always names its resource. Here it may be left out: a binding is
called after its resource and kind.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.karmada.bindings import BINDING_COLUMNS, BindingStatus, BoundResource, TargetCluster
from kedge.api.karmada.keys import PROPOSED_GROUP
from kedge.api.markers import Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

_VERSIONS: Final = (Version("v1alpha2", storage=True),)


class ProposedBindingSpec(Value, frozen=True, gc=False):
    """What runs where."""

    clusters: tuple[TargetCluster, ...] = ()
    """The clusters it is scheduled to."""
    resource: BoundResource | None = None
    """The resource that is propagated; the workload that the binding is called after if it is left out."""


class ProposedBinding(Value, frozen=True, gc=False):
    """A workload of a namespace, and the clusters it runs in: a short form of Karmada's ResourceBinding."""

    resource: ClassVar[Resource] = Resource(PROPOSED_GROUP, "v1alpha2", "ResourceBinding", "resourcebindings")
    definition: ClassVar[Definition] = Definition(versions=_VERSIONS, status=True, columns=BINDING_COLUMNS)
    spec: ProposedBindingSpec = ProposedBindingSpec()
    """What runs where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: Annotated[BindingStatus, Schema(preserve_unknown_fields=True)] = BindingStatus()
    """What became of it."""
