"""Runs, as their users handle them: made, approved, stopped, tried again, deleted; at a time that suits nobody."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any

from kedge.api.binding import ClusterResourceBinding
from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import RETRY
from kedge.api.reasons import APPROVED, SUCCEEDED
from kedge.api.staged import ClusterApprovalRequest, ClusterStagedUpdateRun, ClusterStagedUpdateStrategy, RunState
from kedge.kube.client import Client
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.staging.conditions import has_condition, has_ended
from kedge.plan.staging.rollbacks import failed_at
from kedge.plan.text import moment
from simulate.fleets import NAME

Run = ClusterStagedUpdateRun
STRATEGY = "careful"


class Runs:
    """The runs of one placement, and their users."""

    def __init__(self, hub: Client, rng: Random) -> None:
        self._hub = hub
        self._rng = rng
        self._number = 0
        self._free: list[str] = []  # names of runs that were deleted

    # Strategies

    async def set_strategy(self, spec: Mapping[str, Any]) -> None:
        """Make the strategy, or another of it."""
        try:
            await self._hub.create(ClusterStagedUpdateStrategy, {"metadata": {"name": STRATEGY}, "spec": spec})
        except AlreadyExists:
            await self._hub.patch(ClusterStagedUpdateStrategy, STRATEGY, MergePatch({"spec": spec}))

    async def delete_strategy(self) -> None:
        await self._hub.delete(ClusterStagedUpdateStrategy, STRATEGY)

    # Runs

    async def all(self) -> list[Run]:
        return list((await self._hub.list(Run)).items)

    async def live(self) -> list[Run]:
        return [one for one in await self.all() if not has_ended(one.status)]

    async def begin(self, index: str | None = None, *, most: int = 3) -> str:
        """Make a run, unless there are so many; sometimes by a name that one had before. Gives its name."""
        if len(await self.live()) >= most:
            return ""
        self._number += 1
        name = self._free.pop() if self._free and self._rng.random() < 0.7 else f"run-{self._number}"
        spec: dict[str, Any] = {"placementName": NAME, "stagedRolloutStrategyName": STRATEGY}
        if index is not None:
            spec["resourceSnapshotIndex"] = index
        try:
            await self._hub.create(Run, {"metadata": {"name": name}, "spec": spec})
        except AlreadyExists:  # the one that had this name is not gone yet
            name = f"run-{self._number}"
            await self._hub.create(Run, {"metadata": {"name": name}, "spec": spec})
        return name

    async def set_state(self, name: str, state: str) -> None:
        await self._hub.patch(Run, name, MergePatch({"spec": {"state": state}}))

    async def stop(self) -> None:
        found = [one for one in await self.live() if one.spec.state is not RunState.stop]
        if found:
            await self.set_state(self._rng.choice(found).metadata.name, "Stop")

    async def resume(self) -> None:
        found = [one for one in await self.live() if one.spec.state is RunState.stop]
        if found:
            await self.set_state(self._rng.choice(found).metadata.name, "Run")

    async def retry(self) -> None:
        found = {one.metadata.name: at for one in await self.all() if (at := failed_at(one.status)) is not None}
        if found:
            name = self._rng.choice(sorted(found))
            await self._hub.patch(Run, name, MergePatch({"metadata": {"annotations": {RETRY: moment(found[name])}}}))

    async def delete(self, name: str | None = None) -> None:
        found = [one.metadata.name for one in await self.all()]
        if name is None and found:
            name = self._rng.choice(found)
        if name is not None:
            await self._hub.delete(Run, name)
            self._free.append(name)

    async def has_succeeded(self, name: str) -> bool:
        return has_condition((await self._hub.get(Run, name)).status, SUCCEEDED)

    # Requests

    async def _requests(self) -> list[ClusterApprovalRequest]:
        return list((await self._hub.list(ClusterApprovalRequest)).items)

    async def approve_all(self) -> None:
        """Approve all that is asked and not approved."""
        for one in await self._requests():
            said = find_condition(one.status.conditions, APPROVED)
            if said is None or said.status != TRUE:
                await self._say(one, "True")

    async def approve_some(self) -> None:
        """Approve this and that, also twice."""
        for one in await self._requests():
            if self._rng.random() < 0.7:
                await self._say(one, "True")

    async def revoke(self) -> None:
        """Approve something, and take it back; or only take it back."""
        for one in await self._requests():
            if self._rng.random() < 0.5:
                await self._say(one, "True")
            await self._say(one, "False")

    async def delete_request(self) -> None:
        found = await self._requests()
        if found:
            await self._hub.delete(ClusterApprovalRequest, self._rng.choice(found).metadata.name)

    async def _say(self, request: ClusterApprovalRequest, status: str) -> None:
        """As kubectl patches it: with only what the user types."""
        said = {
            "type": APPROVED,
            "status": status,
            "reason": "tested",
            "message": "lgtm" if status == TRUE else "not yet",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": request.metadata.generation,
        }
        with suppress(NotFound):
            await self._hub.patch(
                ClusterApprovalRequest,
                request.metadata.name,
                MergePatch({"status": {"conditions": [said]}}),
                subresource="status",
            )

    # Bindings

    async def misplace(self) -> None:
        """Point a binding at the first resources there were."""
        bindings = (await self._hub.list(ClusterResourceBinding)).items
        bound = [one.metadata.name for one in bindings if one.spec.state == "Bound"]
        if found := [name for name in bound if name.startswith(f"{NAME}-")]:
            name = self._rng.choice(found)
            await self._hub.patch(
                ClusterResourceBinding, name, MergePatch({"spec": {"resourceSnapshotName": f"{NAME}-0-snapshot"}})
            )
