"""Works: what one cluster is asked for, and what it reports, one for each resource, in the cluster's namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.karmada.bindings import Raw
from kedge.api.karmada.keys import WORK_GROUP
from kedge.api.markers import AGE, Column, Definition, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

Manifest = Annotated[Mapping[str, Any], Schema(embedded_resource=True, preserve_unknown_fields=True)]


class WorkloadTemplate(Value, frozen=True, gc=False):
    """What is to be there."""

    manifests: tuple[Manifest, ...] = ()
    """The objects; one, as a rule."""


class WorkSpec(Value, frozen=True, gc=False):
    """What the cluster is asked for."""

    workload: WorkloadTemplate = WorkloadTemplate()
    """What is to be there."""
    suspend_dispatching: bool | None = None
    """Whether it is not written to the cluster now."""
    preserve_resources_on_deletion: bool | None = None
    """Whether what runs in the cluster stays when this is deleted."""


class ResourceIdentifier(Value, frozen=True, gc=False):
    """Which object of a Work."""

    ordinal: int
    """Its place among the manifests."""
    version: str
    """Its version."""
    kind: str
    """Its kind."""
    resource: str
    """Its resource, in the plural."""
    name: str
    """Its name."""
    group: str = ""
    """Its group."""
    namespace: str = ""
    """Its namespace."""


class ManifestStatus(Value, frozen=True, gc=False):
    """What the cluster reports of one object."""

    identifier: ResourceIdentifier
    """Which object."""
    status: Raw | None = None
    """Its status."""
    health: str = ""
    """Healthy, Unhealthy or Unknown."""


class WorkStatus(Value, frozen=True, gc=False):
    """What the cluster reports."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether it was applied, and is available."""
    manifest_statuses: tuple[ManifestStatus, ...] = ()
    """What it reports of each object."""


class Work(Value, frozen=True, gc=False):
    """What one cluster is asked for, and what it reports."""

    resource: ClassVar[Resource] = Resource(WORK_GROUP, "v1alpha1", "Work", "works")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1alpha1", storage=True),),
        short_names=("wk",),
        categories=("karmada-io",),
        status=True,
        columns=(
            Column("Workload-Kind", ".spec.workload.manifests[0].kind"),
            Column("Workload-Name", ".spec.workload.manifests[0].metadata.name"),
            condition_column("Applied", "Applied"),
            AGE,
        ),
    )
    spec: WorkSpec = WorkSpec()
    """What the cluster is asked for."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: WorkStatus = WorkStatus()
    """What the cluster reports."""
