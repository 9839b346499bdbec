"""`kedge plan`: against a hub over HTTPS, and from files; and what it asks of the hub."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.api.work import Work
from kedge.cli import kubeconfig, main
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.kube.clock import SystemClock
from kedge.kube.codec import Untyped
from kedge.kube.transport import Request, Response
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.placement_preview import PlacementPreview
from kedge.simulate.loop import run
from kedge.simulate.preview.fleet_state import FleetState, Target, from_yaml, to_yaml
from kedge.simulate.preview.runner import Assumptions, PreviewChange, measured_times, run_preview
from kedge.simulate.preview.virtual_hub import VirtualHub
from simulate.preview.reality import Scenario, deployment, fleet_picture, placement

pytestmark = pytest.mark.timeout(400)
DEFINITIONS = crds(Dialect.seed)
ONE_AT_A_TIME = Scenario(members=3, strategy={"rollingUpdate": {"maxUnavailable": 1}}, change=())


@pytest.fixture(scope="module")
def picture() -> FleetState:
    """Of a fleet at rest, whose clusters took 20 s."""
    return run(fleet_picture(ONE_AT_A_TIME))


@pytest.fixture
def fleet(picture: FleetState, tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(to_yaml(picture))
    return file


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return saved(tmp_path / "release.yaml", deployment("app:2"))


def saved(file: Path, *objects: Untyped) -> Path:
    file.write_text(yaml.safe_dump_all(objects))
    return file


def kedge(*args: object, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, [str(one) for one in args], catch_exceptions=False)


def told(*args: object) -> Mapping[str, Any]:
    result = kedge("plan", *args, "-o", "json")
    assert result.exit_code in (0, 3), result.output
    found: Mapping[str, Any] = msgspec.json.decode(result.stdout)
    return found


# What it says


def test_a_release_is_told_wave_by_wave_with_its_end_and_the_worst_case(fleet: Path, release: Path) -> None:
    result = kedge("plan", "-f", release, "--from", fleet)
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "ClusterResourcePlacement crp: 3 clusters would move to revision 1"
    assert lines[1:5] == [
        "WAVE FROM TO CLUSTERS",
        "1 +0s +20s cluster-1",
        "2 +20s +40s cluster-2",
        "3 +40s +1m cluster-3",
    ]
    assert lines[5].startswith("ends after 1m, at 2030-01-01 ")
    assert lines[5].endswith("; at worst after 30m, with clusters as slow as their workloads may be")
    assert "20s after they were given something new, as they were last time, which was the first, " in lines[7]
    assert lines[-1] == "This is a preview: nothing was written to any cluster."


def test_a_cluster_that_fails_holds_up_the_rest_and_it_is_said_why(fleet: Path, release: Path) -> None:
    result = kedge("plan", "-f", release, "--from", fleet, "--fail", "cluster-2", "--no-worst")
    assert result.exit_code == 3
    assert "does not end within 1d: it stands still after 20s" in result.stdout
    assert "cluster-2: moved, and Deployment shop/web is taken to fail here" in result.stdout
    assert "cluster-3: " in result.stdout
    assert "at most 1 of 3 clusters may be unavailable, and cluster-2 is not available" in result.stdout


def with_pod_budget(file: Path, budget: int) -> Path:
    """A release that recreates its three pods, with this podBudget."""
    strategy = {"rollingUpdate": {"maxUnavailable": "100%", "podBudget": budget}}
    recreated = deployment("app:2", replicas=3)
    recreated["spec"]["strategy"] = {"type": "Recreate"}
    return saved(file, placement(Scenario(members=3, strategy=strategy, change=())), recreated)


def test_a_budget_of_pods_makes_waves_and_one_that_is_too_small_is_said(tmp_path: Path, fleet: Path) -> None:
    result = kedge("plan", "-f", with_pod_budget(tmp_path / "enough.yaml", 6), "--from", fleet, "--no-worst")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[2:4] == ["1 +0s +20s cluster-1 and cluster-2", "2 +20s +40s cluster-3"], result.output
    result = kedge("plan", "-f", with_pod_budget(tmp_path / "less.yaml", 2), "--from", fleet, "--no-worst")
    assert result.exit_code == 3
    assert "podBudget comes to 2 of 9 pods, and a change here may take away 3 at once" in result.stdout


def test_json_has_moves_waves_and_what_was_gone_by(fleet: Path, release: Path) -> None:
    (course,) = told("-f", release, "--from", fleet, "--ready-after", "10s", "--ready-after", "cluster-2=90s")[
        "placements"
    ]
    assert [move["cluster"] for move in course["moves"]] == ["cluster-1", "cluster-2", "cluster-3"]
    assert [wave["clusters"] for wave in course["waves"]] == [["cluster-1"], ["cluster-2"], ["cluster-3"]]
    assert course["ends"] == pytest.approx(110.5, abs=1.0)
    assert course["worst"] == pytest.approx(1800.5, abs=2.0)
    assert course["takes"]["cluster-2"] == {"seconds": 90.0, "source": "told", "first": False}


def test_how_far_a_preview_has_been_played_is_told_while_it_is(picture: FleetState) -> None:
    played: list[float] = []
    change = PreviewChange((Target("crp"),), (deployment("app:2"),))
    (course,) = run_preview(picture, change, Assumptions(times=measured_times(picture)), played.append)
    assert course.ends is not None
    assert played == sorted(played)
    assert played[0] < 1.0
    assert any(course.ends <= seconds < course.ends + 10.0 for seconds in played)


def test_a_placement_that_is_where_it_should_be_would_not_move(fleet: Path) -> None:
    result = kedge("plan", "crp", "--from", fleet)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == [
        "ClusterResourcePlacement crp: no cluster would move",
        "everything is where it should be",
    ]


def test_a_placement_in_a_file_is_previewed_with_its_new_strategy(fleet: Path, tmp_path: Path) -> None:
    faster = placement(Scenario(members=3, strategy={"rollingUpdate": {"maxUnavailable": 3}}, change=()))
    file = saved(tmp_path / "both.yaml", faster, deployment("app:2"))
    (course,) = told("-f", file, "--from", fleet, "--no-worst")["placements"]
    assert [wave["clusters"] for wave in course["waves"]] == [["cluster-1", "cluster-2", "cluster-3"]]


def test_a_placement_that_is_new_is_previewed_too(fleet: Path, tmp_path: Path) -> None:
    new = placement(ONE_AT_A_TIME) | {"metadata": {"name": "other"}}
    new["spec"] = new["spec"] | {
        "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "other"}]
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    (course,) = told("-f", saved(tmp_path / "new.yaml", space, new), "--from", fleet, "--no-worst")["placements"]
    assert (course["name"], course["is_done"]) == ("other", True)
    assert {move["what"] for move in course["moves"]} == {"added"}


def test_a_resource_placement_and_custom_kinds_are_previewed_as_well(fleet: Path, tmp_path: Path) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": "shop"}}
    selector = {"group": "example.com", "version": "v1", "kind": "Thing", "name": "one"}
    new = placement(ONE_AT_A_TIME) | {"kind": "ResourcePlacement", "metadata": {"name": "things", "namespace": "shop"}}
    new["spec"] = new["spec"] | {"resourceSelectors": [selector]}
    file = saved(tmp_path / "things.yaml", new, thing, definition)
    (course,) = told("-f", file, "--from", fleet, "--no-worst")["placements"]
    assert (course["kind"], course["namespace"], course["is_done"]) == ("ResourcePlacement", "shop", True)
    # Nothing tells when a Thing is available, so each cluster waits its period.
    assert [move["done"] - move["at"] for move in course["moves"]] == pytest.approx([60.0] * 3, abs=2.0)


def test_what_kubectl_prints_will_do_for_a_fleet(picture: FleetState, release: Path, tmp_path: Path) -> None:
    """Without what is selected, and in the version that kubectl prefers."""
    ours = [one for one in picture.objects if "kubernetes-fleet.io" in one["apiVersion"]]
    listed = {"apiVersion": "v1", "kind": "List", "items": [_preferred(one) for one in ours]}
    file = saved(tmp_path / "kubectl.yaml", listed)
    (course,) = told("-f", release, "--from", file, "--no-worst", "--ready-after", "20s")["placements"]
    assert [move["cluster"] for move in course["moves"]] == ["cluster-1", "cluster-2", "cluster-3"]


def _preferred(obj: Untyped) -> Untyped:
    return obj | {"apiVersion": obj["apiVersion"].replace("v1beta1", "v1")}


def test_a_run_on_a_placement_that_a_rollout_moves_fails_as_the_real_one_does(fleet: Path, tmp_path: Path) -> None:
    group = {"apiVersion": ClusterStagedUpdateRun.resource.api_version}
    stages = {"stages": [{"name": "all", "labelSelector": {}}]}
    spec = {"placementName": "crp", "stagedRolloutStrategyName": "careful"}
    file = saved(
        tmp_path / "run.yaml",
        {**group, "kind": "ClusterStagedUpdateStrategy", "metadata": {"name": "careful"}, "spec": stages},
        {**group, "kind": "ClusterStagedUpdateRun", "metadata": {"name": "go"}, "spec": spec},
    )
    result = kedge("plan", "-f", file, "--from", fleet, "--no-worst")
    assert result.exit_code == 3, result.output
    assert "where it should be\n" not in result.stdout
    assert "run go: " in result.stdout
    assert "External" in result.stdout


# One fleet, one preview


def broken(picture: FleetState, *clusters: str) -> FleetState:
    """The same fleet, on which what was placed on these clusters has just stopped working."""
    return FleetState(picture.taken, tuple(_broken(one, clusters, picture.taken) for one in picture.objects))


def _broken(obj: Untyped, clusters: tuple[str, ...], since: datetime) -> Untyped:
    where = (obj.get("spec") or {}).get("targetCluster") if obj["kind"] == "ClusterResourceBinding" else None
    if obj["kind"] == "Work":
        where = obj["metadata"]["namespace"].removeprefix("fleet-member-")
    if where not in clusters:
        return obj
    status, now = obj["status"], msgspec.to_builtins(since.replace(microsecond=0))
    said = {"status": "False", "reason": "NotAllWorkAreAvailable", "message": "0 of 1", "lastTransitionTime": now}
    conditions = [{**one, **said} if one["type"] == "Available" else one for one in status["conditions"]]
    return {**obj, "status": {**status, "conditions": conditions}}


def later(picture: FleetState, seconds: float) -> FleetState:
    """The same fleet a while later: its members go on being heard."""
    taken = picture.taken + timedelta(seconds=seconds)
    heard = {"lastReceivedHeartbeat": msgspec.to_builtins(taken.replace(microsecond=0))}
    return FleetState(taken, tuple(_heard(one, heard) for one in picture.objects))


def _heard(obj: Untyped, heard: Mapping[str, str]) -> Untyped:
    if obj["kind"] != "MemberCluster":
        return obj
    agents = [{**one, **heard} for one in obj["status"]["agentStatus"]]
    return {**obj, "status": {**obj["status"], "agentStatus": agents}}


def outline(course: PlacementPreview) -> tuple[object, ...]:
    return course.is_done, [(one.cluster, one.what, round(one.at), round(one.done or -1)) for one in course.moves]


@pytest.mark.parametrize("clusters", [("cluster-1", "cluster-2", "cluster-3"), ("cluster-2",)])
def test_with_broken_clusters_a_release_is_previewed_the_same_whenever_one_asks(
    picture: FleetState, clusters: tuple[str, ...]
) -> None:
    change = PreviewChange((Target("crp"),), (deployment("app:2"),))
    fleet = broken(picture, *clusters)
    seen = [later(fleet, seconds) for seconds in (1, 10, 29.9, 31, 45, 59.9, 61, 3600)]
    assumed = Assumptions(times=Durations(for_all=30.0), within=1800.0)
    outlines = [outline(run_preview(one, change, assumed)[0]) for one in seen]
    assert outlines == [outlines[0]] * len(outlines)
    assert outlines[0][0]


# What is wrong


def test_a_field_that_is_not_known_is_refused_by_its_path_as_kubectl_does(fleet: Path, tmp_path: Path) -> None:
    typo = deployment("app:2")
    typo["spec"] = {**typo["spec"], "replica": 3}
    strategy = placement(Scenario(members=3, strategy={"rollingUpdate": {"maxUnavailible": 1}}, change=()))
    table = {"spec.replica": typo, "spec.strategy.rollingUpdate.maxUnavailible": strategy}
    for path, obj in table.items():
        result = kedge("plan", "-f", saved(tmp_path / "typo.yaml", obj), "--from", fleet, "--no-worst")
        assert result.exit_code == 1, (path, result.output)
        assert f'unknown field "{path}"' in result.stderr


def test_what_is_wrong_is_said_in_a_sentence(fleet: Path, release: Path, tmp_path: Path, picture: FleetState) -> None:
    other = saved(
        tmp_path / "other.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}
    )
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [")
    broken = placement(ONE_AT_A_TIME)
    broken["spec"] = broken["spec"] | {"policy": {"placementType": "PickN"}, "strategy": {"type": "Nonsense"}}
    refused = saved(tmp_path / "refused.yaml", broken)
    lonely = tmp_path / "lonely.yaml"
    lonely.write_text(
        to_yaml(FleetState(picture.taken, tuple(one for one in picture.objects if one["kind"] != "MemberCluster")))
    )
    table = {
        ("crp", "--from", bad): "bad.yaml holds no fleet: it is no YAML: ",
        ("-f", tmp_path / "none.yaml", "--from", fleet): "none.yaml cannot be read: No such file or directory",
        ("-f", bad, "--from", fleet): "bad.yaml cannot be read: it is no YAML: ",
        ("crb", "--from", fleet): "there is no ClusterResourcePlacement crb: did you mean crp?",
        ("-f", release, "--from", fleet, "--fail", "cluster-9"): "--fail cluster-9: the fleet has no such member, but ",
        (
            "-f",
            release,
            "--from",
            fleet,
            "--ready-after",
            "clustr-1=9s",
        ): "--ready-after clustr-1: the fleet has no such",
        ("-f", release, "--from", lonely): "the fleet has no members: nothing can be placed",
        ("-f", other, "--from", fleet): "no placement selects ConfigMap x: nothing would happen",
        ("-f", refused, "--from", fleet): "the hub would refuse it: ",
    }
    for args, sentence in table.items():
        result = kedge("plan", *args)
        assert result.exit_code == 1, (args, result.output)
        assert sentence in result.stderr, (args, result.stderr)
    assert kedge("plan").exit_code == 2
    assert "is not a duration" in kedge("plan", "crp", "--within", "5").stderr


# On a hub


class Asked:
    """What a server is asked from now on; of some kinds it says that one may not read them."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.requests: list[Request] = []
        self.forbidden: tuple[str, ...] = ()
        self._handle = cluster.server.handle
        cluster.server.respond = self._responded  # type: ignore[method-assign]  # nobody else listens here
        cluster.server.watch = self._handled  # type: ignore[method-assign]

    async def _responded(self, request: Request, caller: Caller = IN_PROCESS) -> Response:
        return self._handled(request, caller)

    def _handled(self, request: Request, caller: Caller = IN_PROCESS) -> Response:
        self.requests.append(request)
        plural = request.path.rpartition("/")[2]
        if plural in self.forbidden:
            status = {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": f'{plural} is forbidden: User "me" cannot list resource "{plural}"',
            }
            return Response(403, msgspec.json.encode(status), {"content-type": "application/json"})
        return self._handle(request, caller)


