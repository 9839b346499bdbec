"""Which clusters are picked, and the words that say why (kubefleet.md §2)."""

from __future__ import annotations

from typing import Any, Final

from fleet.bed import MEMBERS
from fleet.situations.ghost import GHOST, Ghost
from fleet.situations.playing import Group
from fleet.situations.stage import BOTH, MEMBER_CLUSTERS, Stage, fixed, message, pick, required, rolling, spoken

GROUP: Final = Group("decisions")

_SCORED: Final = (
    'Successfully scheduled resources for placement in "{}" (affinity score: {}, topology spread score: {}): '
    "picked by scheduling policy"
)
_NAMED: Final = 'Successfully scheduled resources for placement in "{}": picked by scheduling policy'
_OUTSCORED: Final = 'Cluster "{}" does not score high enough (affinity score: {}, topology spread score: {})'
_AFFINITY: Final = "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms"
_TAINT: Final = {"key": "old", "value": "yes", "effect": "NoSchedule"}


def preferred(weight: int, **labels: str) -> dict[str, Any]:
    """An affinity that likes clusters with these labels better."""
    terms = [{"weight": weight, "preference": {"labelSelector": {"matchLabels": labels}}}]
    return {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


async def taint(stage: Stage, cluster: str) -> None:
    await stage.change(MEMBER_CLUSTERS, cluster, {"spec": {"taints": [_TAINT]}})


@GROUP.situation("2.7", {one: _SCORED.format(one, 0, 0) for one in MEMBERS}, kinds=BOTH)
async def every_cluster_is_picked(stage: Stage) -> object:
    await stage.placed()
    return await stage.decisions()


@GROUP.situation("2.7", {"cluster-2": _NAMED.format("cluster-2")}, kinds=BOTH)
async def a_cluster_is_named(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-2"))
    return await stage.decisions()


@GROUP.situation("2.5", ["cluster-3", "cluster-4"], kinds=BOTH, real=True)
async def of_equal_clusters_the_larger_names_are_picked(stage: Stage) -> object:
    await stage.placed(policy=pick(2))
    return await stage.picked()


@GROUP.situation(
    "2.7",
    {"cluster-4": _SCORED.format("cluster-4", 0, 0), **{one: _OUTSCORED.format(one, 0, 0) for one in MEMBERS[:3]}},
)
async def others_are_as_good(stage: Stage) -> object:
    await stage.placed(policy=pick(1))
    return await stage.decisions()


@GROUP.situation(
    "2.7",
    {**{one: _SCORED.format(one, 0, 0) for one in MEMBERS[:2]}, **dict.fromkeys(MEMBERS[2:], _AFFINITY)},
    kinds=BOTH,
)
async def clusters_do_not_match_the_affinity(stage: Stage) -> object:
    await stage.placed(policy=pick(2, affinity=required(loc="west")))
    return await stage.decisions()


@GROUP.situation("2.5", ["cluster-2", [{"affinityScore": 20, "priorityScore": 0}]])
async def the_preferred_cluster_is_picked_with_its_score(stage: Stage) -> object:
    await stage.placed(policy=pick(1, affinity=preferred(20, environment="canary")))
    (policy,) = await stage.policies()
    scores = [one["clusterScore"] for one in policy["status"]["targetClusters"] if one["selected"]]
    return [*await stage.picked(), scores]


@GROUP.situation("2.5", ["cluster-4"])
async def a_negative_weight_avoids_clusters(stage: Stage) -> object:
    await stage.placed(policy=pick(1, affinity=preferred(-20, loc="west")))
    return await stage.picked()


@GROUP.situation("2.5", ["cluster-2", "cluster-4"], kinds=BOTH)
async def clusters_are_spread_over_places(stage: Stage) -> object:
    await stage.placed(policy=pick(2, topologySpreadConstraints=[{"topologyKey": "loc"}]))
    return await stage.picked()


@GROUP.situation("2.7", ["cluster-3"])
async def a_property_is_asked_for(stage: Stage) -> object:
    name = "resources.kubernetes-fleet.io/allocatable-cpu"
    expression = {"name": name, "operator": "Ge", "values": ["1m"]}
    term = {"labelSelector": {"matchLabels": {"order": "3"}}, "propertySelector": {"matchExpressions": [expression]}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [term]}}
    await stage.placed(policy={"placementType": "PickAll", "affinity": {"clusterAffinity": terms}})
    return await stage.picked()


@GROUP.situation("2.4", ("cluster-3", "ClusterUnschedulable, "))
async def a_tainted_cluster_is_not_picked(stage: Stage) -> object:
    await taint(stage, "cluster-4")
    await stage.placed(policy=pick(1))
    return (await stage.picked())[0], (await stage.decisions())["cluster-4"][:22]


@GROUP.situation("2.4", ["cluster-4"])
async def a_tainted_cluster_is_picked_if_that_is_tolerated(stage: Stage) -> object:
    await taint(stage, "cluster-4")
    await stage.placed(policy=pick(1, tolerations=[{"key": "old", "operator": "Equal", "value": "yes"}]))
    return await stage.picked()


@GROUP.situation("2.4", ["cluster-4"])
async def taints_do_not_matter_where_clusters_are_named(stage: Stage) -> object:
    await taint(stage, "cluster-4")
    await stage.placed(policy=fixed("cluster-4"))
    return await stage.picked()


@GROUP.situation("2.4", list(MEMBERS), kinds=BOTH)
async def a_taint_that_comes_later_evicts_nobody(stage: Stage) -> object:
    await stage.placed()
    await taint(stage, "cluster-1")
    await stage.rest()
    return await stage.picked()


@GROUP.situation("2.6", ["cluster-1", "cluster-2"])
async def a_label_that_goes_later_deselects_nobody(stage: Stage) -> object:
    await stage.placed(policy=pick(2, affinity=required(loc="west")))
    await stage.change(MEMBER_CLUSTERS, "cluster-1", {"metadata": {"labels": {"loc": "moon"}}})
    await stage.rest()
    return await stage.picked()


@GROUP.situation("2.2", list(MEMBERS))
async def a_cluster_that_comes_to_fit_is_picked(stage: Stage) -> object:
    await taint(stage, "cluster-4")
    await stage.placed()
    await stage.change(MEMBER_CLUSTERS, "cluster-4", {"spec": {"taints": None}})
    await stage.rest()
    return await stage.picked()


@GROUP.situation("2.6", ('Specified cluster "nowhere" is not found', ["Scheduled False SchedulingPolicyUnfulfilled"]))
async def a_named_cluster_is_missing(stage: Stage) -> object:
    await stage.placed(policy=fixed("nowhere"))
    (policy,) = await stage.policies()
    return (await stage.decisions())["nowhere"], spoken(policy["status"], policy["metadata"]["generation"])


@GROUP.situation(
    "2.6", f'Cluster "{GHOST}" is not eligible for resource placement yet: cluster is not connected to the fleet'
)
async def a_named_cluster_has_no_agent(stage: Stage) -> object:
    await Ghost(stage).comes()
    await stage.placed(policy=fixed(GHOST))
    said = (await stage.decisions())[GHOST]
    return said[: said.rindex(":")]


@GROUP.situation(
    "2.7", ["found all cluster needed as specified by the scheduling policy, found 4 cluster(s)", 1], kinds=BOTH
)
async def a_policy_says_what_was_found(stage: Stage) -> object:
    await stage.placed()
    (policy,) = await stage.policies()
    return [message(policy["status"], "Scheduled"), policy["status"]["observedCRPGeneration"]]


@GROUP.situation(
    "2.7", "could not find all clusters needed as specified by the scheduling policy, found 4 cluster(s) instead"
)
async def a_policy_says_that_too_few_were_found(stage: Stage) -> object:
    await stage.placed(policy=pick(9))
    (policy,) = await stage.policies()
    return message(policy["status"], "Scheduled")


@GROUP.situation("2.6", ({"cluster-3", "cluster-4"}, True), kinds=BOTH)
async def another_policy_keeps_clusters_that_still_fit(stage: Stage) -> object:
    await stage.placed(policy=pick(2))
    before = {one["metadata"]["name"] for one in (await stage.bindings()).values()}
    await stage.edit(policy={"affinity": required(env="prod")})
    await stage.rest()
    after = await stage.bindings()
    return set(after), {one["metadata"]["name"] for one in after.values()} == before


@GROUP.situation("2.6", {"cluster-2", "cluster-3", "cluster-4"}, kinds=BOTH)
async def fewer_clusters_are_wanted_and_the_smallest_name_goes(stage: Stage) -> object:
    await stage.placed(policy=pick(4), strategy=rolling("100%"))
    await stage.edit(policy={"numberOfClusters": 3})
    await stage.rest()
    return set(await stage.bindings())
