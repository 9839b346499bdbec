"""`kedge retry` and `kedge rollback` to their good end, typed at an embedded fleet in virtual time.

The fleet stands still while nobody asks: the loop runs for as long as a command takes, or a test waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from click.testing import CliRunner, Result

from fleet import kinds
from kedge.api.condition import find_condition
from kedge.api.core import Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.staged import ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.cli import main
from kedge.cli.demo_fleet import DEPLOYMENTS
from kedge.cli.targets import Hub
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Transport
from kedge.simulate.clock import LoopClock
from support.stage import EVENTS
from support.virtual import VirtualLoop

pytestmark = pytest.mark.timeout(400)

T = TypeVar("T")
MEMBERS = ("cluster-1", "cluster-2", "cluster-3")
LABELS = {"cluster-1": {"stage": "first"}, "cluster-2": {"stage": "first"}, "cluster-3": {"stage": "second"}}
SELECTOR = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}
STAGES: list[dict[str, Any]] = [
    {"name": "first", "labelSelector": {"matchLabels": {"stage": "first"}}, "maxFailures": 0},
    {"name": "second", "labelSelector": {"matchLabels": {"stage": "second"}}},
]
GUARDED = [{**STAGES[0], "afterStageTasks": [{"type": "Approval"}]}, STAGES[1]]


class Typing:
    """A user at a fleet that goes on only while somebody looks."""

    def __init__(self, runner: asyncio.Runner, fleet: Fleet, clients: dict[str, Client]) -> None:
        self._runner = runner
        self._fleet = fleet
        self._clients = clients
        self.hub = clients["hub"]

    def stop_hub(self) -> None:
        """The hub's controllers stand still from now on; its server answers."""
        self._fleet._hub_role.stop()
        self.do(asyncio.sleep(5.0))

    def transport(self) -> Transport:
        """A connection of one's own to the hub."""
        return self._fleet.hub.transport()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def kedge(self, *words: str) -> Result:
        return CliRunner().invoke(main, words, catch_exceptions=False)

    def shown(self, *words: str) -> str:
        """What a command prints that must not fail."""
        result = self.kedge(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def story(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.kedge("status", name, "-o", "json").stdout)
        return found

    def until(self, name: str, holds: Callable[[dict[str, Any]], bool], seconds: int = 600) -> None:
        for _ in range(seconds):
            if holds(self.story(name)):
                return
            self.do(asyncio.sleep(1.0))
        raise AssertionError(self.story(name))

    def start(self, name: str, strategy: str = "careful") -> None:
        spec = {"placementName": "web", "stagedRolloutStrategyName": strategy}
        self.do(self.hub.create(ClusterStagedUpdateRun, {"metadata": {"name": name}, "spec": spec}))

    def set_image(self, image: str) -> None:
        change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        self.do(self.hub.patch(DEPLOYMENTS, "web", MergePatch(change), "shop"))

    def hold_back_pods(self, member: str, *, hold: bool) -> None:
        """A member on which no pod can start, or can again."""
        body = MergePatch({"spec": {"unschedulable": hold or None}})
        for node in self.do(self._clients[member].list(kinds.NODES)).items:
            self.do(self._clients[member].patch(kinds.NODES, node["metadata"]["name"], body))

    def run(self, name: str) -> ClusterStagedUpdateRun:
        return self.do(self.hub.get(ClusterStagedUpdateRun, name))

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was told of a run."""
        found: list[dict[str, Any]] = list(self.do(self.hub.list(EVENTS)).items)
        return [one for one in found if one["involvedObject"]["name"] == name]

    def images(self) -> list[str]:
        """What the members run."""
        return [self._image(member) for member in MEMBERS]

    def _image(self, member: str) -> str:
        found = self.do(self._clients[member].get(DEPLOYMENTS, "web", "shop"))
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])


@contextmanager
def typing_at_a_fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Typing]:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        fleet = Fleet(members=len(MEMBERS), clock=LoopClock(runner.get_loop()), rng=Random(1), nodes=1)
        runner.run(fleet.__aenter__())
        clients = {one.name: Client(one.transport(), limiter=Limiter(rate=0)) for one in fleet.clusters}
        typing = Typing(runner, fleet, clients)
        monkeypatch.setattr(Hub, "ask", lambda _, question: runner.run(question(clients["hub"])))
        try:
            runner.run(fleet.run_workloads())
            runner.run(fleet.run_roles(labels=LABELS))
            runner.run(_prepare(clients["hub"]))
            yield typing
        finally:
            for client in clients.values():
                runner.run(client.close())
            runner.run(fleet.__aexit__(None, None, None))


async def _prepare(hub: Client) -> None:
    await hub.create(Namespace, {"metadata": {"name": "shop"}})
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    spec: dict[str, Any] = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await hub.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "shop")
    placing = {"resourceSelectors": [SELECTOR], "strategy": {"type": "External"}}
    await hub.create(ClusterResourcePlacement, {"metadata": {"name": "web"}, "spec": placing})
    for name, stages in (("careful", STAGES), ("guarded", GUARDED)):
        await hub.create(ClusterStagedUpdateStrategy, {"metadata": {"name": name}, "spec": {"stages": stages}})


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Typing]:
    """With app:1 everywhere, by run `one`."""
    with typing_at_a_fleet(monkeypatch) as found:
        found.start("one")
        found.until("one", lambda run: run["state"] == "available")
        assert found.images() == ["app:1"] * 3
        yield found


def test_a_cluster_that_failed_is_tried_again_once_it_is_mended(typing: Typing) -> None:
    typing.hold_back_pods("cluster-1", hold=True)
    typing.set_image("app:2")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "failed")
    assert typing.story("two")["stages"][0]["failed"] == ["cluster-1"]
    assert typing.images() == ["app:2", "app:1", "app:1"]
    refused = typing.kedge("stop", "two")
    assert (
        "two has ended: 1 cluster of stage first failed, and 0 may: cluster-1; cluster-1: Deployment" in refused.stderr
    )
    typing.hold_back_pods("cluster-1", hold=False)
    assert "two tries once more what had failed by 2030-01-01T00:" in typing.shown("retry", "two")
    assert typing.shown("status", "two", "--watch", "--timeout", "60").endswith("succeeded: first 2/2, second 1/1\n")
    assert typing.images() == ["app:2"] * 3
    assert typing.kedge("retry", "two").stderr == "Error: nothing of two has failed that could be tried again\n"


def test_a_cluster_that_is_not_mended_fails_once_more(typing: Typing) -> None:
    typing.set_image("app:bad")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "failed")
    typing.shown("retry", "two")
    typing.until("two", lambda run: run["state"] == "moving")
    typing.until("two", lambda run: run["state"] == "failed")
    assert typing.images() == ["app:bad", "app:1", "app:1"]


def test_a_run_that_has_failed_is_rolled_back(typing: Typing) -> None:
    typing.set_image("app:bad")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "failed")
    assert typing.shown("rollback", "two") == "run two-rollback brings the clusters of two back to revision 0\n"
    assert typing.shown("status", "two-rollback", "-w", "--timeout", "60").endswith("first 1/1, second 0/0\n")
    assert typing.images() == ["app:1"] * 3
    assert typing.shown("rollback", "two") == "two is rolled back already, by run two-rollback\n"


def test_a_run_that_has_ended_well_is_rolled_back_everywhere(typing: Typing) -> None:
    typing.set_image("app:2")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "available")
    assert typing.images() == ["app:2"] * 3
    typing.shown("rollback", "two")
    typing.until("two-rollback", lambda run: run["state"] == "available")
    assert typing.images() == ["app:1"] * 3


def test_a_run_midway_is_stopped_and_rolled_back_without_asking_anybody(typing: Typing) -> None:
    typing.set_image("app:2")
    typing.start("two", "guarded")
    typing.until("two", lambda run: "waits for approval" in run["why"])
    assert typing.images() == ["app:2", "app:2", "app:1"]
    typing.shown("rollback", "two")
    typing.until("two-rollback", lambda run: run["state"] == "available")
    assert typing.images() == ["app:1"] * 3
    typing.until("two", lambda run: run["state"] == "rolled back")


def test_a_run_that_was_rolled_back_is_over_and_says_so_to_everybody(typing: Typing) -> None:
    typing.set_image("app:bad")
    typing.start("two", "guarded")
    typing.until("two", lambda run: run["state"] == "moving")
    typing.shown("rollback", "two")
    typing.until("two-rollback", lambda run: run["state"] == "available")
    before = typing.run("two")
    for verb in ("resume", "retry", "stop", "approve"):
        refused = typing.kedge(verb, "two")
        assert refused.exit_code == 1
        assert "two was rolled back by run two-rollback. It moves nothing any more: make a new run" in refused.stderr
    assert typing.shown("rollback", "two") == "two is rolled back already, by run two-rollback\n"
    assert typing.run("two") == before
    shown = typing.kedge("status", "two", "--watch", "--timeout", "10")
    assert shown.exit_code == 3
    assert "rolled back" in shown.stdout
    assert "run two-rollback brings its clusters back to resources 0" in shown.stdout
    typing.do(asyncio.sleep(60.0))
    assert typing.images() == ["app:1"] * 3


def test_a_run_that_was_rolled_back_and_is_asked_to_run_with_kubectl_moves_nothing(typing: Typing) -> None:
    typing.set_image("app:bad")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "moving")
    typing.shown("rollback", "two")
    typing.until("two-rollback", lambda run: run["state"] == "available")
    for state in ("Stop", "Run"):
        typing.do(typing.hub.patch(ClusterStagedUpdateRun, "two", MergePatch({"spec": {"state": state}})))
        typing.do(asyncio.sleep(60.0))
    assert typing.images() == ["app:1"] * 3
    two = typing.run("two")
    said = find_condition(two.status.conditions, "RolledBack")
    assert said is not None
    assert (said.status, said.observed_generation) == ("True", two.metadata.generation)
    assert [one["message"] for one in typing.events("two") if one["reason"] == "RollbackStarted"] == [
        "run two-rollback brings its clusters back to resources 0: this run is over, and moves nothing any more"
    ]


def test_runs_are_listed_and_explained_like_placements(typing: Typing) -> None:
    typing.set_image("app:2")
    typing.start("two", "guarded")
    typing.until("two", lambda run: "waits for approval" in run["why"])
    placements, runs = typing.shown("get").split("\n\n")
    assert placements.splitlines()[0].split() == ["NAME", "REVISION", "DONE", "STATE", "WHY"]
    header, one, two = runs.splitlines()
    assert header.split() == ["RUN", "PLACEMENT", "REVISION", "DONE", "STATE", "WHY"]
    assert one.split() == ["one", "web", "0", "3/3", "succeeded"]
    assert two.split()[:5] == ["two", "web", "1", "2/3", "waiting"]
    assert "waits for approval" in two
    assert [line.split() for line in typing.shown("get", "two").splitlines()] == [header.split(), two.split()]
    told = msgspec.json.decode(typing.shown("get", "-o", "json"))
    assert [(found["kind"], found["name"]) for found in told] == [
        ("ClusterResourcePlacement", "web"), ("ClusterStagedUpdateRun", "one"), ("ClusterStagedUpdateRun", "two"),
    ]  # fmt: skip
    lines = typing.shown("explain", "two").splitlines()
    assert lines[0] == "ClusterStagedUpdateRun two moves web to revision 1: waiting"
    assert lines[1].startswith("first: 2 of 2 clusters done: ")
    assert "`kedge approve two first`" in lines[1]
    assert typing.shown("explain", "two", "cluster-3") == (
        "cluster-3: stage second: waits: the run has not begun with it\n"
    )
    for command in ("explain", "status"):
        story = msgspec.json.decode(typing.kedge(command, "two", "-o", "json").stdout)
        [wait] = story["waits"]
        assert (wait["unit"], wait["code"], wait["blockers"][0]["key"]) == ("first", "ApprovalPending", "two-first")
        assert [stage["waits"] for stage in story["stages"]] == [[wait], []]
    refused = typing.kedge("explain", "two", "cluster-9")
    assert refused.stderr == "Error: cluster-9 is no part of two: it has cluster-1, cluster-2 and cluster-3\n"
    typing.shown("rollback", "two")
    assert "rolled back" in typing.shown("get", "two")


def test_a_verb_that_refuses_changes_nothing(typing: Typing) -> None:
    typing.start("two")  # to the same resources: its clusters had no others before it
    typing.until("two", lambda run: run["state"] == "available")
    before = typing.run("two")
    for verb in ("stop", "resume", "retry", "rollback", "approve"):
        assert typing.kedge(verb, "two").exit_code == 1
    assert typing.run("two") == before
    assert typing.kedge("status", "two-rollback").exit_code == 1


def test_what_took_back_an_earlier_run_of_the_name_does_not_take_back_this_one(typing: Typing) -> None:
    typing.set_image("app:2")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "available")
    typing.shown("rollback", "two")
    typing.until("two-rollback", lambda run: run["state"] == "available")
    typing.do(typing.hub.delete(ClusterStagedUpdateRun, "two"))
    typing.do(asyncio.sleep(5.0))
    typing.set_image("app:3")
    typing.start("two")
    typing.until("two", lambda run: run["state"] == "available")
    assert typing.shown("rollback", "two").startswith("run two-rollback-2 brings the clusters of two back")
    typing.until("two-rollback-2", lambda run: run["state"] == "available")
    assert typing.images() == ["app:1"] * 3
    assert typing.shown("rollback", "two") == "two is rolled back already, by run two-rollback-2\n"
