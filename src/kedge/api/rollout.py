"""Rollout: how a change reaches the picked clusters, and how objects are written there."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kedge.api.dialect import Dialect
from kedge.api.markers import Rule, Schema
from kedge.api.meta import Value
from kedge.api.numbers import IntOrPercent

NOT_IN_V1 = Schema(absent=True, versions=("v1",), dialect=Dialect.kubefleet)
"""What KubeFleet has in v1beta1 alone, where it does nothing. Here it does; and kubectl annotate, which writes v1,
would silently take away what v1 does not have."""
OURS = Schema(absent=True, dialect=Dialect.kubefleet)
_SOME_OR_PERCENT = Schema(pattern="^((100|[1-9][0-9]?)%|[1-9][0-9]*)$", minimum=1)
_NUMBER_OR_PERCENT = Schema(pattern="^((100|[0-9]{1,2})%|[0-9]+)$", default="25%")


class RollingUpdate(Value, frozen=True, gc=False):
    """How much a rolling update may disturb at once."""

    max_unavailable: Annotated[IntOrPercent, _NUMBER_OR_PERCENT] = "25%"
    """How many clusters may be without working resources, as a number or a share of all picked. 0 counts as 1."""
    max_surge: Annotated[IntOrPercent, _NUMBER_OR_PERCENT] = "25%"
    """How many clusters more than wanted may be in use while clusters are exchanged. 0 counts as 1."""
    unavailable_period_seconds: Annotated[int, Schema(minimum=0, default=60)] = 60
    """How long to wait, in seconds, where it cannot be seen whether resources work."""
    pod_budget: Annotated[IntOrPercent | None, OURS, _SOME_OR_PERCENT] = None
    """How many pods a change may take away at once, over all clusters: a number, or a share of all that are wanted,
    rounded down but at least 1. Counted are the pods of Deployments, StatefulSets, ReplicaSets and CloneSets."""


class RolloutStrategyType(StrEnum):
    """Who moves a change from cluster to cluster."""

    rolling_update = "RollingUpdate"
    external = "External"


class ApplyType(StrEnum):
    """How objects are written to a member."""

    client_side_apply = "ClientSideApply"
    server_side_apply = "ServerSideApply"
    report_diff = "ReportDiff"


class ComparisonOption(StrEnum):
    """Which fields count as a difference."""

    partial = "PartialComparison"
    full = "FullComparison"


class WhenToApply(StrEnum):
    """Whether a member's own changes are overwritten."""

    always = "Always"
    if_not_drifted = "IfNotDrifted"


class WhenToTakeOver(StrEnum):
    """Whether objects that were there before become ours."""

    always = "Always"
    if_no_diff = "IfNoDiff"
    never = "Never"


class ServerSideApplyConfig(Value, frozen=True, gc=False):
    """How server-side apply treats fields of other owners."""

    force: bool = False
    """Take fields over from other owners instead of failing."""


class ApplyStrategy(Value, frozen=True, gc=False):
    """How objects are written to a member, and what happens to those already there."""

    type: Annotated[ApplyType, Schema(default=ApplyType.client_side_apply)] = ApplyType.client_side_apply
    """Client-side apply, server-side apply, or only a report of differences."""
    comparison_option: Annotated[ComparisonOption, Schema(default=ComparisonOption.partial)] = ComparisonOption.partial
    """Compare only the fields the hub sets, or all of them."""
    when_to_apply: Annotated[WhenToApply, Schema(default=WhenToApply.always)] = WhenToApply.always
    """Write always, or only while nobody changed the object on the member."""
    when_to_take_over: Annotated[WhenToTakeOver, Schema(default=WhenToTakeOver.always)] = WhenToTakeOver.always
    """Take over an object that is already there always, only if it does not differ, or never."""
    allow_co_ownership: bool = False
    """Share an object with other owners instead of leaving it alone."""
    server_side_apply_config: ServerSideApplyConfig | None = None
    """How server-side apply treats fields of other owners."""


class PropagationPolicy(StrEnum):
    """What happens on the members when a placement is deleted."""

    abandon = "Abandon"
    delete = "Delete"


class DeleteStrategy(Value, frozen=True, gc=False):
    """What a placement leaves behind."""

    propagation_policy: Annotated[PropagationPolicy, Schema(default=PropagationPolicy.delete)] = (
        PropagationPolicy.delete
    )
    """Delete removes what was placed, Abandon leaves it."""


class ReportBackType(StrEnum):
    """Whether the status of placed objects comes back to the hub."""

    disabled = "Disabled"
    mirror = "Mirror"


class ReportBackDestination(StrEnum):
    """Where the status of placed objects goes on the hub."""

    original_resource = "OriginalResource"
    work_api = "WorkAPI"


class ReportBackStrategy(Value, frozen=True, gc=False):
    """Whether and where the status of placed objects comes back to the hub."""

    type: Annotated[ReportBackType, Schema(required=True, default=ReportBackType.disabled)] = ReportBackType.disabled
    """Mirror brings it back as it is."""
    destination: ReportBackDestination | None = None
    """Into the object that was placed, or beside it."""


REPORT_BACK_RULES = (
    Rule(
        "(self.type == 'Mirror') == has(self.destination)",
        "destination must be set when type is Mirror, and only then",
    ),
)
_STRATEGY_TYPE_RULES = (
    Rule(
        "oldSelf != 'External' || self == 'External'",
        "cannot change rollout strategy type from 'External' to other types: what an outside run has moved cannot be "
        "handed back",
    ),
)


class RolloutStrategy(Value, frozen=True, gc=False):
    """How a change reaches the picked clusters."""

    type: Annotated[
        RolloutStrategyType, Schema(default=RolloutStrategyType.rolling_update, rules=_STRATEGY_TYPE_RULES)
    ] = RolloutStrategyType.rolling_update
    """RollingUpdate moves on by itself as clusters prove healthy; External waits for staged update runs."""
    rolling_update: RollingUpdate | None = None
    """How much a rolling update may disturb at once."""
    apply_strategy: ApplyStrategy | None = None
    """How objects are written to a member."""
    delete_strategy: Annotated[DeleteStrategy | None, NOT_IN_V1] = None
    """What the placement leaves behind."""
    report_back_strategy: Annotated[ReportBackStrategy | None, NOT_IN_V1, Schema(rules=REPORT_BACK_RULES)] = None
    """Whether the status of placed objects comes back to the hub."""
