"""Handlers of other distributions: found by their entry points, and one that is broken stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from kedge.plan.availability import judge
from kedge.plan.workloads import find_handler, registry
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.registry import BrokenHandler, load
from kedge.plan.workloads.stateful_sets import StatefulSets

MODULE = """
from kedge.plan.workloads.stateful_sets import StatefulSets

class GameHandler(StatefulSets, frozen=True):
    group: str = "example.com"
    kind: str = "Game"

class Half:
    group, kind = "example.com", "Half"

class Raising(StatefulSets, frozen=True):
    group: str = "example.com"
    kind: str = "Raising"

    def replicas(self, obj):
        raise RuntimeError("no replicas today")

game = GameHandler()
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution `games` with handlers, of which some are broken."""
    (tmp_path / "games_handlers.py").write_text(MODULE)
    info = tmp_path / "games-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: games\nVersion: 1.0\n")
    points = {
        "Game.example.com": "games_handlers:GameHandler",
        "Raising.example.com": "games_handlers:Raising",
        "Half.example.com": "games_handlers:Half",
        "Missing.example.com": "games_handlers:Nothing",
        "Absent.example.com": "no_such_module",
        "Other.example.com": "games_handlers:game",
        "Deployment.apps": "games_handlers:GameHandler",
    }
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{''.join(lines)}")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.installed_handlers.cache_clear()
    yield
    monkeypatch.undo()
    registry.installed_handlers.cache_clear()
    registry.installed_handlers()  # as at the start: later tests may ask in an event loop, which may not read files


def game(kind: str, **status: Any) -> dict[str, Any]:
    counts = {"observedGeneration": 2, "updatedReplicas": 3, "availableReplicas": 3, **status}
    meta = {"name": "chess", "namespace": "play", "generation": 2}
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": meta, "spec": {"replicas": 3}, "status": counts}


def test_the_group_of_entry_points_is_the_documented_one() -> None:
    assert registry.GROUP == "kedge.workloads"


@pytest.mark.usefixtures("installed")
def test_a_kind_of_another_distribution_is_judged_by_its_counts() -> None:
    assert judge(game("Game")).message == "Game play/chess has 3 of 3 replicas updated and available"
    assert judge(game("Game", availableReplicas=2)).message == "Game play/chess has 2 of 3 available replicas"
    assert judge(game("Game", updatedReplicas=2)).message == "Game play/chess has 2 of 3 updated replicas"
    assert judge(game("Game", observedGeneration=1)).message.startswith("Game play/chess has a status that is behind")
    held = game("Game", updatedReplicas=1)
    held["spec"]["updateStrategy"] = {"rollingUpdate": {"partition": 2}}
    assert judge(held).message == "Game play/chess has 3 of 3 replicas available; its strategy updates 1"
    assert judge(held).available


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("Half", "it has no replicas, template, strategy, limits, with_strategy, freeze, with_partition, scale"),
        ("Missing", "AttributeError: module 'games_handlers' has no attribute 'Nothing'"),
        ("Absent", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("Other", "it is for Game.example.com: name the entry point so"),
    ],
)
def test_a_broken_handler_is_named_with_its_distribution(kind: str, problem: str) -> None:
    assert find_handler("example.com", kind) == BrokenHandler("games", f"{kind}.example.com", problem)
    found = judge(game(kind))
    handler = f"the workload handler {kind}.example.com of the distribution games cannot be used: {problem}"
    assert found.message == f"{kind} play/chess cannot be judged: {handler}"
    assert (found.available, found.trackable) == (False, True)


@pytest.mark.usefixtures("installed")
def test_a_handler_that_raises_leaves_its_object_not_available() -> None:
    found = judge(game("Raising"))
    why = "its workload handler failed with RuntimeError: no replicas today"
    assert found.message == f"Raising play/chess cannot be judged: {why}"
    assert not found.available


@pytest.mark.usefixtures("installed")
def test_a_built_in_kind_cannot_be_replaced() -> None:
    assert find_handler("apps", "Deployment") == Deployments()
    found = registry.installed_handlers()["apps", "Deployment"]
    assert isinstance(found, BrokenHandler)
    assert found.problem == "Kedge has one of its own for this kind"


@pytest.mark.usefixtures("installed")
def test_handlers_are_loaded_once() -> None:
    assert find_handler("example.com", "Game") is find_handler("example.com", "Game")


def test_a_kind_without_a_handler_has_none() -> None:
    assert find_handler("example.com", "Game") is None
    assert find_handler("apps", "StatefulSet") == StatefulSets()


def test_of_two_handlers_for_one_kind_the_first_by_name_counts() -> None:
    points = [EntryPoint("StatefulSet.other", value, registry.GROUP) for value in ("no_such_b", "no_such_a")]
    for order in (points, points[::-1]):
        found = load(order)["other", "StatefulSet"]
        assert isinstance(found, BrokenHandler)
        assert found == BrokenHandler(
            "unknown", "StatefulSet.other", "ModuleNotFoundError: No module named 'no_such_a'"
        )
