"""kill -9 of hub and agents during rollouts on a real fleet: it ends as if nothing had been, and nothing is deleted
that should stay.

KEDGE_KILLS says how many are killed, ten on each journey.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from controlplane.cluster import Cluster
from fleet.bed import SECONDS, Backend, Bed
from fleet.journey import JOURNEY, SHORT_JOURNEY, Meanwhile, Record, Step, go
from fleet.judging import judge
from fleet.kills import Kills, no_kills
from fleet.role_processes import RoleProcesses
from kedge.api.dialect import Dialect
from simulate import seeds

KILLS = sum(step.kills for step in JOURNEY)
ROUNDS = -(-int(os.environ.get("KEDGE_KILLS", KILLS)) // KILLS)
log = logging.getLogger(__name__)

pytestmark = pytest.mark.timeout(SECONDS)


def travel(
    clusters: Mapping[str, Cluster], processes: RoleProcesses, meanwhile: Meanwhile, steps: Sequence[Step] = JOURNEY
) -> Record:
    async def play(bed: Bed) -> Record:
        return await go(bed, meanwhile, steps)

    record = Backend("real", clusters).play(play, Dialect.seed, processes.run)
    assert processes.unexpected_ends() == []
    return record


def undisturbed(clusters: Mapping[str, Cluster], folder: Path, steps: Sequence[Step] = JOURNEY) -> Record:
    """A journey without any kills."""
    record = travel(clusters, RoleProcesses(clusters, folder, Random(0)), no_kills, steps)
    problems = judge(record, record, clusters)
    assert not problems, "\n".join(problems)
    return record


def disturbed(clusters: Mapping[str, Cluster], folder: Path, seed: int, steps: Sequence[Step] = JOURNEY) -> Record:
    """A journey with kills."""
    processes = RoleProcesses(clusters, folder, Random(seed))
    record = travel(clusters, processes, Kills(processes, Random(seed)), steps)
    for kill in record.killed:
        log.info("%s", kill)
    assert len(record.killed) == sum(step.kills for step in steps)
    return record


@pytest.fixture(scope="module")
def calm(real_fleet: Mapping[str, Cluster], tmp_path_factory: pytest.TempPathFactory) -> Record:
    return undisturbed(real_fleet, tmp_path_factory.mktemp("calm"))


@pytest.mark.parametrize("seed", range(1, ROUNDS + 1))
def test_killed_processes_leave_no_trace(
    real_fleet: Mapping[str, Cluster], calm: Record, tmp_path: Path, seed: int
) -> None:
    problems = judge(disturbed(real_fleet, tmp_path, seed), calm, real_fleet)
    assert not problems, "\n".join(problems)


@pytest.mark.core
def test_a_process_killed_during_a_bad_release_leaves_no_trace(
    real_fleet: Mapping[str, Cluster], tmp_path_factory: pytest.TempPathFactory
) -> None:
    calm = undisturbed(real_fleet, tmp_path_factory.mktemp("calm"), SHORT_JOURNEY)
    record = disturbed(
        real_fleet, tmp_path_factory.mktemp("killed"), seeds.first_seed(seeds.current_commit(), 1), SHORT_JOURNEY
    )
    problems = judge(record, calm, real_fleet)
    assert not problems, "\n".join(problems)
