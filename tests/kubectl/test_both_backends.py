"""A real kubectl shows the same against `kedge up` and against a real control plane."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controlplane.binaries import Binaries
from kubectl.differences import without_differences
from kubectl.masking import masked
from kubectl.script import STEPS, Step
from support.recording.api import RealApi

SECONDS = 300


@dataclass(frozen=True)
class Result:
    """What a step gave."""

    code: int
    output: str


Kubectl = Callable[[list[str], str], Result]


def _kubectl(binary: Path, kubeconfig: Path, context: str, cache: Path) -> Kubectl:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cache), "KUBECTL_EXTERNAL_DIFF": "diff -u"}

    def run(args: list[str], stdin: str) -> Result:
        command = [str(binary), f"--kubeconfig={kubeconfig}", f"--context={context}", f"--cache-dir={cache}", *args]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
        )
        return Result(done.returncode, done.stdout + done.stderr)

    return run


@pytest.fixture(scope="module")
def on_kedge(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("kedge")
    file = folder / "kubeconfig"
    kedge = [sys.executable, "-m", "kedge"]
    # Bare: what a member of a fleet has beside that, Kubernetes has not.
    up = [*kedge, "up", "--bare", "--members", "1", "--kubeconfig", str(file), "--detach"]
    subprocess.run(up, check=True, timeout=300, stdout=subprocess.DEVNULL)
    try:
        yield _kubectl(binaries["kubectl"], file, "cluster-1", folder)
    finally:
        subprocess.run([*kedge, "down", "--kubeconfig", str(file)], check=True, timeout=300, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def ours(on_kedge: Kubectl) -> list[Result]:
    """The script, step by step, on ours."""
    return [_take(on_kedge, step) for step in STEPS]


@pytest.fixture(scope="module")
def theirs(binaries: Binaries, full_api: RealApi, tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """The same on Kubernetes, if that is asked."""
    if not full_api.is_live:
        return []
    cluster = full_api.cluster
    kubectl = _kubectl(binaries["kubectl"], cluster.kubeconfig, cluster.name, tmp_path_factory.mktemp("kubernetes"))
    return [_take(kubectl, step) for step in STEPS]


def _words(args: str) -> list[str]:
    return args.split(" ") if "{" in args else shlex.split(args)


def _take(kubectl: Kubectl, step: Step) -> Result:
    args = _words(step.args)
    if step.during:
        return _take_during(kubectl, step)
    deadline = time.monotonic() + SECONDS
    while True:
        result = kubectl(args, step.stdin)
        if not step.until or step.until in result.output or time.monotonic() > deadline:
            return result
        time.sleep(0.2)


def _take_during(kubectl: Kubectl, step: Step) -> Result:
    """Run it, and meanwhile the rest; with a while before each, so that a watch is told of one at a time."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(kubectl, _words(step.args), step.stdin)
        for other in step.during:
            time.sleep(1.0)
            assert kubectl(_words(other), "").code == 0, other
        return running.result()


def _shown(step: Step, result: Result) -> dict[str, Any]:
    """What counts of what a step gave."""
    lines = without_differences(masked(result.output)).splitlines()
    match step.shown:
        case "last":
            lines = lines[-1:]
        case "sorted":
            lines = sorted(lines)
        case "none":
            lines = []
    return {"code": result.code, "shown": lines}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(len(STEPS)), ids=[step.args[:70] for step in STEPS])
def test_kubectl_shows_the_same(full_api: RealApi, ours: list[Result], theirs: list[Result], number: int) -> None:
    step, here = STEPS[number], ours[number]
    there = full_api.told(f"kubectl {step.args}", lambda: _shown(step, theirs[number]))
    assert (there["code"] != 0) == step.fails, there
    assert _shown(step, here) == there
