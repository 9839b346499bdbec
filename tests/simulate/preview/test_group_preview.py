"""What a preview says about a rollout group, and that the operator then does just that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from kedge.api.core import Namespace
from kedge.api.pods import Pod
from kedge.api.zones import (
    DOWNSCALE_LEADER,
    MAX_UNAVAILABLE,
    MIN_TIME_BETWEEN_ZONES,
    NO_DOWNSCALE,
    PAUSED,
    PREPARE_DOWNSCALE,
    PREPARE_DOWNSCALE_PATH,
    PREPARE_DOWNSCALE_PORT,
    ROLLOUT_GROUP,
    ZoneAwarePodDisruptionBudget,
)
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import ApiError
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.operator_role import Operator, OperatorOptions
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.group_preview import GroupPreview, PodMove
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import run
from kedge.simulate.preview.group_observer import GroupObserver
from kedge.simulate.preview.group_runner import GroupAssumptions, run_group_preview
from kedge.simulate.preview.group_state import GroupState
from kedge.simulate.preview.group_state_reader import NotObserved, read_group
from kedge.simulate.preview.zone_services import PreparedPods
from simulate.preview.zone_cluster import (
    GROUP,
    NAMESPACE,
    SETS,
    ZONES,
    annotate,
    apply,
    group_state,
    open_group,
    pods_of,
    release,
    stateful_set,
    zone_cluster,
)
from support.fleets import client_of

A, B, C = ZONES
BUDGETS = untyped(ZoneAwarePodDisruptionBudget.resource)
Outline = list[tuple[str, list[str], int, int | None]]


@pytest.fixture(scope="module")
def ready() -> GroupState:
    """Three zones of three pods that took 20 s; at most two may be away."""
    return group_state()


def previewed(group: GroupState, changed: Sequence[Untyped] = (), **times: object) -> GroupPreview:
    known = Durations(measured=group.measured, **times)  # type: ignore[arg-type]
    return run_group_preview(group, changed, GroupAssumptions(times=known))


def outline(preview: GroupPreview) -> Outline:
    return [
        (
            wave.zone,
            [_short(move) for move in wave.pods],
            round(wave.begins),
            None if wave.ends is None else round(wave.ends),
        )
        for wave in preview.waves
    ]


def _short(move: PodMove) -> str:
    return move.pod.removeprefix(f"{move.zone}-")


def whys(preview: GroupPreview) -> dict[str, str]:
    return {stay.zone: stay.why for stay in preview.stays}


ONE_ZONE_AFTER_THE_OTHER: Outline = [
    (A, ["0", "1"], 0, 20),
    (A, ["2"], 20, 40),
    (B, ["0", "1"], 40, 60),
    (B, ["2"], 60, 80),
    (C, ["0", "1"], 80, 100),
    (C, ["2"], 100, 120),
]


# A release


def test_a_release_goes_zone_by_zone_with_as_many_pods_as_may_be_unavailable(ready: GroupState) -> None:
    preview = previewed(ready, release("app:2"))
    assert outline(preview) == ONE_ZONE_AFTER_THE_OTHER
    assert (preview.is_done, round(preview.ends or 0), preview.pods) == (True, 120, 9)


def test_the_same_group_gives_the_same_preview(ready: GroupState) -> None:
    assert previewed(ready, release("app:2")) == previewed(ready, release("app:2"))


def test_a_file_that_changes_nothing_moves_nothing(ready: GroupState) -> None:
    preview = previewed(ready, release("app:1"))
    assert (preview.is_done, preview.ends, preview.moves) == (True, 0.0, ())


def test_only_the_zone_in_the_file_moves(ready: GroupState) -> None:
    preview = previewed(ready, (stateful_set(B, "app:2"),))
    assert outline(preview) == [(B, ["0", "1"], 0, 20), (B, ["2"], 20, 40)]


def test_times_that_are_told_count(ready: GroupState) -> None:
    preview = previewed(ready, release("app:2"), given={B: 5.0}, for_all=10.0)
    assert [(zone, begins, ends) for zone, _, begins, ends in outline(preview)] == [
        (A, 0, 10),
        (A, 10, 20),
        (B, 20, 25),
        (B, 25, 30),
        (C, 30, 40),
        (C, 40, 50),
    ]


def test_without_a_measurement_a_default_counts() -> None:
    group = group_state(sets=tuple(stateful_set(zone, replicas=0) for zone in ZONES))
    preview = previewed(group, tuple(stateful_set(zone, replicas=1) for zone in ZONES))
    assert {move.what for move in preview.moves} == {"added"}
    assert {round(move.done or 0) for move in preview.moves} == {30}


def test_a_release_whose_pods_never_become_ready_stops_in_the_first_zone(ready: GroupState) -> None:
    preview = previewed(ready, release("app:2"), failing=frozenset({A}))
    assert outline(preview) == [(A, ["0", "1"], 0, None)]
    assert preview.ends is None
    assert whys(preview)[A].startswith("at most 2 of 3 pods may be unavailable, and ingester-zone-a-0 ")
    assert whys(preview)[B].startswith("all pods of the other zones have to be ready, and ingester-zone-a-0 ")
    assert [(stay.outdated, stay.pods) for stay in preview.stays] == [(1, 3), (3, 3), (3, 3)]


def test_going_back_leaves_alone_the_pods_that_still_run_the_old_revision() -> None:
    async def half(client: Client) -> None:
        await apply(client, *release("app:2"))
        await client.delete(Pod, f"{A}-0", NAMESPACE)

    group = group_state(half)
    assert outline(previewed(group, release("app:1"))) == [(A, ["0"], 0, 20)]
    assert outline(previewed(group))[0] == (A, ["1", "2"], 0, 20)


def test_replicas_that_the_file_leaves_out_stay_as_others_set_them() -> None:
    async def scaled(client: Client) -> None:
        await client.patch(SETS, A, MergePatch({"spec": {"replicas": 4}}), NAMESPACE, manager="autoscaler")

    bare = tuple(stateful_set(zone, replicas=None) for zone in ZONES)
    group = group_state(scaled, sets=bare)
    assert previewed(group, bare).moves == ()


def test_an_annotation_that_the_file_leaves_out_is_removed() -> None:
    paused = stateful_set(A, annotations={PAUSED: "true"})
    group = group_state(sets=(paused, stateful_set(B), stateful_set(C)))
    assert outline(previewed(group, release("app:2"))) == ONE_ZONE_AFTER_THE_OTHER


def test_templates_with_what_a_real_cluster_has_are_admitted(ready: GroupState) -> None:
    def grown(zone: str) -> Untyped:
        one = stateful_set(zone, "app:2")
        spec = one["spec"]["template"]["spec"]
        pod = {
            **spec,
            "serviceAccountName": "mimir",
            "priorityClassName": "high",
            "runtimeClassName": "gvisor",
            "nodeSelector": {"topology.kubernetes.io/zone": zone},
        }
        return {**one, "spec": {**one["spec"], "template": {**one["spec"]["template"], "spec": pod}}}

    assert outline(previewed(ready, tuple(map(grown, ZONES)))) == ONE_ZONE_AFTER_THE_OTHER


def test_claims_hold_nothing_up() -> None:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": wanted}
    sets = release("app:1", volumeClaimTemplates=[claim])
    group = group_state(sets=sets)
    assert outline(previewed(group, release("app:2", volumeClaimTemplates=[claim]))) == ONE_ZONE_AFTER_THE_OTHER


# A group as it is


def test_a_group_at_rest_does_not_move(ready: GroupState) -> None:
    preview = previewed(ready)
    assert (preview.is_done, preview.moves, preview.stays) == (True, (), ())


def test_outdated_pods_are_replaced_as_in_a_release() -> None:
    async def change(client: Client) -> None:
        await apply(client, *release("app:2"))

    assert outline(previewed(group_state(change))) == ONE_ZONE_AFTER_THE_OTHER


def test_a_paused_zone_stays_and_says_how_to_go_on() -> None:
    async def change(client: Client) -> None:
        await apply(client, *release("app:2"))
        await annotate(client, B, PAUSED, "true")

    preview = previewed(group_state(change))
    assert [zone for zone, *_ in outline(preview)] == [A, A, C, C]
    assert whys(preview) == {B: f"it is paused; removing its annotation {PAUSED} lets it go on"}
    assert not preview.is_done


def test_a_group_with_another_update_strategy_is_left_alone() -> None:
    rolling = stateful_set(B, updateStrategy={"type": "RollingUpdate"})
    group = group_state(sets=(stateful_set(A), rolling, stateful_set(C)))
    preview = previewed(group, (stateful_set(A, "app:2"), stateful_set(C, "app:2")))
    assert preview.moves == ()
    why = f"StatefulSet {B} has RollingUpdate update strategy while OnDelete is expected, skipping reconcile"
    assert set(whys(preview).values()) == {why}


def test_a_zone_that_is_not_ready_holds_up_the_others() -> None:
    async def break_a_pod(client: Client) -> None:
        await client.patch(
            Pod, f"{C}-1", MergePatch({"metadata": {"annotations": {"kedge.dev/crash-loop": "true"}}}), NAMESPACE
        )

    group = group_state(break_a_pod)
    preview = previewed(group, (stateful_set(A, "app:2"),))
    assert preview.moves == ()
    assert whys(preview)[A] == (
        "all pods of the other zones have to be ready, and ingester-zone-c-1 (CrashLoopBackOff) is not ready"
    )


def test_pods_that_only_the_release_can_mend_come_first() -> None:
    async def break_it(client: Client) -> None:
        await apply(client, *release("app:bad"))
        await client.delete(Pod, f"{B}-2", NAMESPACE)

    group = group_state(break_it, wait=3600)
    assert outline(previewed(group, release("app:2")))[0] == (B, ["0", "2"], 0, 20)


def test_a_pod_that_is_on_its_way_becomes_ready_in_its_time() -> None:
    async def lose_a_pod(client: Client) -> None:
        await client.delete(Pod, f"{A}-0", NAMESPACE)

    group = group_state(lose_a_pod, wait=5.0)
    (move,) = previewed(group).moves
    assert (move.pod, move.what) == (f"{A}-0", "starting")
    assert move.done == pytest.approx(15.0, abs=1.5)


def test_a_limit_that_cannot_be_read_is_said_and_counts_as_one(ready: GroupState) -> None:
    changed = (stateful_set(A, "app:2", annotations={MAX_UNAVAILABLE: "many"}),)
    preview = previewed(ready, changed)
    assert [pods for _, pods, *_ in outline(preview)] == [["0"], ["1"], ["2"]]
    assert preview.problems == (
        f"{A}: annotation {MAX_UNAVAILABLE} is 'many': expected a positive integer or a percentage; 1 counts",
    )


def test_a_disruption_budget_keeps_pods_and_its_sentence_is_said() -> None:
    async def guard(client: Client) -> None:
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"name": A}}}
        await client.create(BUDGETS, {"metadata": {"name": "keep", "namespace": NAMESPACE}, "spec": spec})

    preview = previewed(group_state(guard), (stateful_set(A, "app:2"),))
    assert preview.moves == ()
    assert whys(preview)[A].startswith(f"a ZoneAwarePodDisruptionBudget keeps {A}-0: ")


@pytest.mark.parametrize(("image", "moves"), [("app:1", 9), ("app:bad", 0)])
def test_a_zone_outside_of_the_group_counts_for_its_disruption_budget(image: str, moves: int) -> None:
    async def guard(client: Client) -> None:
        outside = stateful_set("store-gateway", image, updateStrategy={"type": "RollingUpdate"})
        await apply(client, {**outside, "metadata": {**outside["metadata"], "labels": {}}})
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {}}}
        await client.create(BUDGETS, {"metadata": {"name": "all", "namespace": NAMESPACE}, "spec": spec})

    preview = previewed(group_state(guard), release("app:2"))
    assert len(preview.moves) == moves
    assert preview.is_done == (moves == 9)
    if not preview.is_done:
        assert whys(preview)[A].endswith("3 pods not ready in store-gateway")


# Scaling


def test_a_new_zone_is_added_and_one_that_follows_is_scaled(ready: GroupState) -> None:
    other = f"{GROUP}-zone-d"
    preview = previewed(ready, (stateful_set(other, replicas=2),))
    assert [(move.pod, move.what) for move in preview.moves] == [(f"{other}-0", "added"), (f"{other}-1", "added")]
    assert preview.is_done


def test_replicas_in_the_file_add_and_remove_pods(ready: GroupState) -> None:
    preview = previewed(ready, (stateful_set(A, replicas=5), stateful_set(B, replicas=1)))
    assert sorted((move.pod, move.what.value) for move in preview.moves) == [
        (f"{A}-3", "added"),
        (f"{A}-4", "added"),
        (f"{B}-1", "removed"),
        (f"{B}-2", "removed"),
    ]
    assert preview.is_done


def test_followers_are_scaled_with_their_leader() -> None:
    follows = {DOWNSCALE_LEADER: A}
    sets = (stateful_set(A), *(stateful_set(zone, replicas=None, annotations=follows) for zone in (B, C)))
    group = group_state(sets=sets)
    preview = previewed(group, (stateful_set(A, replicas=4),))
    assert {(move.pod, move.what.value) for move in preview.moves} >= {(f"{A}-3", "added"), (f"{B}-3", "added")}
    assert preview.pods == 12


def test_a_leader_that_is_missing_is_said_in_the_operators_words(ready: GroupState) -> None:
    preview = previewed(ready, (stateful_set(B, annotations={DOWNSCALE_LEADER: "nobody"}),))
    assert whys(preview)[B].startswith(f"could not find leader for {B} using {DOWNSCALE_LEADER}: ")
    assert not preview.is_done


def protected(zone: str, label: str, **options: Any) -> Untyped:
    """A zone with the label of a webhook."""
    one = stateful_set(zone, **options)
    labels = {**one["metadata"]["labels"], label: "true", MIN_TIME_BETWEEN_ZONES: "2h"}
    return {**one, "metadata": {**one["metadata"], "labels": labels}}


def test_downscales_of_zones_are_as_far_apart_as_their_labels_say() -> None:
    prepare = {PREPARE_DOWNSCALE_PATH: "prepare", PREPARE_DOWNSCALE_PORT: "80"}
    follows = {**prepare, DOWNSCALE_LEADER: A}
    leader = protected(A, PREPARE_DOWNSCALE, annotations=prepare)
    follower = protected(B, PREPARE_DOWNSCALE, annotations=follows)
    group = group_state(sets=(leader, follower))
    preview = previewed(group, (protected(A, PREPARE_DOWNSCALE, annotations=prepare, replicas=2),))
    assert [(move.pod, move.what.value) for move in preview.moves] == [(f"{A}-2", "removed"), (f"{B}-2", "removed")]
    assert preview.moves[1].at == pytest.approx(2 * 3600.0, abs=5.0)
    assert preview.is_done


# What is refused


def test_a_downscale_that_a_webhook_forbids_is_refused_in_its_words() -> None:
    group = group_state(sets=(protected(A, NO_DOWNSCALE),))
    with pytest.raises(ApiError, match="downscale of statefulsets"):
        previewed(group, (protected(A, NO_DOWNSCALE, replicas=1),))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"replica": 3}, ".spec.replica"),
        ({"serviceName": "other"}, "updates to statefulset spec for fields other than"),
        ({"replicas": -1}, "spec.replicas"),
    ],
)
def test_a_change_that_the_server_refuses_is_refused(ready: GroupState, changed: Untyped, said: str) -> None:
    with pytest.raises(ApiError) as refused:
        previewed(
            ready, (stateful_set(A, **changed),) if "replicas" not in changed else (stateful_set(A, replicas=-1),)
        )
    assert said in refused.value.message


def test_a_status_that_does_not_speak_of_its_spec_is_no_ground_for_a_preview() -> None:
    async def reading() -> None:
        clock = LoopClock(asyncio.get_running_loop())
        cluster = EmbeddedCluster("cluster", clock=clock, rng=Random(1))
        async with client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": NAMESPACE}})
            await apply(client, stateful_set(A))  # and no controller runs
            with pytest.raises(NotObserved, match=f"StatefulSet {A}: its status does not speak of its spec yet"):
                await read_group(client, NAMESPACE, GROUP, (), clock.now())
        cluster.stop()

    run(reading())


# Reality


def test_the_operator_does_what_was_previewed() -> None:
    async def reality() -> tuple[GroupPreview, GroupState]:
        async with zone_cluster() as (cluster, client, clock):
            await open_group(client)
            group = await read_group(client, NAMESPACE, GROUP, (), clock.now())
            async with Manager(component="operator", clock=clock, rng=Random("operator")) as manager:
                connection = await manager.connect("cluster", cluster.transport())
                operator = Operator(
                    connection,
                    OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,)),
                    clock=clock,
                    rng=Random("role"),
                    registry=CollectorRegistry(),
                    outbound=PreparedPods(clock),
                )
                for controller in operator.acting:
                    manager.add_controller(controller)
                observer = GroupObserver(connection, group, clock=clock)
                running = asyncio.create_task(manager.run(signals=False))
                await apply(client, *release("app:2"))
                seen = await observer.preview(3600.0, 3600.0, lambda _: None)
                assert len(await pods_of(client)) == 9
                manager.stop()
                await running
            return seen, group

    seen, group = run(reality())
    expected = previewed(group, release("app:2"))
    assert outline(expected) == outline(seen)
    assert seen.is_done


# Where it is


def test_a_group_may_be_in_a_namespace_that_every_cluster_has(ready: GroupState) -> None:
    changed = [_moved(one, "default") for one in release("app:2")]
    assert outline(previewed(_in_namespace(ready, "default"), changed)) == ONE_ZONE_AFTER_THE_OTHER


def _in_namespace(group: GroupState, place: str) -> GroupState:
    parts = {name: tuple(_moved(one, place) for one in getattr(group, name)) for name in ("sets", "pods", "revisions")}
    return replace(group, namespace=place, **parts)


def _moved(one: Untyped, place: str) -> Untyped:
    return {**one, "metadata": {**one["metadata"], "namespace": place}}


def test_a_zone_that_changes_its_group_is_told_of_in_its_new_group_alone(ready: GroupState) -> None:
    leaving = stateful_set(A, "app:2")
    leaving["metadata"]["labels"] = {ROLLOUT_GROUP: "other"}
    changed = [leaving, stateful_set(B, "app:2")]
    old, new = previewed(ready, changed), previewed(replace(ready, name="other", sets=ready.sets[:1]), changed)
    assert (old.zones, {move.zone for move in old.moves}, old.pods) == ((B, C), {B}, 6)
    assert (new.zones, {move.zone for move in new.moves}, new.pods) == ((A,), {A}, 3)
