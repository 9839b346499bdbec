"""Revision kind: Rollouts, which refer to the revisions of one component by name.

What is moved from is what the status says ran last; `sourceRevisionName` counts for the first time only. After a
success the Deployments of old revisions are deleted. A workload that a Rollout had to create belongs to the Rollout, or
to the Rollout's own owners if it has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.meta import ObjectMeta
from kedge.api.oam.keys import WORKLOAD_GVK, WORKLOAD_NAME
from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollouts import Rollout, RolloutRevisionStatus
from kedge.controllers.batch.located import FindRollouts, LocateResult
from kedge.controllers.batch.revisions import Revisions, revision_rollout_of
from kedge.kube.source import Source
from kedge.plan.batching.moves import WorkloadRef, Workloads

_BESIDE: Final = {"controller": False, "blockOwnerDeletion": False}


class RevisionKind:
    """Reads Rollouts."""

    kind: Final = Rollout

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions

    def plan(self, rollout: Rollout) -> RolloutPlan:
        return rollout.spec.rollout_plan

    def wanted(self, rollout: Rollout) -> str:
        return rollout.spec.target_revision_name

    def moving(self, status: RolloutRevisionStatus) -> str:
        return status.last_target_revision

    def with_moving(self, rollout: Rollout, status: RolloutRevisionStatus, target: str) -> RolloutRevisionStatus:  # noqa: ARG002
        before = [one.revision for one in status.sources if one.revision != target]
        return replace(status, last_target_revision=target, last_source_revision=before[-1] if before else "")

    async def locate(self, rollout: Rollout, status: RolloutRevisionStatus, target: str) -> LocateResult:
        spec = rollout.spec
        asked = revision_rollout_of(
            rollout.metadata,
            target,
            last=status.last_target_revision,
            component=spec.component_name,
            named=(spec.source_revision_name,) if spec.source_revision_name else (),
            owners=owners_of(rollout.metadata),
            removes_sources=True,
        )
        return await self._revisions.locate(asked, status)

    def annotations(self, target: WorkloadRef) -> Mapping[str, str]:
        kind = {"apiVersion": target.api_version, "kind": target.kind}
        return {WORKLOAD_NAME: target.name, WORKLOAD_GVK: msgspec.json.encode(kind).decode()}

    async def applications(self, rollout: Any, status: Any, workloads: Workloads | None) -> tuple[()]:  # noqa: ARG002
        return ()

    def sources(self, find: FindRollouts) -> Iterable[Source]:
        return self._revisions.sources(find, _revisions_of)


def owners_of(meta: ObjectMeta) -> tuple[Mapping[str, Any], ...]:
    """Whom the workloads that a Rollout creates belong to."""
    if meta.owner_references:
        return tuple(to_builtins(one) | _BESIDE for one in meta.owner_references)
    resource = Rollout.resource
    own = {"apiVersion": resource.api_version, "kind": resource.kind, "name": meta.name, "uid": meta.uid}
    return (own | _BESIDE,)


def _revisions_of(rollout: Rollout) -> Iterable[str]:
    return rollout.spec.target_revision_name, rollout.spec.source_revision_name
