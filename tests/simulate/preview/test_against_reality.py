"""What is previewed comes true: the same clusters in the same order, at times that agree within a tenth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kedge.api.fleet import PAUSED
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.kube.codec import Untyped
from simulate.preview.reality import NAME, SPACE, Scenario, compared, deployment, placement

pytestmark = pytest.mark.timeout(400)


def rolling(unavailable: int | str = 1, surge: int | str = 1, period: int = 60) -> dict[str, Any]:
    numbers = {"maxUnavailable": unavailable, "maxSurge": surge, "unavailablePeriodSeconds": period}
    return {"rollingUpdate": numbers}


def config_map(value: str) -> Untyped:
    meta = {"name": "settings", "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}


def pod_template(value: str) -> Untyped:
    """Nothing tells when one is available."""
    template = {"metadata": {"labels": {"v": value}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "jobs", "namespace": SPACE},
        "template": template,
    }


RELEASE = (deployment("app:2"),)


def stage(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "labelSelector": {"matchLabels": {"env": name}}, **more}


def of_stages(kind: str, name: str, spec: Mapping[str, Any]) -> Untyped:
    api = ClusterStagedUpdateRun.resource.api_version
    return {"apiVersion": api, "kind": f"ClusterStagedUpdate{kind}", "metadata": {"name": name}, "spec": spec}


def run_of(strategy: str, name: str) -> Untyped:
    return of_stages("Run", name, {"placementName": NAME, "stagedRolloutStrategyName": strategy})


EVERYWHERE = {"stages": [{"name": "everywhere", "labelSelector": {}, "maxConcurrency": "100%"}]}
BEFORE = (of_stages("Strategy", "everywhere", EVERYWHERE), run_of("everywhere", "first"))
ENVIRONMENTS = ("staging", "canary", "canary", "production", "production", "production")


def staged(*stages: Mapping[str, Any], change: tuple[Untyped, ...] = RELEASE, **more: Any) -> Scenario:
    """Six clusters, one of them for staging and two canaries, and a run that brings them what they do not have yet.

    What is written as the API writes it, such as `maxFailures`, is said by the strategy; all else is the scenario's.
    """
    said = {name: more.pop(name) for name in [*more] if name != name.lower()}
    strategy = of_stages("Strategy", "careful", {"stages": stages, **said})
    given: dict[str, Any] = {
        "members": 6,
        "strategy": {"type": "External"},
        "labels": {f"cluster-{at}": {"env": env, "order": str(9 - at)} for at, env in enumerate(ENVIRONMENTS, 1)},
        "within": 7200.0,
    }
    return Scenario(change=(*change, strategy, run_of("careful", "run")), **{**given, **more})


def waiting(time: str) -> list[dict[str, str]]:
    return [{"type": "TimedWait", "waitTime": time}]


APPROVAL = {"type": "Approval"}
PLAIN = (stage("staging"), stage("canary"), stage("production"))


def pick(number: int) -> dict[str, Any]:
    return {"placementType": "PickN", "numberOfClusters": number}


PICKED = Scenario(members=4, strategy=rolling(), change=(), policy=pick(4))
SCENARIOS = {
    "one at a time": Scenario(members=4, strategy=rolling(), change=RELEASE),
    "two at a time": Scenario(members=5, strategy=rolling(2), change=RELEASE),
    "half of them at a time": Scenario(members=6, strategy=rolling("50%"), change=RELEASE),
    "all at once": Scenario(members=4, strategy=rolling("100%"), change=RELEASE),
    "clusters of different speed": Scenario(
        members=5, strategy=rolling(2), change=RELEASE, ready={"cluster-1": 90.0, "cluster-3": 45.0}
    ),
    "times as measured": Scenario(
        members=4, strategy=rolling(), change=RELEASE, told=False, ready={"cluster-2": 75.0}, otherwise=30.0
    ),
    "times as measured, with several replicas": Scenario(
        members=3, strategy=rolling(), change=(deployment("app:2", 3),), told=False, otherwise=30.0, replicas=3
    ),
    "times as measured at the first placement": Scenario(
        members=3,
        strategy=rolling(),
        change=(deployment("app:2", 3),),
        told=False,
        released_before=False,
        otherwise=30.0,
        replicas=3,
    ),
    "a cluster that fails, and holds up the rest": Scenario(
        members=4, strategy=rolling(), change=RELEASE, failing=frozenset({"cluster-2"}), within=600.0
    ),
    "a cluster that fails, with room for others": Scenario(
        members=5, strategy=rolling(2), change=RELEASE, failing=frozenset({"cluster-2"}), within=600.0
    ),
    "two that fail, and use up the budget": Scenario(
        members=6,
        strategy=rolling(2),
        change=RELEASE,
        failing=frozenset({"cluster-2", "cluster-3"}),
        within=600.0,
    ),
    "what is only data": Scenario(members=4, strategy=rolling(), change=(config_map("2"),), more=(config_map("1"),)),
    "what cannot be tracked waits its time": Scenario(
        members=3, strategy=rolling(period=40), change=(pod_template("2"),), more=(pod_template("1"),)
    ),
    "what cannot be tracked beside a workload": Scenario(
        members=3, strategy=rolling(period=40), change=(*RELEASE, pod_template("2")), more=(pod_template("1"),)
    ),
    "a paused placement": Scenario(
        members=3, strategy=rolling(), change=RELEASE, annotations={PAUSED: "true"}, within=300.0
    ),
    "a cluster that cannot be reached": Scenario(
        members=4, strategy=rolling(2), change=RELEASE, silent=frozenset({"cluster-2"}), within=600.0
    ),
    "fewer clusters than before": Scenario(
        members=4,
        strategy=rolling(),
        policy=pick(4),
        change=(placement(Scenario(members=4, strategy=rolling(), policy=pick(2), change=())),),
    ),
    "more clusters than before": Scenario(members=4, strategy=rolling(), policy=pick(2), change=(placement(PICKED),)),
    "another strategy together with a release": Scenario(
        members=6,
        strategy=rolling(1),
        change=(placement(Scenario(members=6, strategy=rolling(3), change=())), *RELEASE),
    ),
    "stages": staged(stage("staging"), stage("canary"), stage("production", maxConcurrency="67%")),
    "stages with a wait and an approval": staged(
        stage("staging", afterStageTasks=[{"type": "TimedWait", "waitTime": "10m"}]),
        stage("canary", afterStageTasks=[{"type": "Approval"}]),
        stage("production", maxConcurrency=2),
    ),
    "stages, approved late": staged(
        stage("staging"),
        stage("canary", maxConcurrency=2, afterStageTasks=[{"type": "Approval"}]),
        stage("production", beforeStageTasks=[{"type": "Approval"}], maxConcurrency=3),
        approved_after=300.0,
        ready={"cluster-3": 70.0},
    ),
    "stages, and a canary that fails": staged(
        stage("staging"), stage("canary"), stage("production"), failing=frozenset({"cluster-3"})
    ),
    "stages in the order of a label": staged(
        stage("staging"), stage("canary", sortingLabelKey="order"), stage("production", sortingLabelKey="order")
    ),
    "a stage whose clusters move all at once": staged(
        stage("staging"), stage("canary"), stage("production", maxConcurrency="100%")
    ),
    "stages with a wait after each": staged(
        stage("staging", afterStageTasks=waiting("5m")),
        stage("canary", afterStageTasks=waiting("90s")),
        stage("production", afterStageTasks=waiting("1h")),
    ),
    "a stage that is approved after its wait is over": staged(
        stage("staging", afterStageTasks=[*waiting("10m"), APPROVAL]), *PLAIN[1:], approved_after=900.0
    ),
    "a stage that is approved before its wait is over": staged(
        stage("staging", afterStageTasks=[*waiting("10m"), APPROVAL]), *PLAIN[1:], approved_after=60.0
    ),
    "stages of clusters of different speed": staged(
        *PLAIN[:2], stage("production", maxConcurrency=2), ready={"cluster-2": 45.0, "cluster-4": 90.0}
    ),
    "stages, and staging that fails": staged(*PLAIN, failing=frozenset({"cluster-1"})),
    "stages, and a failure that is allowed": staged(
        *PLAIN[:2], stage("production", maxFailures=1), failing=frozenset({"cluster-4"})
    ),
    "stages, and a failure too many": staged(
        PLAIN[0], stage("canary", maxFailures=0), PLAIN[2], failing=frozenset({"cluster-2"})
    ),
    "stages, and a third of the clusters that may fail": staged(
        *PLAIN[:2], stage("production", maxFailures="34%"), failing=frozenset({"cluster-5", "cluster-6"})
    ),
    "stages, and a failure that is taken back": staged(
        PLAIN[0],
        stage("canary", maxFailures=0),
        PLAIN[2],
        rollbackOnFailure=True,
        before=BEFORE,
        failing=frozenset({"cluster-3"}),
    ),
    "a second release in stages": staged(*PLAIN[:2], stage("production", maxConcurrency=2), before=BEFORE),
    "a stage that selects no cluster": staged(
        PLAIN[0], stage("nowhere", afterStageTasks=waiting("1h")), *PLAIN[1:], before=BEFORE
    ),
    "clusters in no stage that are skipped": staged(*PLAIN[:2], unmatchedClusters="Skip"),
    "clusters in no stage that nothing is said about": staged(*PLAIN[:2], before=BEFORE),
    "clusters that are cleared after a wait": staged(
        *PLAIN,
        change=(placement(Scenario(members=6, strategy={"type": "External"}, change=(), policy=pick(4))), *RELEASE),
        policy=pick(6),
        before=BEFORE,
        deleteStageTasks=waiting("10m"),
    ),
    "stages, and a cluster that cannot be reached and is skipped": staged(
        *PLAIN, before=BEFORE, unreachableClusters="Skip", silent=frozenset({"cluster-2"})
    ),
    "stages, and a cluster that cannot be reached and is waited for": staged(
        *PLAIN, before=BEFORE, silent=frozenset({"cluster-2"})
    ),
    "stages of what cannot be tracked": staged(
        *PLAIN, change=(pod_template("2"),), more=(pod_template("1"),), before=BEFORE
    ),
    "stages of what is only data": staged(*PLAIN, change=(config_map("2"),), more=(config_map("1"),), before=BEFORE),
    "a run that is midway": staged(*PLAIN, before=BEFORE, began=30.0),
    "a release that is midway": Scenario(members=5, strategy=rolling(), change=RELEASE, began=30.0),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_previewed_comes_true(name: str) -> None:
    told = compared(SCENARIOS[name])
    run_preview, real = told.preview.waves, told.real_waves
    assert [wave.clusters for wave in run_preview] == [wave.clusters for wave in real]
    assert {(one.cluster, one.what, one.revision) for one in told.preview.moves} == {
        (one.cluster, one.what, one.revision) for one in told.real
    }
    for mine, theirs in zip(run_preview, real, strict=True):
        assert mine.begins == pytest.approx(theirs.begins, rel=0.1, abs=1.0)
        assert (mine.ends is None) == (theirs.ends is None)
        if mine.ends is not None:
            assert mine.ends == pytest.approx(theirs.ends, rel=0.1, abs=1.0)
