"""Work: what a member is to apply, and what came of it. AppliedWork: what it has applied, kept on the member itself.

A Work lives in the member's own namespace on the hub; the member's agent answers in its status. Everything an agent
applies is owned by an AppliedWork of the same name, so that it goes when the Work does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

from msgspec import field

from kedge.api.condition import Condition
from kedge.api.markers import Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.placement import CATEGORIES, GROUP
from kedge.api.placement_status import PatchDetail
from kedge.api.resource import Resource
from kedge.api.rollout import NOT_IN_V1, ApplyStrategy, ReportBackStrategy
from kedge.api.snapshot import Manifest

_VERSIONS = (Version("v1"), Version("v1beta1", storage=True))


class Workload(Value, frozen=True, gc=False):
    """The objects to apply."""

    manifests: tuple[Manifest, ...] = ()
    """The objects, in the order in which they were selected."""


class WorkSpec(Value, frozen=True, gc=False):
    """What is to be applied, and how."""

    workload: Workload = Workload()
    """The objects to apply."""
    apply_strategy: ApplyStrategy | None = None
    """How they are written."""
    report_back_strategy: Annotated[ReportBackStrategy | None, NOT_IN_V1] = None
    """Whether their status comes back to the hub."""


class WorkResourceIdentifier(Value, frozen=True, omit_defaults=True, gc=False):
    """Which object of a Work is meant."""

    ordinal: int
    """Its place among the manifests, from 0."""
    group: str = ""
    """The group of its API; empty for the core group."""
    version: str = ""
    """The version of its API."""
    kind: str = ""
    """Its kind."""
    resource: str = ""
    """The plural its API calls it by; empty if it is not known."""
    namespace: str = ""
    """Its namespace, if it has one."""
    name: str = ""
    """Its name."""


class DriftDetails(Value, frozen=True, gc=False):
    """How an object was changed on the member."""

    observation_time: datetime
    """When the drift was last seen."""
    observed_in_member_cluster_generation: Annotated[int, Schema(format="int64")]
    """The generation of the object on the member."""
    first_drifted_observed_time: datetime
    """When the drift was first seen."""
    observed_drifts: tuple[PatchDetail, ...] = ()
    """Which fields differ."""


class DiffDetails(Value, frozen=True, gc=False):
    """How an object on the member differs from the hub's."""

    observation_time: datetime
    """When the difference was last seen."""
    first_diffed_observed_time: datetime
    """When the difference was first seen."""
    observed_in_member_cluster_generation: Annotated[int | None, Schema(format="int64")] = None
    """The generation of the object on the member; absent if there is none."""
    observed_diffs: tuple[PatchDetail, ...] = ()
    """Which fields differ."""


class BackReportedStatus(Value, frozen=True, gc=False):
    """What the object on the member says of itself."""

    observation_time: datetime
    """When it was seen."""
    observed_status: Annotated[Mapping[str, Any], Schema(embedded_resource=True)] = field(default_factory=dict)
    """The object on the member: what it is, and its status."""


class ManifestCondition(Value, frozen=True, gc=False):
    """What came of one object."""

    identifier: WorkResourceIdentifier
    """Which object."""
    conditions: tuple[Condition, ...]
    """Whether it was applied, and whether it works."""
    drift_details: DriftDetails | None = None
    """How it was changed on the member."""
    diff_details: DiffDetails | None = None
    """How it differs from the hub's."""
    back_reported_status: Annotated[BackReportedStatus | None, NOT_IN_V1] = None
    """What it says of itself on the member."""


class WorkStatus(Value, frozen=True, gc=False):
    """What came of a Work."""

    conditions: Annotated[tuple[Condition, ...], Schema(required=True)] = ()
    """Whether all of it was applied, and whether all of it works."""
    manifest_conditions: tuple[ManifestCondition, ...] = ()
    """What came of each object."""


class Work(Value, frozen=True, gc=False):
    """What a member is to apply."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "Work", "works")
    definition: ClassVar[Definition] = Definition(versions=_VERSIONS, categories=CATEGORIES, status=True)
    spec: WorkSpec = WorkSpec()
    """What is to be applied, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: WorkStatus = WorkStatus()
    """What came of it."""


class AppliedResource(WorkResourceIdentifier, frozen=True, gc=False):
    """An object that was applied."""

    uid: str = ""
    """Which object of that name it was."""


class AppliedWorkSpec(Value, frozen=True, gc=False):
    """Which Work this is about."""

    work_name: str
    """The Work's name."""
    work_namespace: str
    """The Work's namespace on the hub."""


class AppliedWorkStatus(Value, frozen=True, gc=False):
    """What was applied."""

    applied_resources: tuple[AppliedResource, ...] = ()
    """The objects that were applied."""


class AppliedWork(Value, frozen=True, gc=False):
    """What a member has applied of a Work. Owns it all."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "AppliedWork", "appliedworks", namespaced=False)
    definition: ClassVar[Definition] = Definition(versions=_VERSIONS, categories=CATEGORIES, status=True)
    spec: AppliedWorkSpec
    """Which Work this is about."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: AppliedWorkStatus = AppliedWorkStatus()
    """What was applied."""
