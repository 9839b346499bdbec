"""Deciding: how long one decision takes: a release of a workload in many clusters, of which none has begun."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.works import Work
from kedge.plan.aligning.binding import BindingInput, BoundCluster, plan_binding
from kedge.plan.aligning.interpreter import sequence_of
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.aligning.scheduling import CandidateCluster
from kedge.plan.fields import Object
from kedgebench.alignment.workload import ALIGNED, binding, deployment
from kedgebench.machine import load as machine_load

EACH = 10  # pods of each cluster
_OBJECT = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web"}


async def measure(clusters: int, decisions: int) -> dict[str, Any]:
    """Task: seconds of the clock, and of the CPU, that each of many decisions takes."""
    seen = _seen(clusters)
    for _ in range(3):
        plan_binding(seen)  # to warm up
    wall, cpu = [], []
    for _ in range(decisions):
        begun, spent = time.perf_counter(), time.process_time()
        plan = plan_binding(seen)
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - spent)
    assert plan.alignment is not None
    assert plan.alignment.specs
    return {"wall": wall, "cpu": cpu, "granted": len(plan.alignment.specs), "load": machine_load()}


def _seen(clusters: int) -> BindingInput:
    names = [f"cluster-{number:03}" for number in range(clusters)]
    spec = msgspec.convert(binding(ALIGNED, dict.fromkeys(names, EACH))["spec"], BindingSpec)
    new = {name: BoundCluster(CandidateCluster(name)) for name in names}
    first = plan_binding(BindingInput(spec, deployment(ALIGNED, clusters * EACH, "10%"), new))
    there = {
        name: BoundCluster(CandidateCluster(name), work=_reported(manifest))
        for name, manifest in first.manifests.items()
    }
    return BindingInput(spec, deployment(ALIGNED, clusters * EACH, "10%", 2), there, ledger=ledger_text(first.ledger))


def _reported(manifest: Object) -> Work:
    """A Work of which the cluster reports that all is there."""
    status = {"generation": 1, "observedGeneration": 1, "alignmentSeq": sequence_of(manifest)}
    status |= dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), EACH)
    reported = {"manifestStatuses": [{"identifier": _OBJECT, "status": status}]}
    return msgspec.convert({"spec": {"workload": {"manifests": [manifest]}}, "status": reported}, Work)
