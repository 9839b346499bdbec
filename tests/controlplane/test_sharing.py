"""One control plane for all processes of a run: started when asked for, once, and stopped when nobody needs it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from controlplane import sharing
from controlplane.binaries import Binaries
from controlplane.cluster import Cluster, Options
from controlplane.sharing import Keeper


@pytest.fixture
def keeper(binaries: Binaries) -> Iterator[Keeper]:
    found = Keeper()
    yield found
    found.close()


async def test_another_process_uses_a_cluster_and_makes_users_of_it(bare_cluster: Cluster) -> None:
    there = pickle.loads(pickle.dumps(bare_cluster))
    assert there.pids == bare_cluster.pids
    answer = await there.request("GET", "/api/v1/namespaces/default", user=there.user("somebody", ["system:masters"]))
    assert answer.status == 200


def test_who_asks_by_the_socket_gets_the_cluster_that_there_is(keeper: Keeper) -> None:
    here = keeper.cluster("shared", Options())
    there = sharing.ask(keeper.listen(), "shared", Options(nodes=7))
    assert (there.url, there.admin_token) == (here.url, here.admin_token)
    sharing.give_back(keeper.listen(), "shared")
    assert not any(map(_is_alive, there.pids.values()))
    with pytest.raises(ValueError, match="there is a cluster 'shared' already, or was one"):
        sharing.ask(keeper.listen(), "shared", Options())


def test_many_may_ask_for_many_at_once(keeper: Keeper) -> None:
    names = [f"c{number % 2}" for number in range(20)]
    address = keeper.listen()
    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(lambda name: sharing.ask(address, name, Options()), names))
    assert len({cluster.url for cluster in found}) == 2


def test_what_goes_wrong_is_said_to_who_asked(keeper: Keeper) -> None:
    with pytest.raises(ValueError, match="cannot name a cluster"):
        sharing.ask(keeper.listen(), "No Name", Options())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
