"""Binding writes: all that is written to a binding once it exists, and by whom.

* The scheduler creates it with its cluster and its policy, marks it `Unscheduled`, and has a finalizer of its own.
* What moves its placement (`Rollout`, or `StagedRuns` if the strategy is External) makes it `Bound`, writes its
  resources, its apply strategy, how many pods it is charged with and the condition `RolloutStarted`, and removes it.
* `Works` writes the other conditions and the failed placements, and has a finalizer.

Every part has one owner, and an owner never changes the parts of another. All conditions are in one list, which a merge
patch replaces whole. So each write is refused if the binding is not in the version that was read, and is decided anew.

A binding that moves is written twice by its owner: where it points, then `RolloutStarted` for the generation that made.
If the second is lost, the next look finds it missing.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from kedge.api.binding import BindingState, BindingStatus
from kedge.api.condition import Condition
from kedge.api.fleet import PODS_CHARGED
from kedge.api.placement_kinds import Binding, PlacementKinds
from kedge.api.rollout import ApplyStrategy
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.kube.client import Client
from kedge.kube.patches import without_managed_fields


class BindingWrites:
    """The writes of one controller to bindings of one kind."""

    def __init__(
        self, client: Client, kinds: PlacementKinds, *, manager: str, pointed: PointedBindings | None = None
    ) -> None:
        """`pointed` is told of every binding that is pointed."""
        self._client = client
        self._kinds = kinds
        self._manager = manager
        self._pointed = pointed

    # What moves the placement

    async def point(
        self, binding: Binding, resources: str, strategy: ApplyStrategy | None = None, *, charge: int | None = None
    ) -> Binding:
        """Give a cluster these resources; and this apply strategy, if it has another one. `charge`: how many pods may
        be lacking there from now on, if that is counted.
        """
        spec: dict[str, Any] = {"state": BindingState.bound.value, "resourceSnapshotName": resources}
        if strategy is not None:
            spec["applyStrategy"] = spelled_out(strategy)
        body: dict[str, Any] = {"spec": spec}
        if charge is not None:
            body["metadata"] = {"annotations": {PODS_CHARGED: str(charge)}}
        pointed = await self._change(binding, without_managed_fields(body))
        if self._pointed is not None:
            self._pointed.add(pointed)
        return pointed

    async def credit(self, binding: Binding) -> None:
        """Charge a cluster with pods no longer."""
        await self._change(binding, without_managed_fields({"metadata": {"annotations": {PODS_CHARGED: None}}}))

    async def apply_with(self, binding: Binding, strategy: ApplyStrategy) -> None:
        """Give a cluster another apply strategy for what it has."""
        await self._change(binding, without_managed_fields({"spec": {"applyStrategy": spelled_out(strategy)}}))

    async def set_rollout_started(self, binding: Binding, conditions: tuple[Condition, ...]) -> None:
        """Write these conditions, of which only RolloutStarted differs; nothing if it does not."""
        if conditions != binding.status.conditions:
            await self._change(binding, {"status": {"conditions": to_builtins(conditions)}}, "status")

    async def remove(self, binding: Binding) -> None:
        """Take a cluster out of its placement."""
        await self._client.remove(self._kinds.binding, binding.metadata)

    # Works

    async def set_finalizers(self, binding: Binding, finalizers: list[str]) -> Binding:
        return await self._change(binding, without_managed_fields({"metadata": {"finalizers": finalizers}}))

    async def set_work_status(self, binding: Binding, status: BindingStatus) -> Binding:
        """Write this status, of which RolloutStarted is as it was; nothing if it is the same."""
        if status == binding.status:
            return binding
        return await self._change(binding, {"status": _all_of(status)}, "status")

    async def _change(self, binding: Binding, body: dict[str, Any], subresource: str | None = None) -> Binding:
        kind, meta = self._kinds.binding, binding.metadata
        return await self._client.amend(kind, meta, body, manager=self._manager, subresource=subresource)


def spelled_out(strategy: ApplyStrategy) -> dict[str, Any]:
    """All fields of it, so that a merge leaves nothing of another one."""
    config = strategy.server_side_apply_config
    return {
        "type": strategy.type.value,
        "comparisonOption": strategy.comparison_option.value,
        "whenToApply": strategy.when_to_apply.value,
        "whenToTakeOver": strategy.when_to_take_over.value,
        "allowCoOwnership": strategy.allow_co_ownership or None,
        "serverSideApplyConfig": None if config is None else {"force": config.force},
    }


def _all_of(status: BindingStatus) -> dict[str, object]:
    """With nothing left of what was there before."""
    lists = {
        "failedPlacements": status.failed_placements,
        "driftedPlacements": status.drifted_placements,
        "diffedPlacements": status.diffed_placements,
    }
    return {"conditions": status.conditions, **{name: found or None for name, found in lists.items()}}
