"""Trait kind: RolloutTraits, which refer to workloads by kind and name, or to revisions of a component.

A trait of workloads moves what its users wrote. A trait of revisions finds or creates the workloads of the revisions.
Either keeps workloads of old revisions, without pods.

A workload that is named alone, or as its own source, is changed in place if its kind can be. Which it is, is decided on
what it is like until its size is known; from then on the status says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference, RolloutPlan
from kedge.api.oam.rollout_states import BEFORE_BATCHES, RollingState
from kedge.api.oam.rollouts import RolloutTrait, RolloutTraitStatus
from kedge.controllers.batch.located import FindRollouts, Located, LocateResult, WorkloadPlace
from kedge.controllers.batch.revisions import REVISION, Revisions, revision_rollout_of
from kedge.controllers.batch.workloads import WorkloadAccess
from kedge.kube.source import Source
from kedge.plan.batching.moves import WorkloadRef, Workloads
from kedge.plan.batching.old_revisions import changes_alone
from kedge.plan.batching.records import is_in_place, recorded_refs, target_ref
from kedge.plan.oam.workloads import handler_of


class TraitKind:
    """Reads RolloutTraits."""

    kind: Final = RolloutTrait

    def __init__(self, revisions: Revisions, workloads: WorkloadAccess) -> None:
        self._revisions = revisions
        self._workloads = workloads

    def plan(self, rollout: RolloutTrait) -> RolloutPlan:
        return rollout.spec.rollout_plan

    def wanted(self, rollout: RolloutTrait) -> str:
        ref = rollout.spec.target_ref
        return f"{ref.api_version}/{ref.kind}/{ref.name}"

    def moving(self, status: RolloutTraitStatus) -> str:
        return status.last_target

    def with_moving(self, rollout: RolloutTrait, status: RolloutTraitStatus, target: str) -> RolloutTraitStatus:  # noqa: ARG002
        return replace(status, last_target=target)

    async def locate(self, rollout: RolloutTrait, status: RolloutTraitStatus, target: str) -> LocateResult:
        namespace = rollout.metadata.namespace or ""
        aim = ref_of(target, namespace)
        if is_revision(aim):
            return await self._of_revisions(rollout, status, aim.name)
        asked = [_ref(one, namespace) for one in rollout.spec.source_ref]
        last = target_ref(status, namespace) or (ref_of(status.last_target, namespace) if status.last_target else None)
        before = [last] if last is not None else []
        is_new = status.rolling_state in (None, RollingState.locating)  # a source of another kind is a mistake then
        known = [one for one in (*asked, *recorded_refs(status, namespace), *before) if one.kind == aim.kind]
        sources = [*asked, *known] if is_new else known
        others = dict.fromkeys(one for one in sources if one != aim)
        uids = {_ref(one, namespace): one.uid for one in rollout.spec.source_ref} if is_new else {}
        places = tuple(WorkloadPlace(one, uid=uids.get(one, ""), is_recorded=one not in asked) for one in others)
        uid = rollout.spec.target_ref.uid if is_new else ""
        in_place = not others and (aim in asked or await self._is_in_place(rollout, status, aim))
        return Located(WorkloadPlace(aim, uid=uid), places, in_place=in_place)

    async def _is_in_place(self, rollout: RolloutTrait, status: RolloutTraitStatus, aim: WorkloadRef) -> bool:
        """Whether what is named alone is changed in place."""
        handler = handler_of({"apiVersion": aim.api_version, "kind": aim.kind})
        if handler is None:
            return False
        if status.rolling_state not in (None, *BEFORE_BATCHES):
            return is_in_place(status, aim)
        return changes_alone(handler, await self._workloads.get(aim), rollout.spec.rollout_plan.target_size)

    async def _of_revisions(self, rollout: RolloutTrait, status: RolloutTraitStatus, target: str) -> LocateResult:
        namespace = rollout.metadata.namespace or ""
        sources = [_ref(one, namespace) for one in rollout.spec.source_ref]
        last = ref_of(status.last_target, namespace) if status.last_target else None
        asked = revision_rollout_of(
            rollout.metadata,
            target,
            last=last.name if last is not None and is_revision(last) else "",
            named=tuple(one.name for one in sources if is_revision(one)),
            named_workloads=tuple(one for one in sources if not is_revision(one)),
        )
        return await self._revisions.locate(asked, status)

    def annotations(self, target: WorkloadRef) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    async def applications(self, rollout: Any, status: Any, workloads: Workloads | None) -> tuple[()]:  # noqa: ARG002
        return ()

    def sources(self, find: FindRollouts) -> Iterable[Source]:
        return self._revisions.sources(find, _revisions_of)


def is_revision(ref: WorkloadRef) -> bool:
    """Whether what is referred to is no workload, but the revision of a component."""
    return (ref.api_version, ref.kind) == (REVISION.api_version, REVISION.kind)


def ref_of(text: str, namespace: str) -> WorkloadRef:
    """The workload that a status names."""
    api_version, kind, name = text.rsplit("/", 2)
    return WorkloadRef(api_version, kind, namespace, name)


def _revisions_of(rollout: RolloutTrait) -> Iterable[str]:
    refs = (rollout.spec.target_ref, *rollout.spec.source_ref)
    return [one.name for one in refs if one.kind == REVISION.kind]


def _ref(one: ObjectReference, namespace: str) -> WorkloadRef:
    return WorkloadRef(one.api_version, one.kind, namespace, one.name)
