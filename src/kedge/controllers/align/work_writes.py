"""Work writes: the Works of a binding are made, changed and deleted as it was planned.

A Work is written only if it is to ask for something else. The labels and annotations by which Karmada marks what it
propagates come with that write: they alone are no reason for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import APPLIED_CLUSTER_OVERRIDES, APPLIED_OVERRIDES, EXECUTION_FINALIZER, WORK_ID
from kedge.api.karmada.works import Work
from kedge.controllers.align.binding_kinds import BindingKind
from kedge.controllers.gather import gather
from kedge.kube.client import Client
from kedge.kube.patches import difference
from kedge.plan.aligning.binding import BindingPlan
from kedge.plan.aligning.names import work_namespace
from kedge.plan.aligning.refusing import work_name_of
from kedge.plan.aligning.work_spec import is_same, shown_spec, work_spec

MANAGER: Final = "kedge-align"


class WorkWrites:
    """The Works of bindings of one kind."""

    def __init__(self, client: Client, kind: BindingKind) -> None:
        self._client, self._kind = client, kind

    async def write(self, binding: ResourceBinding, plan: BindingPlan, works: Mapping[str, Work], uid: str) -> None:
        """Write what is planned, given the Works there are by cluster. `uid`: which object the resource is."""
        calls = [
            partial(self._write_work, binding, plan, name, work_spec(binding.spec, name, manifest, uid=uid), works)
            for name, manifest in plan.manifests.items()
        ]
        gone = [partial(self._client.remove, Work, works[name].metadata) for name in plan.delete]
        await gather([*calls, *gone])

    async def _write_work(
        self,
        binding: ResourceBinding,
        plan: BindingPlan,
        cluster: str,
        spec: dict[str, Any],
        works: Mapping[str, Work],
    ) -> None:
        made, there = plan.overridden.get(cluster), works.get(cluster)
        notes = {
            **self._kind.notes(binding.metadata),
            APPLIED_OVERRIDES: _listed(made.policies) if made is not None else None,
            APPLIED_CLUSTER_OVERRIDES: _listed(made.cluster_policies) if made is not None else None,
        }
        if there is None:
            held_back = {**spec, "suspendDispatching": True}
            created = await self._client.create(
                Work, self._new_work(binding, cluster, notes, held_back), manager=MANAGER
            )
            if not spec["suspendDispatching"]:
                await self._client.amend(
                    Work, created.metadata, {"spec": {"suspendDispatching": None}}, manager=MANAGER
                )
            return
        before = {name: there.metadata.annotations.get(name) for name in notes}
        is_same_spec = is_same(shown_spec(there), spec)
        if is_same_spec and before == notes:
            return
        labels = {**self._labels(binding, cluster), **there.metadata.labels}
        change: dict[str, Any] = {
            "metadata": {
                "annotations": difference(before, notes),
                "labels": difference(there.metadata.labels, labels),
            }
        }
        if not is_same_spec:
            change["spec"] = spec
        await self._client.amend(Work, there.metadata, change, manager=MANAGER)

    def _new_work(
        self, binding: ResourceBinding, cluster: str, notes: Mapping[str, str | None], spec: Mapping[str, Any]
    ) -> dict[str, Any]:
        meta = {
            "name": work_name_of(binding),
            "namespace": work_namespace(cluster),
            "labels": self._labels(binding, cluster),
            "annotations": {name: note for name, note in notes.items() if note is not None},
            "finalizers": [EXECUTION_FINALIZER],
        }
        return {"metadata": meta, "spec": {name: value for name, value in spec.items() if value is not None}}

    def _labels(self, binding: ResourceBinding, cluster: str) -> dict[str, str]:
        """By which Karmada finds the Works of a binding, and what a Work made."""
        name = f"{work_namespace(cluster)}/{work_name_of(binding)}"
        own_id = binding.metadata.labels.get(self._kind.permanent_id)
        return {
            **({self._kind.permanent_id: own_id} if own_id else {}),
            WORK_ID: str(uuid5(NAMESPACE_URL, f"{binding.metadata.uid}/{name}")),
        }


def _listed(names: tuple[str, ...]) -> str | None:
    return ",".join(names) or None
