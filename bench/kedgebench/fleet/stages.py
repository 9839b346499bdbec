"""Stages: a fifth of the clusters, then three tenths, then half; half of a stage at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kedgebench.fleet.release import WEB, Body

STAGES: Final[Mapping[str, int]] = {"staging": 20, "canary": 30, "production": 50}
"""Percent of the clusters in each."""
LABEL: Final = "stage"
CONCURRENCY: Final = 50  # percent


def labelled(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The labels of clusters, by name: each is in one stage."""
    found, begun = dict[str, dict[str, str]](), 0
    for stage, size in sizes(len(names)).items():
        found |= {name: {LABEL: stage} for name in names[begun : begun + size]}
        begun += size
    return found


def sizes(clusters: int) -> dict[str, int]:
    """How many clusters are in each stage; the last has what is left."""
    found = {stage: clusters * percent // 100 for stage, percent in STAGES.items()}
    last = [*STAGES][-1]
    return {**found, last: clusters - sum(found.values()) + found[last]}


def waves(clusters: int) -> int:
    """How many rollouts happen one after another."""
    return sum(-(-size // max(1, size * CONCURRENCY // 100)) for size in sizes(clusters).values() if size)


def strategy(waits: Sequence[str] = (), *, concurrency: str = f"{CONCURRENCY}%") -> Body:
    """With these waits after its first stages, if any."""
    stages: list[dict[str, Any]] = [
        {"name": stage, "labelSelector": {"matchLabels": {LABEL: stage}}, "maxConcurrency": concurrency}
        for stage in STAGES
    ]
    for stage, wait in zip(stages, waits, strict=False):
        stage["afterStageTasks"] = [{"type": "TimedWait", "waitTime": wait}]
    return _body("ClusterStagedUpdateStrategy", "in-stages", {"stages": stages})


def run(name: str, placement: str = WEB) -> Body:
    """Moves the newest resources."""
    return _body("ClusterStagedUpdateRun", name, {"placementName": placement, "stagedRolloutStrategyName": "in-stages"})


def _body(kind: str, name: str, spec: Body) -> Body:
    api = "placement.kubernetes-fleet.io/v1beta1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
