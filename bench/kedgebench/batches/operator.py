"""Operator: `kedge operator --batches` as a process of its own."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager

import yaml

from controlplane.cluster import Cluster
from kedge.api.crds import oam_crds, zone_crds
from kedgebench.program import Program, free_port, running

USER = "batch-operator"


async def install_crds(cluster: Cluster) -> None:
    """The kinds of an operator, as `kedge install operator --batches` prints them."""
    kinds = [dict(one) for one in (*zone_crds(), *oam_crds())]
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(kinds))


def operator(cluster: Cluster, namespace: str) -> AbstractAsyncContextManager[Program]:
    """An operator of one namespace, as an admin of its own name, so that the audit log says what it asked for."""
    kubeconfig = cluster.user(USER, ["system:masters"]).kubeconfig
    health = f"127.0.0.1:{free_port()}"
    told = ("--batches", f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", f"--health={health}")
    command = (sys.executable, "-m", "kedge", "operator", *told, "--log-level=warning")
    return running(*command, ready_url=f"http://{health}/readyz")
