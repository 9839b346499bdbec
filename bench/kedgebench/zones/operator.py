"""Operator: `kedge rollout-operator` as a process of its own."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager

import yaml

from controlplane.cluster import Cluster
from kedge.api.crds import zone_crds
from kedgebench.program import Program, free_port, running

USER = "zone-operator"


async def install_crds(cluster: Cluster) -> None:
    """The kinds of an operator, as `kedge install operator` prints them."""
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(map(dict, zone_crds())))


def operator(cluster: Cluster, namespace: str, *flags: str) -> AbstractAsyncContextManager[Program]:
    """An operator of one namespace, as an admin of its own name, so that the audit log says what it asked for."""
    kubeconfig = cluster.user(USER, ["system:masters"]).kubeconfig
    port = free_port()
    told = (
        f"-kubernetes.config-file={kubeconfig}",
        f"-kubernetes.api-url={cluster.url}",
        f"-kubernetes.namespace={namespace}",
        f"-server.port={port}",
        "-log.level=warn",
        *flags,
    )
    command = (sys.executable, "-m", "kedge", "rollout-operator", *told)
    return running(*command, ready_url=f"http://127.0.0.1:{port}/ready")
