"""Trait kind: RolloutTraits, which refer to workloads by kind and name."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference, RolloutPlan
from kedge.api.oam.rollout_status import RollingState
from kedge.api.oam.rollouts import RolloutTrait, RolloutTraitStatus
from kedge.controllers.batch.located import Answer, Located, Place
from kedge.plan.batching.moves import WorkloadRef
from kedge.plan.batching.records import recorded_refs


class TraitKind:
    """Reads RolloutTraits."""

    kind: Final = RolloutTrait

    def plan(self, rollout: RolloutTrait) -> RolloutPlan:
        return rollout.spec.rollout_plan

    def wanted(self, rollout: RolloutTrait) -> str:
        ref = rollout.spec.target_ref
        return f"{ref.api_version}/{ref.kind}/{ref.name}"

    def moving(self, status: RolloutTraitStatus) -> str:
        return status.last_target

    def with_moving(self, rollout: RolloutTrait, status: RolloutTraitStatus, target: str) -> RolloutTraitStatus:  # noqa: ARG002
        return replace(status, last_target=target)

    async def locate(self, rollout: RolloutTrait, status: RolloutTraitStatus, target: str) -> Answer:
        namespace = rollout.metadata.namespace or ""
        aim = ref_of(target, namespace)
        asked = [_ref(one, namespace) for one in rollout.spec.source_ref]
        before = [ref_of(status.last_target, namespace)] if status.last_target else []
        is_new = status.rolling_state in (None, RollingState.locating)  # a source of another kind is a mistake then
        known = [one for one in (*asked, *recorded_refs(status, namespace), *before) if one.kind == aim.kind]
        sources = [*asked, *known] if is_new else known
        others = dict.fromkeys(one for one in sources if one != aim)
        uids = {_ref(one, namespace): one.uid for one in rollout.spec.source_ref} if is_new else {}
        places = tuple(Place(one, uid=uids.get(one, "")) for one in others)
        uid = rollout.spec.target_ref.uid if is_new else ""
        return Located(Place(aim, uid=uid), places, in_place=aim in asked and not others)


def ref_of(text: str, namespace: str) -> WorkloadRef:
    """The workload that a status names."""
    api_version, kind, name = text.rsplit("/", 2)
    return WorkloadRef(api_version, kind, namespace, name)


def _ref(one: ObjectReference, namespace: str) -> WorkloadRef:
    return WorkloadRef(one.api_version, one.kind, namespace, one.name)
