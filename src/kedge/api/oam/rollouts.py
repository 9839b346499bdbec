"""Rollouts: the kinds that ask for a rollout in batches. Each says from what, to what, and by which plan.

`RolloutTrait` refers to workloads or component revisions, `Rollout` to component revisions, `AppRollout` and its first
name `ApplicationDeployment` to revisions of an Application.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import field

from kedge.api.markers import AGE, Column, Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.oam.keys import CORE, STANDARD
from kedge.api.oam.rollout_plan import ObjectReference, RuledPlan
from kedge.api.oam.rollout_rules import update_rules
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.resource import Resource

_COLUMNS: Final = (
    Column("Target", ".status.rolloutTargetSize", "integer"),
    Column("Upgraded", ".status.upgradedReplicas", "integer"),
    Column("Ready", ".status.upgradedReadyReplicas", "integer"),
    Column("Batch-State", ".status.batchRollingState"),
    Column("Rolling-State", ".status.rollingState"),
    AGE,
    Column("Message", ".status.message", wide=True),
)

_NAME: Final = Schema(max_length=253)
_NEEDED: Final = Schema(min_length=1, max_length=253)
_COMPONENTS: Final = ("componentList", "[]")


class RolloutTraitSpec(Value, frozen=True, gc=False):
    """From what, to what, and how."""

    target_ref: ObjectReference
    """The workload or component revision with the new version. It exists already."""
    rollout_plan: RuledPlan
    """In which batches."""
    source_ref: Annotated[tuple[ObjectReference, ...], Schema(max_items=32)] = ()
    """The workloads or component revisions with older versions; without any it is the first deployment."""


class RolloutTraitStatus(RolloutStatus, frozen=True, kw_only=True, gc=False):
    """How far it has got."""

    last_target: str = ""
    """What the rollout moves to, or moved to last: its kind and name."""


class RolloutTrait(Value, frozen=True, gc=False):
    """A rollout from workloads of older versions to one of a newer."""

    resource: ClassVar[Resource] = Resource(STANDARD, "v1alpha1", "RolloutTrait", "rollouttraits")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1alpha1", storage=True),),
        categories=("oam",),
        status=True,
        columns=_COLUMNS,
        schema=(Schema(rules=update_rules("targetRef", ("sourceRef", "[]"))),),
    )
    spec: RolloutTraitSpec
    """From what, to what, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: RolloutTraitStatus = RolloutTraitStatus()
    """How far it has got."""


class RolloutSpec(Value, frozen=True, gc=False):
    """To which revision of a component, and how."""

    target_revision_name: Annotated[str, _NEEDED]
    """The component revision with the new version: a ControllerRevision of the same namespace."""
    component_name: Annotated[str, _NEEDED]
    """The component."""
    rollout_plan: RuledPlan
    """In which batches."""
    source_revision_name: Annotated[str, _NAME] = ""
    """The component revision with the old version; without it, whatever runs."""


class RolloutRevisionStatus(RolloutStatus, frozen=True, kw_only=True, gc=False):
    """How far it has got."""

    last_target_revision: Annotated[str, Schema(required=True)] = field(default_factory=str)
    """The revision it moves to, or moved to last."""
    last_source_revision: str = field(default="", name="LastSourceRevision")
    """The revision it moved from."""


