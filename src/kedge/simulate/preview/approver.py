"""Approver: approves whatever a staged run asks for, some time after it asked."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from msgspec import to_builtins

from kedge.api.condition import TRUE, find_condition, new_condition
from kedge.api.staged import ApprovalRequest, ClusterApprovalRequest
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key

APPROVED: Final = "Approved"
MANAGER: Final = "kedge-cli"


class Approver:
    """Approves requests of one of the two kinds."""

    def __init__(
        self, hub: Cluster, kind: type[ClusterApprovalRequest | ApprovalRequest], *, clock: Clock, after: float
    ) -> None:
        self._client = hub.client
        self._kind: Any = kind
        self._clock = clock
        self._after = after
        self._requests: Cache[Any] = hub.cache(self._kind)
        self.controller = Controller(
            f"approver of {self._kind.resource.plural}", self.reconcile, [hub.watch(self._requests)]
        )

    async def reconcile(self, key: Key) -> Outcome:
        request = self._requests.get(key.name, key.namespace)
        if request is None or find_condition(request.status.conditions, APPROVED) is not None:
            return Outcome.done
        now = self._clock.now()
        asked = request.metadata.creation_timestamp or now
        left = (asked + timedelta(seconds=self._after) - now).total_seconds()
        if left > 0:
            return Outcome.again(after=left)
        with suppress(NotFound):
            await self._approve(request)
        return Outcome.done

    async def _approve(self, request: Any) -> None:
        meta = request.metadata
        said = "approved for the preview"
        approved = new_condition(APPROVED, TRUE, "Previewed", said, now=self._clock.now(), generation=meta.generation)
        conditions = [*request.status.conditions, approved]
        await self._client.patch(
            self._kind,
            meta.name,
            MergePatch({"status": {"conditions": to_builtins(conditions)}}),
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            subresource="status",
            manager=MANAGER,
        )
