"""Overrides: what is different in some clusters. Applied last, so that they win."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from msgspec import field

from kedge.api.karmada.bindings import Raw
from kedge.api.karmada.keys import POLICY_GROUP
from kedge.api.karmada.policies import ClusterAffinity, ResourceSelector
from kedge.api.markers import AGE, Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

_VERSIONS: Final = (Version("v1alpha1", storage=True),)


class OverrideOperator(StrEnum):
    """What is done to a value."""

    add = "add"
    remove = "remove"
    set = "replace"


class PlaintextOverrider(Value, frozen=True, gc=False):
    """One value of the object."""

    path: str
    """Where it is, as a JSON pointer."""
    operator: OverrideOperator
    """What is done to it."""
    value: Any = None
    """What it becomes."""


class ImagePredicate(Value, frozen=True, gc=False):
    """Which image."""

    path: str
    """Where it is, as a JSON pointer."""


class ImageOverrider(Value, frozen=True, gc=False):
    """One part of images."""

    component: Annotated[str, Schema(enum=("Registry", "Repository", "Tag"))]
    """Which part."""
    operator: OverrideOperator
    """What is done to it."""
    value: str = ""
    """What it becomes, or what is added to it."""
    predicate: ImagePredicate | None = None
    """Which image; those of all containers if it is left out."""


class Overriders(Value, frozen=True, gc=False):
    """What is different."""

    plaintext: tuple[PlaintextOverrider, ...] = ()
    """Values."""
    image_overrider: tuple[ImageOverrider, ...] = ()
    """Parts of images."""
    command_overrider: tuple[Raw, ...] = ()
    """Commands of containers: not known here."""
    args_overrider: tuple[Raw, ...] = ()
    """Arguments of containers: not known here."""
    labels_overrider: tuple[Raw, ...] = ()
    """Labels: not known here."""
    annotations_overrider: tuple[Raw, ...] = ()
    """Annotations: not known here."""
    field_overrider: tuple[Raw, ...] = ()
    """Values inside of texts: not known here."""


class OverrideRule(Value, frozen=True, gc=False):
    """What is different where."""

    overriders: Overriders
    """What is different."""
    target_cluster: ClusterAffinity | None = None
    """Where; everywhere if it is left out."""


class OverrideSpec(Value, frozen=True, gc=False):
    """What is different where, of which resources."""

    override_rules: tuple[OverrideRule, ...] = ()
    """What is different where."""
    resource_selectors: tuple[ResourceSelector, ...] = ()
    """Of which resources; of all if it is left out."""
    overriders: Overriders | None = None
    """What is different everywhere: an older form, not known here."""
    target_cluster: ClusterAffinity | None = None
    """Where that is: an older form, not known here."""


class OverridePolicy(Value, frozen=True, gc=False):
    """What is different in some clusters, of resources of its namespace."""

    resource: ClassVar[Resource] = Resource(POLICY_GROUP, "v1alpha1", "OverridePolicy", "overridepolicies")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("op",), categories=("karmada-io",), columns=(AGE,)
    )
    spec: OverrideSpec
    """What is different where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class ClusterOverridePolicy(Value, frozen=True, gc=False):
    """What is different in some clusters, of resources of any namespace or of none."""

    resource: ClassVar[Resource] = Resource(
        POLICY_GROUP, "v1alpha1", "ClusterOverridePolicy", "clusteroverridepolicies", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("cop",), categories=("karmada-io",), columns=(AGE,)
    )
    spec: OverrideSpec
    """What is different where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