class Rollout(Value, frozen=True, gc=False):
    """A rollout of one component to another of its revisions."""

    resource: ClassVar[Resource] = Resource(STANDARD, "v1alpha1", "Rollout", "rollouts")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1alpha1", storage=True),),
        short_names=("rollout",),
        categories=("oam",),
        status=True,
        columns=_COLUMNS,
        schema=(
            Schema(rules=update_rules("targetRevisionName", ("sourceRevisionName", "''"), ("componentName", "''"))),
        ),
    )
    spec: RolloutSpec
    """To which revision of a component, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: RolloutRevisionStatus = RolloutRevisionStatus()
    """How far it has got."""


class AppRolloutSpec(Value, frozen=True, gc=False):
    """To which revision of an Application, and how."""

    target_app_revision_name: Annotated[str, _NEEDED]
    """The ApplicationRevision with the new version."""
    rollout_plan: RuledPlan
    """In which batches."""
    source_app_revision_name: Annotated[str, _NAME] = ""
    """The ApplicationRevision with the old version; without it the target is deployed or scaled."""
    component_list: Annotated[tuple[Annotated[str, _NEEDED], ...], Schema(max_items=1)] = ()
    """The component that is rolled out, at most one; without it, the only one that both have."""
    revert_on_delete: bool = False
    """Whether a rollout that is deleted midway is taken back. The plan's field of this name says the same."""


class AppRolloutStatus(RolloutStatus, frozen=True, kw_only=True, gc=False):
    """How far it has got."""

    last_target_app_revision: Annotated[str, Schema(required=True)] = field(default_factory=str)
    """The revision it moves to, or moved to last."""
    last_source_app_revision: str = field(default="", name="LastSourceAppRevision")
    """The revision it moved from."""


_APP_VERSIONS: Final = (Version("v1beta1", storage=True), Version("v1alpha2"))


class AppRollout(Value, frozen=True, gc=False):
    """A rollout of one component of an Application to another of its revisions."""

    resource: ClassVar[Resource] = Resource(CORE, "v1beta1", "AppRollout", "approllouts")
    definition: ClassVar[Definition] = Definition(
        versions=_APP_VERSIONS,
        short_names=("approllout",),
        categories=("oam",),
        status=True,
        columns=_COLUMNS,
        schema=(Schema(rules=update_rules("targetAppRevisionName", ("sourceAppRevisionName", "''"), _COMPONENTS)),),
    )
    spec: AppRolloutSpec
    """To which revision of an Application, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: AppRolloutStatus = AppRolloutStatus()
    """How far it has got."""


class ApplicationDeploymentSpec(Value, frozen=True, gc=False):
    """From which Application to which, and how."""

    target_application_name: Annotated[str, _NEEDED]
    """The Application with the new version: one that nobody has brought in yet."""
    rollout_plan: RuledPlan
    """In which batches."""
    source_application_name: Annotated[str, _NAME] = ""
    """The Application with the old version; without it the target is deployed for the first time."""
    component_list: Annotated[tuple[Annotated[str, _NEEDED], ...], Schema(max_items=1)] = ()
    """The component that is rolled out, at most one; without it, the only one that both have."""
    revert_on_delete: bool = False
    """Whether a rollout that is deleted midway is taken back. The plan's field of this name says the same."""


class ApplicationDeploymentStatus(RolloutStatus, frozen=True, kw_only=True, gc=False):
    """How far it has got."""

    last_target_application: str = ""
    """The Application it moves to, or moved to last."""
    last_source_application: str = ""
    """The Application it moved from."""


class ApplicationDeployment(Value, frozen=True, gc=False):
    """A rollout from one Application to another: the first form of AppRollout."""

    resource: ClassVar[Resource] = Resource(CORE, "v1alpha2", "ApplicationDeployment", "applicationdeployments")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1alpha2", storage=True),),
        short_names=("appdeployment",),
        categories=("oam",),
        status=True,
        columns=_COLUMNS,
        schema=(Schema(rules=update_rules("targetApplicationName", ("sourceApplicationName", "''"), _COMPONENTS)),),
    )
    spec: ApplicationDeploymentSpec
    """From which Application to which, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ApplicationDeploymentStatus = ApplicationDeploymentStatus()
    """How far it has got."""


AnyRollout: TypeAlias = RolloutTrait | Rollout | AppRollout | ApplicationDeployment
ROLLOUT_KINDS: Final = (RolloutTrait, Rollout, AppRollout, ApplicationDeployment)
