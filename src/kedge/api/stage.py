"""Stage: a group of clusters that a change reaches together, and what must happen before and after it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from kedge.api.dialect import Dialect
from kedge.api.markers import Rule, Schema
from kedge.api.meta import Value
from kedge.api.numbers import IntOrPercent
from kedge.api.oam.rollout_plan import CanaryMetric
from kedge.api.selector import LabelSelector
from kedge.api.times import Duration

_ALPHA: Final = ("v1alpha1",)
_NOT_IN_ALPHA = Schema(absent=True, versions=_ALPHA)
_OURS = (_NOT_IN_ALPHA, Schema(absent=True, dialect=Dialect.kubefleet))
"""What KubeFleet does not have: without it a run does what KubeFleet's does."""
_LENGTH = r"(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+"


class StageTaskType(StrEnum):
    """What is waited for between stages."""

    timed_wait = "TimedWait"
    approval = "Approval"


class StageTask(Value, frozen=True, gc=False):
    """Something to wait for before or after a stage."""

    type: StageTaskType
    """TimedWait waits for time to pass, Approval for a person."""
    wait_time: Annotated[
        Duration | None, Schema(pattern=f"^{_LENGTH}$"), Schema(pattern=f"^(?:0|{_LENGTH})$", versions=_ALPHA)
    ] = None
    """How long TimedWait waits, such as 1h30m."""


_AFTER_RULES = (
    Rule(
        "self.all(t, t.type != 'Approval' || !has(t.waitTime))",
        "AfterStageTaskType is Approval, waitTime is not allowed",
    ),
    Rule(
        "self.all(t, t.type != 'TimedWait' || has(t.waitTime))", "AfterStageTaskType is TimedWait, waitTime is required"
    ),
)
_BEFORE_RULES = (
    Rule("self.all(t, !has(t.waitTime))", "a task before a stage takes no waitTime"),
    Rule("self.all(t, t.type == 'Approval')", "BeforeStageTaskType cannot be TimedWait"),
)
_AT_LEAST_ONE = Rule("type(self) == string || self > 0", "maxConcurrency must be at least 1, or a percentage")

_NOT_NEGATIVE = Rule("type(self) == string || self >= 0", "maxFailures must be 0 or more, or a percentage")


class Stage(Value, frozen=True, gc=False):
    """A group of clusters that a change reaches together."""

    name: Annotated[str, Schema(max_length=63, pattern="^[a-z0-9]+$")]
    """What the stage is called; no two stages of a strategy alike."""
    label_selector: Annotated[LabelSelector | None, Schema(map_type="atomic")] = None
    """Which of the placement's clusters belong to it. Empty means all; absent means none."""
    sorting_label_key: str | None = None
    """The label whose value puts the clusters in order; by name without it."""
    max_concurrency: Annotated[
        IntOrPercent, Schema(pattern="^(100|[1-9][0-9]?)%$", default=1, rules=(_AT_LEAST_ONE,)), _NOT_IN_ALPHA
    ] = 1
    """How many clusters change at once, as a number or a share of the stage, rounded down to no less than 1."""
    before_stage_tasks: Annotated[tuple[StageTask, ...], Schema(max_items=1, rules=_BEFORE_RULES), _NOT_IN_ALPHA] = ()
    """What to wait for before the stage begins."""
    after_stage_tasks: Annotated[
        tuple[StageTask, ...], Schema(max_items=2, rules=_AFTER_RULES), Schema(rules=None, versions=_ALPHA)
    ] = ()
    """What to wait for after the stage, before the next begins."""
    metrics: Annotated[tuple[CanaryMetric, ...], Schema(max_items=10), *_OURS] = ()
    """Which metrics have to be in their range after the stage, before the next begins; one that is not fails the run.
    In a ClusterStagedUpdateStrategy, templateRef needs a namespace."""
    max_failures: Annotated[
        IntOrPercent | None, Schema(pattern="^((100|[0-9]{1,2})%|[0-9]+)$", rules=(_NOT_NEGATIVE,)), *_OURS
    ] = None
    """How many of its clusters may fail, as a number or a share of the stage, rounded down; a cluster has failed that
    does not work five minutes after its update began. Without it the run waits for such a cluster."""


class Missing(StrEnum):
    """What a run does about a cluster that it cannot bring the change."""

    fail = "Fail"
    skip = "Skip"
    wait = "Wait"


class StrategySpec(Value, frozen=True, gc=False):
    """Stages, in their order."""

    stages: Annotated[tuple[Stage, ...], Schema(max_items=31)]
    """The stages, first to last."""
    delete_stage_tasks: Annotated[tuple[StageTask, ...], Schema(max_items=2, rules=_AFTER_RULES), *_OURS] = ()
    """What to wait for after the last stage, before clusters that are no longer picked are cleared."""
    unmatched_clusters: Annotated[Missing, *_OURS] = Missing.fail
    """What to do about picked clusters that belong to no stage: Fail the run, which is the default, Skip
    them, or Wait until they do."""
    unreachable_clusters: Annotated[Missing, *_OURS] = Missing.wait
    """What to do about clusters that cannot be reached when it is their turn: Fail the run, Skip them,
    or Wait, which is the default."""
    rollback_on_failure: Annotated[bool, *_OURS] = False
    """Whether a run that fails is followed by one that brings its clusters back to what they had."""
