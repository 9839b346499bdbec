"""The process of `kedge align`."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from kedge import __version__
from kedge.cli.processes import LeaderOptions, lead, leader_options, run_until_stopped
from kedge.kube.metrics import Metrics
from kedge.roles import add_align

LEASE: Final = "kedge-align"
NO_KARMADA: Final = "this is no API server of a Karmada: name its kubeconfig with --kubeconfig"
log = logging.getLogger("kedge")


def run_align(kubeconfig: Path | None, context: str | None, **told: Any) -> None:
    """Run beside a Karmada until told to stop."""
    leader = leader_options(kubeconfig, context, **told)
    run_until_stopped(_align(leader), leader.process.log_level, leader.process.log_format)


async def _align(told: LeaderOptions) -> None:
    async with AsyncExitStack() as stack:
        manager, karmada = await lead(stack, told, LEASE, "karmada", Metrics(process=True), if_missing=NO_KARMADA)
        add_align(manager, karmada)
        log.info("Kedge %s: beside a Karmada", __version__)
        await manager.run()
