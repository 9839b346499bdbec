"""Run writes: the few things staged runs do to objects, each only to the object that was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import to_builtins

from kedge.api.binding import BindingState
from kedge.api.condition import TRUE, Condition, set_condition
from kedge.api.fleet import RUN_FINALIZER
from kedge.api.placement_kinds import Approval, Binding, PlacementKinds, Run
from kedge.api.reasons import APPROVAL_ACCEPTED, REQUEST_ACCEPTED, ROLLOUT_STARTED, STARTED
from kedge.api.rollout import ApplyStrategy
from kedge.api.staged import ApprovalCondition, ClusterStagedUpdateRun
from kedge.api.staged_status import RunStatus
from kedge.controllers.hub.binding_writes import BindingWrites
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.patches import difference
from kedge.plan.staging.approvals import NewApprovalRequest
from kedge.plan.staging.rollbacks import is_rollback_of, rollback_name, rollback_of

MANAGER: Final = "kedge-staged-runs"


class RunWrites:
    """Of runs of one kind."""

    def __init__(self, client: Client, kinds: PlacementKinds, clock: Clock, pointed: PointedBindings) -> None:
        self._bindings = BindingWrites(client, kinds, manager=MANAGER, pointed=pointed)
        self._client = client
        self._kinds = kinds
        self._clock = clock

    # The run

    async def hold(self, run: Run) -> Run:
        """The run, which cannot go without us from now on."""
        if RUN_FINALIZER in run.metadata.finalizers:
            return run
        return await self._finalize(run, [*run.metadata.finalizers, RUN_FINALIZER])

    async def release(self, run: Run) -> None:
        """Let go of a run."""
        with suppress(NotFound):
            await self._finalize(run, [one for one in run.metadata.finalizers if one != RUN_FINALIZER])

    async def _finalize(self, run: Run, finalizers: Sequence[str]) -> Run:
        return await self._change_run(run, {"metadata": {"finalizers": list(finalizers)}})

    async def say(self, run: Run, status: RunStatus) -> ClusterStagedUpdateRun:
        """Have the run say this, if it is still as it was seen."""
        said = difference(to_builtins(run.status, str_keys=True), to_builtins(status, str_keys=True))
        return await self._change_run(run, {"status": said}, "status")

    async def _change_run(
        self, run: Run, body: dict[str, Any], subresource: str | None = None
    ) -> ClusterStagedUpdateRun:
        meta = run.metadata
        return await self._client.amend(self._kinds.run, meta, body, manager=MANAGER, subresource=subresource)

    async def roll_back(self, run: Run) -> None:
        """Make the run that takes this one back, unless it is there."""
        await roll_back(self._client, self._kinds, run, manager=MANAGER)

    # Bindings

    async def point(self, run: Run, binding: Binding, resources: str) -> None:
        """Give a cluster the run's resources, and say so of the binding as it is then."""
        strategy = run.status.applied_strategy or ApplyStrategy()
        spec = binding.spec
        is_there = spec.state == BindingState.bound and spec.resource_snapshot_name == resources
        if not is_there or spec.apply_strategy != strategy:
            binding = await self._bindings.point(binding, resources, strategy)
        message = f"{spec.target_cluster} was given {resources} by run {run.metadata.name}"
        said = self._condition(ROLLOUT_STARTED, STARTED, message, binding.metadata.generation)
        await self._bindings.set_rollout_started(binding, set_condition(binding.status.conditions, Condition(**said)))

    async def remove(self, binding: Binding) -> None:
        """Take a cluster that is no longer picked out."""
        await self._bindings.remove(binding)

    # Requests for approval

    async def request_approval(self, run: Run, asked: NewApprovalRequest) -> None:
        """Make a request. If there is one of that name already, the cache will show it in a moment."""
        with suppress(AlreadyExists):
            await self._client.create(self._kinds.approval, asked.body, run.metadata.namespace, manager=MANAGER)

    async def accept(self, request: Approval) -> None:
        """Take note that this was approved, unless that was just taken back."""
        said = self._condition(APPROVAL_ACCEPTED, REQUEST_ACCEPTED, "the run goes on", request.metadata.generation)
        conditions = set_condition(request.status.conditions, ApprovalCondition(**said))
        meta = request.metadata
        await self._client.amend(
            self._kinds.approval,
            meta,
            {"status": {"conditions": to_builtins(conditions)}},
            manager=MANAGER,
            subresource="status",
        )

    async def withdraw(self, request: Approval) -> None:
        """Delete a request whose run goes."""
        if request.metadata.deletion_timestamp is None:
            await self._client.remove(self._kinds.approval, request.metadata)

    def _condition(self, kind: str, reason: str, message: str, generation: int) -> dict[str, Any]:
        return {
            "type": kind,
            "status": TRUE,
            "reason": reason,
            "message": message,
            "last_transition_time": self._clock.now(),
            "observed_generation": generation,
        }


async def roll_back(client: Client, kinds: PlacementKinds, run: Run, *, manager: str) -> tuple[str, bool]:
    """The name of the run that takes this one back, and whether it had to be made."""
    number, namespace = 1, run.metadata.namespace
    while True:
        name = rollback_name(run, number)
        try:
            await client.create(kinds.run, rollback_of(run, number), namespace, manager=manager)
        except AlreadyExists:
            if is_rollback_of(await client.get(kinds.run, name, namespace), run):
                return name, False
            number += 1
        else:
            return name, True