@asynccontextmanager
async def served(picture: FleetState, file: Path) -> AsyncIterator[tuple[EmbeddedCluster, Asked]]:
    """A hub that holds what the picture shows, behind HTTPS, as its kubeconfig says."""
    serving = await asyncio.to_thread(ServingCertificate, datetime.now(UTC))
    cluster = EmbeddedCluster("hub", clock=SystemClock(), rng=Random("served"))
    hub = VirtualHub(cluster, Random("made"))
    await hub.load(picture, DEFINITIONS, datetime.now(UTC) + timedelta(days=1))
    door = HttpsServer(cluster.server, tokens={"secret": Caller()}, tls=serving.context)
    await door.open()
    await asyncio.to_thread(kubeconfig.write, file, {"hub": door.url}, authority=serving.authority, token="secret")
    try:
        yield cluster, Asked(cluster)
    finally:
        await door.close()
        await hub.client.close()
        cluster.stop()


def test_a_preview_only_reads_and_changes_nothing(picture: FleetState, release: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "kubeconfig", tmp_path / "copy.yaml"

    async def previewing() -> Result:
        async with served(picture, file) as (cluster, asked):
            before = cluster.server.store.number
            result = await asyncio.to_thread(kedge, "plan", "-f", release, "--save", copy, KUBECONFIG=str(file))
            assert result.exit_code == 0, result.output
            assert {request.method for request in asked.requests} == {"GET"}
            assert any(request.path == Work.resource.path(None) for request in asked.requests)
            assert cluster.server.store.number == before
            return result

    result = asyncio.run(previewing())
    assert "3 clusters would move to revision 1" in result.stdout
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    kinds = {one["kind"] for one in from_yaml(copy.read_text()).objects}
    assert {"MemberCluster", "Work", "ClusterResourceBinding", "Deployment", "Namespace"} <= kinds
    again = kedge("plan", "-f", release, "--from", copy)
    assert again.stdout.splitlines()[:5] == result.stdout.splitlines()[:5]


async def test_who_may_not_read_is_told_what_and_kinds_of_users_are_taken_from_the_newest_revision(
    picture: FleetState, release: Path, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    async with served(picture, file) as (_, asked):
        asked.forbidden = ("memberclusters",)
        result = await asyncio.to_thread(kedge, "plan", "-f", release, KUBECONFIG=str(file))
        assert result.exit_code == 1
        assert 'cannot list resource "memberclusters"' in result.stderr
        asked.forbidden = ("deployments", "secrets")
        result = await asyncio.to_thread(kedge, "plan", "-f", release, "--no-worst", KUBECONFIG=str(file))
        assert "3 clusters would move to revision 1" in result.stdout, result.output


async def test_a_cluster_that_is_no_hub_is_told_so(release: Path, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    async with served(FleetState(datetime.now(UTC), ()), file) as (cluster, _):
        for definition in DEFINITIONS:
            name = definition["metadata"]["name"]
            cluster.server.handle(Request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"))
        result = await asyncio.to_thread(kedge, "plan", "-f", release, KUBECONFIG=str(file))
        assert "this cluster serves no placements" in result.stderr
