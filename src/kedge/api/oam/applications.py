"""Applications: components by their type and properties, and the revisions of an Application.

Both versions are served from one type: v1alpha2 calls the properties of a component `settings`, and the type of a trait
`name`. Whichever name is used is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.markers import AGE, Column, Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.oam.components import LatestRevision, Manifest
from kedge.api.oam.keys import CORE
from kedge.api.oam.rollout_plan import ObjectReference, RolloutPlan
from kedge.api.oam.rollouts import AppRolloutStatus
from kedge.api.resource import Resource

_VERSIONS: Final = (Version("v1beta1", storage=True), Version("v1alpha2"))
_PROPERTIES: Final = Schema(preserve_unknown_fields=True)


class ApplicationTrait(Value, frozen=True, gc=False):
    """Something that works on a component."""

    type: str = ""
    """What it is: rollout or scaler, or the word `raw` for a whole object."""
    name: str = ""
    """Another name of `type`, that of v1alpha2."""
    properties: Annotated[Mapping[str, Any], _PROPERTIES] = field(default_factory=dict)
    """What it is to do; which fields there are depends on the type."""

    @property
    def kind(self) -> str:
        """Its type, by whichever name it was given."""
        return self.type or self.name


class ApplicationComponent(Value, frozen=True, gc=False):
    """One component of an Application."""

    name: str
    """What it is called."""
    type: str
    """What it is: webservice, worker, or raw or k8s-objects for whole objects."""
    properties: Annotated[Mapping[str, Any], _PROPERTIES] = field(default_factory=dict)
    """What it is made of; which fields there are depends on the type."""
    settings: Annotated[Mapping[str, Any], _PROPERTIES] = field(default_factory=dict)
    """Another name of `properties`, that of v1alpha2."""
    external_revision: str = ""
    """What its revision is called; numbered if empty. Another state of it needs another name."""
    traits: tuple[ApplicationTrait, ...] = ()
    """What works on it."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Its properties, by whichever name they were given."""
        return self.properties or self.settings


class ApplicationSpec(Value, frozen=True, gc=False):
    """The components of an Application."""

    components: tuple[ApplicationComponent, ...]
    """The components."""
    rollout_plan: RolloutPlan | None = None
    """In which batches the first component goes to each new revision; at once if not set."""


class Phase(StrEnum):
    """Where an Application is."""

    rendering = "rendering"
    applying = "applying"
    rolling_out = "rollingOut"
    running = "running"


class ServiceStatus(Value, frozen=True, gc=False):
    """How one component is."""

    name: str
    """The component."""
    workload_ref: ObjectReference | None = None
    """Its workload."""
    healthy: bool = field(default_factory=bool)
    """Whether its workload is available."""
    message: str = ""
    """What it waits for."""


class ApplicationStatus(Value, frozen=True, gc=False):
    """What became of an Application."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether it could be read, and whether it was applied."""
    status: Phase | None = None
    """Where it is: rendering, applying, rollingOut or running."""
    services: tuple[ServiceStatus, ...] = ()
    """How each component is."""
    latest_revision: LatestRevision | None = None
    """Its newest revision."""
    rollout: AppRolloutStatus | None = None
    """How far the rollout of `spec.rolloutPlan` has got."""
    observed_generation: Annotated[int, Schema(format="int64")] = 0
    """The generation this was said about."""


class Application(Value, frozen=True, gc=False):
    """Components that belong together, by their types."""

    resource: ClassVar[Resource] = Resource(CORE, "v1beta1", "Application", "applications")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("app", "velaapp"),
        categories=("oam",),
        status=True,
        columns=(
            Column("Component", ".spec.components[*].name"),
            Column("Type", ".spec.components[*].type"),
            Column("Phase", ".status.status"),
            Column("Healthy", ".status.services[*].healthy", "boolean"),
            Column("Status", ".status.services[*].message"),
            AGE,
        ),
    )
    spec: ApplicationSpec
    """Its components."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ApplicationStatus = ApplicationStatus()
    """What became of it."""


class RawComponent(Value, frozen=True, gc=False):
    """One component of a revision."""

    raw: Manifest
    """The Component."""


class ApplicationRevisionSpec(Value, frozen=True, gc=False):
    """What an Application was, and what was made of it."""

    application: Manifest
    """The Application, without its rollout plan."""
    components: tuple[RawComponent, ...] = ()
    """The Components that were made of it. Their names are those of the application's components."""
    application_configuration: Manifest | None = None
    """The ApplicationConfiguration that was made of it."""
    component_definitions: Mapping[str, Any] | None = None
    """Kept as it is."""
    workload_definitions: Mapping[str, Any] | None = None
    """Kept as it is."""
    trait_definitions: Mapping[str, Any] | None = None
    """Kept as it is."""
    scope_definitions: Mapping[str, Any] | None = None
    """Kept as it is."""


class ApplicationRevision(Value, frozen=True, gc=False):
    """One state of an Application. It never changes."""

    resource: ClassVar[Resource] = Resource(CORE, "v1beta1", "ApplicationRevision", "applicationrevisions")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("apprev",),
        categories=("oam",),
        columns=(Column("Application", ".spec.application.metadata.name"), AGE),
    )
    spec: ApplicationRevisionSpec
    """What the Application was, and what was made of it."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
