"""Argo: the controller of Argo Rollouts as a process of its own, with its default flags."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from controlplane.cluster import Cluster
from kedgebench.batches import argo_build
from kedgebench.program import Program, free_port, running
from kedgebench.waiting import until_so

USER = "argo-rollouts"


async def install_crds(cluster: Cluster) -> None:
    for file in sorted((argo_build.folder() / argo_build.CRDS).glob("*-crd.yaml")):
        await cluster.kubectl("apply", "--server-side", "-f", str(file))

    async def are_served() -> bool:
        return (await cluster.request("GET", "/apis/argoproj.io/v1alpha1/rollouts")).status == 200

    await until_so(are_served, every=0.2)


def controller(cluster: Cluster, namespace: str) -> AbstractAsyncContextManager[Program]:
    """A controller of one namespace, as an admin of its own name."""
    kubeconfig = cluster.user(USER, ["system:masters"]).kubeconfig
    health = free_port()
    told = (
        f"--kubeconfig={kubeconfig}",
        "--namespaced",
        f"--namespace={namespace}",
        f"--healthzPort={health}",
        f"--metricsPort={free_port()}",
    )
    command = (str(argo_build.folder() / argo_build.PROGRAM), *told)
    return running(*command, ready_url=f"http://127.0.0.1:{health}/healthz", told=False)
