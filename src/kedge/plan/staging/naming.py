"""Naming: what a run's requests for approval are called, and say they are about.

The seed's run asks once for a stage, after it, and calls the request `<run>-<stage>`; today's KubeFleet has tasks
before a stage too, and calls it `<run>-after-<stage>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from kedge.api.dialect import Dialect
from kedge.api.fleet import IS_LATEST_APPROVAL, TARGET_RUN, TARGET_STAGE, TASK_TYPE
from kedge.api.staged import ApprovalSpec
from kedge.api.staged_status import DELETE_STAGE

_DELETING: Final = "delete-stage"  # no stage of a user's can be called that


class When(StrEnum):
    """On which side of a stage a task is."""

    before = "beforeStage"
    after = "afterStage"


class Ask(Struct, frozen=True):
    """A request for approval that is to be made."""

    name: str
    run: str
    stage: str
    when: When

    @property
    def body(self) -> Mapping[str, Any]:
        """The request, without its namespace."""
        stage = spoken(self.stage)
        labels = {TARGET_RUN: self.run, TARGET_STAGE: stage, TASK_TYPE: self.when.value, IS_LATEST_APPROVAL: "true"}
        spec = {"parentStageRollout": self.run, "targetStage": stage}
        return {"metadata": {"name": self.name, "labels": labels}, "spec": spec}

    def is_asked_by(self, spec: ApprovalSpec) -> bool:
        """Whether a request of this name is this one."""
        return (spec.parent_stage_rollout, spec.target_stage) == (self.run, spoken(self.stage))


def ask(run: str, stage: str, when: When, dialect: Dialect) -> Ask:
    """The request that a run makes before or after a stage."""
    middle = "-before" if when is When.before else "-after" if dialect is Dialect.kubefleet else ""
    return Ask(f"{run}{middle}-{spoken(stage)}", run, stage, when)


def spoken(stage: str) -> str:
    """A stage as it can be part of a name or a label."""
    return _DELETING if stage == DELETE_STAGE else stage
