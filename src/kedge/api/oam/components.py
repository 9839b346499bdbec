"""Components: workloads by a name, and configurations that put them together with their traits.

A Component holds one workload as an object. Each of its states is kept as a ControllerRevision, whose `data` is the
Component. An ApplicationConfiguration says which revision of which components is to run, and with which traits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.markers import AGE, Column, Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.oam.keys import CORE
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.resource import Resource

Manifest = Annotated[Mapping[str, Any], Schema(embedded_resource=True)]
"""A whole object of any kind."""

_VERSIONS: Final = (Version("v1alpha2", storage=True),)


class LatestRevision(Value, frozen=True, gc=False):
    """The newest revision of something."""

    name: str
    """Its name."""
    revision: Annotated[int, Schema(format="int64")]
    """Its number."""
    revision_hash: str = ""
    """The hash of its content."""


class ComponentSpec(Value, frozen=True, gc=False):
    """One workload."""

    workload: Manifest
    """The workload, as an object. Its name and namespace are those of the component or of its revision."""
    parameters: tuple[Mapping[str, Any], ...] = ()
    """Not used: there is nothing that would set them. A condition says so."""


class ComponentStatus(Value, frozen=True, gc=False):
    """What became of a component."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether its newest state is kept as a revision."""
    latest_revision: LatestRevision | None = None
    """Its newest revision."""
    observed_generation: Annotated[int, Schema(format="int64")] = 0
    """The generation this was said about."""


class Component(Value, frozen=True, gc=False):
    """A workload by a name, whose states are kept as revisions."""

    resource: ClassVar[Resource] = Resource(CORE, "v1alpha2", "Component", "components")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        categories=("oam",),
        status=True,
        columns=(
            Column("Workload-Kind", ".spec.workload.kind"),
            Column("Revision", ".status.latestRevision.name"),
            AGE,
        ),
    )
    spec: ComponentSpec
    """One workload."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ComponentStatus = ComponentStatus()
    """What became of it."""


class ConfiguredTrait(Value, frozen=True, gc=False):
    """Something that works on a component."""

    trait: Manifest
    """The trait, as an object."""


class ConfiguredComponent(Value, frozen=True, gc=False):
    """One component of a configuration."""

    component_name: str = ""
    """The component. Its newest revision is meant if none is named."""
    revision_name: str = ""
    """The revision of the component: a ControllerRevision of the same namespace."""
    traits: tuple[ConfiguredTrait, ...] = ()
    """What works on it."""


class ApplicationConfigurationSpec(Value, frozen=True, gc=False):
    """Which components are to run, and with which traits."""

    components: tuple[ConfiguredComponent, ...]
    """The components."""


class EmittedWorkload(Value, frozen=True, gc=False):
    """What was made of one component."""

    component_name: str
    """The component."""
    component_revision_name: str = ""
    """Its revision."""
    workload_ref: ObjectReference | None = None
    """The workload."""
    traits: tuple[ObjectReference, ...] = ()
    """The traits."""


class ApplicationConfigurationStatus(Value, frozen=True, gc=False):
    """What became of a configuration."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether all that it asks for was applied."""
    workloads: tuple[EmittedWorkload, ...] = ()
    """What was made of each component."""
    observed_generation: Annotated[int, Schema(format="int64")] = 0
    """The generation this was said about."""


class ApplicationConfiguration(Value, frozen=True, gc=False):
    """Which revisions of which components are to run, and with which traits."""

    resource: ClassVar[Resource] = Resource(CORE, "v1alpha2", "ApplicationConfiguration", "applicationconfigurations")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("appconfig",),
        categories=("oam",),
        status=True,
        columns=(
            Column("Component", ".spec.components[*].componentName"),
            Column("Synced", '.status.conditions[?(@.type=="Synced")].status'),
            AGE,
            Column("Message", '.status.conditions[?(@.type=="Synced")].message', wide=True),
        ),
    )
    spec: ApplicationConfigurationSpec
    """Which components are to run, and with which traits."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ApplicationConfigurationStatus = ApplicationConfigurationStatus()
    """What became of it."""
