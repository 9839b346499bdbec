"""Kruise: the CloneSet of OpenKruise, as far as Kedge reads and simulates it.

Names, columns and the scale subresource are OpenKruise's. Fields that are not named here are kept as they are written.
What OpenKruise's webhooks fill in and refuse, the definition fills in and refuses, as far as it can say it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE
from kedge.api.markers import Column, Definition, Rule, Scale, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.numbers import IntOrPercent
from kedge.api.pods import Template
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector

GROUP: Final = "apps.kruise.io"

RECREATE: Final = "ReCreate"
IN_PLACE_IF_POSSIBLE: Final = "InPlaceIfPossible"
IN_PLACE_ONLY: Final = "InPlaceOnly"
ON_DELETE: Final = "OnDelete"
UPDATE_TYPES: Final = (RECREATE, IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY, ON_DELETE)
MAX_UNAVAILABLE: Final = "20%"
"""How many pods may be unavailable unless a CloneSet says."""

FAILED_SCALE: Final = "FailedScale"
FAILED_UPDATE: Final = "FailedUpdate"
PROGRESSING: Final = "Progressing"
IN_PLACE_READY: Final = "InPlaceUpdateReady"
"""The readiness gate of pods that are updated in place."""

_NUMBER_OR_PERCENT: Final = Schema(pattern="^((100|[0-9]{1,2})%|[0-9]+)$")
_OPEN: Final = Schema(preserve_unknown_fields=True)
_WRITTEN_IF_ZERO: Final = Schema(required=True, format="int32")


def _less_than_one(name: str) -> str:
    at = f"self.updateStrategy.{name}"
    return f"({at} == 0 || {at} == '0' || {at} == '0%')"


_RULES: Final = (
    Rule(
        f"self.replicas == 0 || !({_less_than_one('maxUnavailable')} && {_less_than_one('maxSurge')})",
        "updateStrategy.maxUnavailable and updateStrategy.maxSurge should not both be less than 1",
    ),
    Rule(
        f"self.updateStrategy.type != '{IN_PLACE_ONLY}' || {_less_than_one('maxSurge')}",
        f"updateStrategy.maxSurge can not be used with type {IN_PLACE_ONLY}",
    ),
)


class CloneSetUpdateStrategy(Value, frozen=True, gc=False):
    """How pods are brought to the new template."""

    type: Annotated[str, Schema(enum=UPDATE_TYPES, default=RECREATE)] = RECREATE
    """Whether pods are replaced, changed in place, or left alone until somebody deletes them."""
    partition: Annotated[IntOrPercent | None, _NUMBER_OR_PERCENT, Schema(default=0)] = None
    """How many pods stay as they were."""
    max_unavailable: Annotated[IntOrPercent | None, _NUMBER_OR_PERCENT, Schema(default=MAX_UNAVAILABLE)] = None
    """How many pods may be unavailable during the update."""
    max_surge: Annotated[IntOrPercent | None, _NUMBER_OR_PERCENT, Schema(default=0)] = None
    """How many pods there may be beyond the replicas during the update."""
    paused: bool = False
    """Whether the update stands still. Pods are still created and deleted when the replicas change."""


class CloneSetScaleStrategy(Value, frozen=True, gc=False):
    """How the number of pods is changed. Kept as it is written; the simulation does not look at it."""


class CloneSetSpec(Value, frozen=True, gc=False):
    """What a CloneSet should be."""

    replicas: Annotated[int | None, Schema(minimum=0, default=1, format="int32")] = None
    """How many pods there should be."""
    selector: Annotated[LabelSelector | None, Schema(required=True)] = None
    """Which pods are its own."""
    template: Annotated[Template, Schema(required=True)] = field(default_factory=dict)
    """What the pods are made from."""
    update_strategy: Annotated[CloneSetUpdateStrategy, _OPEN, Schema(default={})] = CloneSetUpdateStrategy()
    """How pods are brought to the new template."""
    scale_strategy: Annotated[CloneSetScaleStrategy, _OPEN] = CloneSetScaleStrategy()
    """How the number of pods is changed."""
    min_ready_seconds: Annotated[int, Schema(minimum=0, format="int32")] = 0
    """For how long a pod has to be ready before it counts as available."""
    revision_history_limit: Annotated[int | None, Schema(minimum=0, format="int32")] = None
    """How many old revisions are kept; 10 if not set."""


class CloneSetCondition(Value, frozen=True, gc=False):
    """One thing a CloneSet says of itself."""

    type: str
    """What the condition is about."""
    status: str
    """Whether it holds: True, False or Unknown."""
    last_transition_time: datetime | None = None
    """When the status last changed."""
    reason: str = ""
    """Why, in one word for programs."""
    message: str = ""
    """Why, in words for people."""


class CloneSetStatus(Value, frozen=True, gc=False):
    """What a CloneSet is."""

    observed_generation: Annotated[int, Schema(format="int64")] = 0
    """The generation of the CloneSet that this was said about."""
    replicas: Annotated[int, _WRITTEN_IF_ZERO] = field(default_factory=int)
    """How many pods there are."""
    ready_replicas: Annotated[int, _WRITTEN_IF_ZERO] = field(default_factory=int)
    """How many pods are ready."""
    available_replicas: Annotated[int, _WRITTEN_IF_ZERO] = field(default_factory=int)
    """How many pods have been ready for minReadySeconds."""
    updated_replicas: Annotated[int, _WRITTEN_IF_ZERO] = field(default_factory=int)
    """How many pods are of the update revision."""
    updated_ready_replicas: Annotated[int, _WRITTEN_IF_ZERO] = field(default_factory=int)
    """How many pods of the update revision are ready."""
    updated_available_replicas: Annotated[int, Schema(format="int32")] = 0
    """How many pods of the update revision are available."""
    expected_updated_replicas: Annotated[int, Schema(format="int32")] = 0
    """How many pods are to be of the update revision: the replicas without the partition."""
    update_revision: str = ""
    """The revision of the present template."""
    current_revision: str = ""
    """The revision that all pods were of last; those behind the partition are created from it."""
    collision_count: Annotated[int | None, Schema(format="int32")] = None
    """How often the name of a revision was taken."""
    label_selector: str = ""
    """The selector as text, for the scale subresource."""
    conditions: Annotated[tuple[CloneSetCondition, ...], BY_TYPE] = ()
    """What it says of itself: FailedScale, FailedUpdate, Progressing."""


class CloneSet(Value, frozen=True, gc=False):
    """Interchangeable pods that are updated in batches, replaced or in place."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1alpha1", "CloneSet", "clonesets")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1alpha1", storage=True),),
        short_names=("clone",),
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas", ".status.labelSelector"),
        columns=(
            Column("DESIRED", ".spec.replicas", "integer"),
            Column("UPDATED", ".status.updatedReplicas", "integer"),
            Column("UPDATED_READY", ".status.updatedReadyReplicas", "integer"),
            Column("READY", ".status.readyReplicas", "integer"),
            Column("TOTAL", ".status.replicas", "integer"),
            Column("AGE", ".metadata.creationTimestamp", "date"),
            Column("CONTAINERS", ".spec.template.spec.containers[*].name", wide=True),
            Column("IMAGES", ".spec.template.spec.containers[*].image", wide=True),
            Column("SELECTOR", ".status.labelSelector", wide=True),
        ),
    )
    spec: Annotated[CloneSetSpec, _OPEN, Schema(rules=_RULES)] = CloneSetSpec()
    """What it should be."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: CloneSetStatus = CloneSetStatus()
    """What it is."""

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector

    @property
    def replicas(self) -> int:
        """How many pods it should have."""
        return 1 if self.spec.replicas is None else self.spec.replicas


KRUISE_KINDS: Final = (CloneSet,)
