"""More placements: one of another namespace, and a namespaced one of what is in it, beside the one that is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kedge.api.core import ConfigMap, Namespace
from kedge.api.placement import ClusterResourcePlacement, ResourcePlacement
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.simulate.simulation import InvariantViolated, Simulation

NAMESPACE, CONTENT = "other-ns", "prices"


class MorePlacements:
    """The others, and how they must end."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._hub = simulation.client("hub")

    async def place(self) -> None:
        """A namespace everywhere, and what is in it by a placement of its own."""
        room = {"group": "", "version": "v1", "kind": "Namespace", "name": NAMESPACE, "selectionScope": "NamespaceOnly"}
        content = {"group": "", "version": "v1", "kind": "ConfigMap", "name": CONTENT}
        every = {"policy": {"placementType": "PickAll"}}
        await self._hub.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self._hub.create(ConfigMap, {"metadata": {"name": CONTENT, "namespace": NAMESPACE}, "data": {"tea": "2"}})
        await self._hub.create(
            ClusterResourcePlacement, {"metadata": {"name": "other"}, "spec": {"resourceSelectors": [room], **every}}
        )
        twin = {"metadata": {"name": "twin", "namespace": NAMESPACE}, "spec": {"resourceSelectors": [content], **every}}
        await self._hub.create(ResourcePlacement, twin)

    async def arrive(self, members: Sequence[str], within: float = 3600.0) -> None:
        """A last change of what they place reaches every member."""
        await self._hub.patch(ConfigMap, CONTENT, MergePatch({"data": {"tea": "3"}}), NAMESPACE)
        deadline = self._simulation.loop.time() + within
        while missing := [name for name in members if not await self._has_arrived(name)]:
            if self._simulation.loop.time() >= deadline:
                raise InvariantViolated(
                    f"within {within:g} s what the other placements place is on {', '.join(missing)}"
                )
            await asyncio.sleep(5.0)

    async def _has_arrived(self, member: str) -> bool:
        try:
            found = await self._simulation.client(member).get(ConfigMap, CONTENT, NAMESPACE)
        except NotFound:
            return False
        return found.data.get("tea") == "3"
