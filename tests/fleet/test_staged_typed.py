"""The seed's staged update as its readers type it: kubectl in a shell, on both backends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from controlplane import kubeconfig
from controlplane.binaries import Binaries
from fleet import seeds
from fleet.bed import MEMBERS, SECONDS, Backend, Bed, member_cluster
from fleet.masks import masked_table
from fleet.traces import Table, table
from kedge.api.dialect import Dialect
from kedge.api.staged import ClusterApprovalRequest
from kedge.plan.staging.approvals import When, new_approval_request

pytestmark = pytest.mark.timeout(SECONDS)

T = TypeVar("T")
RUN = "clusterstagedupdaterun/example-staged-update-run"
REQUEST = "clusterapprovalrequest/example-staged-update-run-canary"
APPROVED = "'{.status.stagesStatus[1].afterStageTaskStatus[0].conditions[1].message}'"
SNAPSHOT = "clusterresourcesnapshot/crp-staged-update-sample-{}-snapshot"


class Shell:
    """A shell of a user whose kubectl knows the fleet: the hub is the current context, members are others."""

    def __init__(self, folder: Path, kubectl: Path, config: Path) -> None:
        (folder / "kubectl").symlink_to(kubectl)
        mine = {"KUBECONFIG": str(config), "KUBECACHEDIR": str(folder / "cache")}
        self._environment = {**os.environ, **mine, "PATH": f"{folder}:{os.environ['PATH']}"}
        self._folder = folder

    async def __call__(self, line: str) -> str:
        """What a line prints that is typed, which must not fail."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", line),
            env=self._environment,
            cwd=self._folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
        assert process.returncode == 0, f"{line}\n{errors.decode()}"
        return out.decode()

    async def wait(self, what: str, it: str) -> None:
        await self(f"kubectl wait --timeout=300s --for={what} {it}")

    async def placed(self) -> list[str]:
        """The members on which the Deployment is."""
        look = "kubectl --context {} get deployment web -n test-namespace -o name --ignore-not-found"
        return [name for name in MEMBERS if await self(look.format(name))]


Play = Callable[[Shell], Awaitable[T]]


def play(backend: Backend, folder: Path, binaries: Binaries, typing: Play[T]) -> T:
    """Type it at a fleet whose members have the labels of the page."""
    if backend.real is None:
        with _fleet_of_kedge_up(folder / "kubeconfig") as config:
            return asyncio.run(_typed(Shell(folder, binaries["kubectl"], config), typing))
    config = kubeconfig.merge(folder / "kubeconfig", [backend.real[name].kubeconfig for name in ("hub", *MEMBERS)])
    shell = Shell(folder, binaries["kubectl"], config)

    async def on_bed(_: Bed) -> T:
        return await typing(shell)

    return backend.play(on_bed, Dialect.seed)


@contextmanager
def _fleet_of_kedge_up(file: Path) -> Iterator[Path]:
    kedge = [sys.executable, "-m", "kedge"]
    up = [*kedge, "up", "--detach", "--members", str(len(MEMBERS)), "--kubeconfig", str(file)]
    subprocess.run(up, check=True, timeout=300, stdout=subprocess.DEVNULL)
    try:
        yield file
    finally:
        subprocess.run([*kedge, "down", "--kubeconfig", str(file)], check=True, timeout=300, stdout=subprocess.DEVNULL)


async def _typed(shell: Shell, typing: Play[T]) -> T:
    for name in MEMBERS:
        labels: Mapping[str, str] = member_cluster(name)["metadata"]["labels"]
        await shell(f"kubectl label membercluster {name} {' '.join(f'{key}={value}' for key, value in labels.items())}")
    return await typing(shell)


def cells(printed: str) -> Table:
    return masked_table("", table(printed))


def test_the_seeds_manifests_tables_and_approval_typed_with_kubectl(
    backend: Backend, tmp_path: Path, binaries: Binaries
) -> None:
    """All three manifests are applied as they stand, and the run begins its hour.

    At the end it is deleted, and a request that comes too late for it is cleared away.

    Time is real on both backends here: so that it need not be sat out, the run is then made once more, by a strategy
    that differs in nothing but the wait. The whole hour passes in `test_staged_examples.py`, in virtual time.
    """
    manifests = dict(zip(("strategy.yaml", "placement.yaml", "run.yaml"), seeds.staged_texts(), strict=True))
    get_run, _, get_requests, patch, get_requests_again = seeds.typed()

    async def typing(shell: Shell) -> tuple[list[str], list[str], list[list[str]]]:
        await shell("kubectl create namespace test-namespace")
        await shell("kubectl create deployment web --image=app:1 -n test-namespace")
        await shell("kubectl apply -f placement.yaml")
        await shell("kubectl apply -f strategy.yaml")
        await shell.wait("create", SNAPSHOT.format(0))
        await shell("kubectl set image deployment/web app=app:2 -n test-namespace")
        await shell.wait("create", SNAPSHOT.format(1))
        placed = [await shell.placed()]
        await shell("kubectl apply -f run.yaml")
        waits = """jsonpath='{.status.conditions[?(@.type=="Progressing")].reason}'=UpdateRunWaiting"""
        await shell.wait(waits, RUN)
        printed, placed = [await shell(get_run)], [*placed, await shell.placed()]
        await shell("kubectl delete -f run.yaml")
        await shell("sed s/1h/3s/ strategy.yaml | kubectl apply -f -")
        await shell("kubectl apply -f run.yaml")
        await shell.wait("create", REQUEST)
        printed, placed = [*printed, await shell(get_requests)], [*placed, await shell.placed()]
        answer = await shell(seeds.quoted(patch))
        await shell.wait("condition=Succeeded", RUN)
        printed, placed = [*printed, await shell(get_requests_again)], [*placed, await shell.placed()]
        kept = await shell(f"kubectl get {RUN} -o jsonpath={APPROVED}")
        await shell("kubectl delete -f run.yaml")
        await shell.wait("delete", REQUEST)
        await shell("kubectl create -f late.yaml")
        await shell.wait("delete", REQUEST)
        return printed, [answer, kept], placed

    late = new_approval_request("example-staged-update-run", "canary", When.after, Dialect.seed).body
    kind = ClusterApprovalRequest.resource
    manifests["late.yaml"] = json.dumps({"apiVersion": kind.api_version, "kind": kind.kind, **late})
    for name, text in manifests.items():
        (tmp_path / name).write_text(text)
    printed, (answer, kept), placed = play(backend, tmp_path, binaries, typing)
    assert placed == [[], ["cluster-1"], ["cluster-1", "cluster-2"], [*MEMBERS]]
    assert [cells(one) for one in printed] == [cells(one) for one in seeds.tables()]
    assert answer.strip() == seeds.answer_to_patch()
    assert re.fullmatch(r"approved by kubectl-patch at \S+Z: tested as OK: lgtm", kept)
