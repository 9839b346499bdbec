"""kill -9 of hub and agents during rollouts on a real fleet: it ends as if nothing had been, and nothing is deleted
that should stay.

KEDGE_KILLS says how many are killed, ten on each journey.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from controlplane.cluster import Cluster
from fleet.bed import SECONDS, Backend, Bed
from fleet.journey import JOURNEY, Meanwhile, Record, go
from fleet.judging import judge
from fleet.kills import Kills, no_kills
from fleet.role_processes import RoleProcesses
from kedge.api.dialect import Dialect

KILLS = sum(step.kills for step in JOURNEY)
ROUNDS = -(-int(os.environ.get("KEDGE_KILLS", KILLS)) // KILLS)
log = logging.getLogger(__name__)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS)]


def travel(clusters: Mapping[str, Cluster], processes: RoleProcesses, meanwhile: Meanwhile) -> Record:
    async def play(bed: Bed) -> Record:
        return await go(bed, meanwhile)

    record = Backend("real", clusters).play(play, Dialect.seed, processes.run)
    assert processes.unexpected_ends() == []
    return record


@pytest.fixture(scope="module")
def calm(real_fleet: Mapping[str, Cluster], tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The journey without any kills."""
    processes = RoleProcesses(real_fleet, tmp_path_factory.mktemp("calm"), Random(0))
    record = travel(real_fleet, processes, no_kills)
    problems = judge(record, record, real_fleet)
    assert not problems, "\n".join(problems)
    return record


@pytest.mark.parametrize("seed", range(1, ROUNDS + 1))
def test_killed_processes_leave_no_trace(
    real_fleet: Mapping[str, Cluster], calm: Record, tmp_path: Path, seed: int
) -> None:
    processes = RoleProcesses(real_fleet, tmp_path, Random(seed))
    record = travel(real_fleet, processes, Kills(processes, Random(seed)))
    for kill in record.killed:
        log.info("%s", kill)
    assert len(record.killed) == KILLS
    problems = judge(record, calm, real_fleet)
    assert not problems, "\n".join(problems)
