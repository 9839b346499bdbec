"""Pod trouble: one pod dies, crashes in a loop, or is never ready, for a while."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.simulate.simulation import Simulation

CRASH_LOOP, NEVER_READY = "kedge.dev/crash-loop", "kedge.dev/never-ready"


async def befall(simulation: Simulation, client: Client, namespace: str, pod: str, kind: str, seconds: float) -> None:
    """One kind of trouble for this pod; it dies of all that leave no mark."""
    simulation.trace.remark("trouble", f"{kind}: {pod}")
    annotation = {"crash": CRASH_LOOP, "never ready": NEVER_READY}.get(kind)
    with suppress(NotFound):
        if annotation:
            await mark(client, namespace, pod, annotation, "true")
        else:
            await client.delete(Pod, pod, namespace)
    await asyncio.sleep(seconds)
    if annotation:
        with suppress(NotFound):
            await mark(client, namespace, pod, annotation, None)


async def mark(client: Client, namespace: str, pod: str, annotation: str, value: str | None) -> None:
    await client.patch(Pod, pod, MergePatch({"metadata": {"annotations": {annotation: value}}}), namespace)
