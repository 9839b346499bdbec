"""The story that was recorded, told once more: step by step through one fleet, looked at where the recording was.

Between the parts the placement is deleted and made anew, as it was then.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from fleet import kinds
from fleet.bed import Bed
from fleet.seeds import example, placement, staged
from fleet.traces import Fleet, Untyped
from kedge.kube.codec import Codec
from kedge.kube.patches import MergePatch

PLACEMENT = "crp"
STAGED, STAGED_NAMESPACE, RUN = "crp-staged-update-sample", "test-namespace", "example-staged-update-run"
_HOLD = "fleet.test/hold"
_NAMESPACE_SELECTOR = {"group": "", "kind": "Namespace", "version": "v1"}


class Story:
    """What was seen at each step; a step that failed has its error instead, and so have those after it.

    `failures` is what reconciles failed with on the way, and `seconds` how long each step took to come to rest.
    """

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.seconds: dict[str, float] = {}
        self._seen: dict[str, Fleet | str] = {}

    def at(self, step: str) -> Fleet:
        seen = self._seen.get(step, "it was never reached")
        assert isinstance(seen, Fleet), f"step {step}: {seen}"
        return seen

    async def tell(self, bed: Bed) -> None:
        with _failures(self.failures):
            await self._tell(bed)

    async def _tell(self, bed: Bed) -> None:
        loop = asyncio.get_running_loop()
        for step, play in STEPS.items():
            begun = loop.time()
            try:
                self._seen[step] = await play(bed)
                self.seconds[step] = bed.rests_since - begun
            except Exception:  # noqa: BLE001  # it is told of by every test of the steps that it spoils
                self._seen |= dict.fromkeys(list(STEPS)[list(STEPS).index(step) :], traceback.format_exc())
                return


async def joined(bed: Bed) -> Fleet:
    return await bed.at_rest()


async def example_1_placed(bed: Bed) -> Fleet:
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}})
    await bed.apply(deployment("app:1"))
    await bed.apply(example(1)[0])
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def bad_image(bed: Bed) -> Fleet:
    await set_image(bed, "app:bad")
    await bed.until(lambda: is_so(bed, "RolloutStarted", "False"))
    return await bed.at_rest()


async def good_image_again(bed: Bed) -> Fleet:
    await set_image(bed, "app:2")
    await bed.until(lambda: is_at_index(bed, "2"))
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def example_2_west(bed: Bed) -> Fleet:
    await begin_anew(bed)
    await bed.apply(example(2)[0])
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def example_2_moving(bed: Bed) -> Fleet:
    """A moment, made to last: east cannot run its pods yet, and the first of the west cannot let go."""
    async with held(bed, "cluster-1"):
        for member in ("cluster-3", "cluster-4"):
            await bed.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": True}}, on=member)
        await bed.apply(example(2)[1])
        await bed.until(lambda: has_works(bed, "cluster-3", "cluster-4"))
        await bed.until(lambda: is_so(bed, "Available", "False"))
        return await bed.at_rest()


async def example_2_east(bed: Bed) -> Fleet:
    """East is done, and the second of the west is on its way out."""
    async with held(bed, "cluster-2"):
        for member in ("cluster-3", "cluster-4"):
            await bed.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": None}}, on=member)
        await bed.until(lambda: is_so(bed, "Available"))
        await bed.until(lambda: is_only_on(bed, "cluster-2", "cluster-3", "cluster-4"))
        return await bed.at_rest()


async def too_few(bed: Bed) -> Fleet:
    """While cluster-3 is still held up by what was there before, as when this was recorded."""
    terms = [{"labelSelector": {"matchLabels": {"loc": "east"}}}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}
    policy = {"placementType": "PickN", "numberOfClusters": 4, "affinity": {"clusterAffinity": required}}
    async with held(bed, "cluster-3"):
        await bed.delete(kinds.PLACEMENTS, PLACEMENT)
        await bed.until(lambda: has_no_works(bed, "cluster-4"))
        await bed.apply(placing("test-ns", policy))
        await bed.until(lambda: is_so(bed, "Scheduled", "False"))
        return await bed.at_rest()


async def too_few_for_good(bed: Bed) -> Fleet:
    """The same once nothing is held up any more; this was not recorded."""
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def unknown_cluster(bed: Bed) -> Fleet:
    await begin_anew(bed)
    await bed.apply(placing("test-ns", {"placementType": "PickFixed", "clusterNames": ["cluster-1", "nowhere"]}))
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def nothing_selected(bed: Bed) -> Fleet:
    await begin_anew(bed)
    await bed.apply(placing("not-there", None))
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def apply_fails(bed: Bed) -> Fleet:
    """cluster-2 has the namespace already, with a quota of no Deployments."""
    await begin_anew(bed)
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}}, "cluster-2")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "test-ns"}}
    await bed.apply({**quota, "spec": {"hard": {"count/deployments.apps": "0"}}}, "cluster-2")
    await bed.until(lambda: refuses_deployments(bed, "cluster-2"))
    await bed.apply(placing("test-ns", {"placementType": "PickFixed", "clusterNames": ["cluster-2"]}))
    await bed.until(lambda: is_so(bed, "Applied", "False", "ApplyFailed"))
    return await bed.at_rest()


async def apply_recovers(bed: Bed) -> Fleet:
    await bed.delete(kinds.QUOTAS, "none", "test-ns", on="cluster-2")
    await bed.until(lambda: is_so(bed, "Available"))
    return await bed.at_rest()


async def external(bed: Bed) -> Fleet:
    """A placement that staged update runs move, before any has. When this was recorded there were two canaries."""
    await begin_anew(bed)
    await bed.patch(kinds.MEMBERS, "cluster-3", {"metadata": {"labels": {"environment": "canary"}}}, on="hub")
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STAGED_NAMESPACE}})
    meta = {"name": "c", "namespace": STAGED_NAMESPACE}
    await bed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "0"}})
    await bed.apply(staged()[1])
    await bed.until(lambda: is_picked(bed))
    return await bed.at_rest()


async def run_initialized(bed: Bed) -> Fleet:
    await bed.apply(STRATEGY)
    await bed.apply(run_named(RUN, "Initialize"))
    await bed.until(lambda: run_says(bed, RUN, "Initialized", "UpdateRunInitializedSuccessfully"))
    return await bed.at_rest()


async def run_waits_for_time(bed: Bed) -> Fleet:
    await bed.patch(kinds.RUNS, RUN, {"spec": {"state": "Run"}}, on="hub")
    await bed.until(lambda: run_says(bed, RUN, "Progressing", "UpdateRunWaiting"))
    return await bed.at_rest()


async def run_waits_for_approval(bed: Bed) -> Fleet:
    await bed.until(lambda: is_there(bed, kinds.APPROVALS, f"{RUN}-after-canary"))
    return await bed.at_rest()


async def run_succeeds(bed: Bed) -> Fleet:
    await approve(bed, f"{RUN}-after-canary")
    await bed.until(lambda: run_says(bed, RUN, "Succeeded", "UpdateRunSucceeded"))
    return await bed.at_rest()


async def second_run(bed: Bed) -> Fleet:
    """cluster-4 is no longer picked; the run that will clear it is in its second stage."""
    await bed.patch(kinds.MEMBERS, "cluster-4", {"metadata": {"labels": {"env": "other"}}}, on="hub")
    terms = [{"labelSelector": {"matchLabels": {"env": "prod"}}}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}
    policy = {"placementType": "PickAll", "affinity": {"clusterAffinity": required}}
    await bed.patch(kinds.PLACEMENTS, STAGED, {"spec": {"policy": policy}}, on="hub")
    await bed.apply(run_named("second", "Run"))
    await bed.until(lambda: is_there(bed, kinds.APPROVALS, "second-after-canary"))
    return await bed.at_rest()


async def second_run_ends(bed: Bed) -> Fleet:
    """The same once it was approved; this was not recorded."""
    await approve(bed, "second-after-canary")
    await bed.until(lambda: run_says(bed, "second", "Succeeded", "UpdateRunSucceeded"))
    return await bed.at_rest()


async def member_leaves(bed: Bed) -> Fleet:
    """cluster-4 leaves, and keeps what was placed on it."""
    for name in (RUN, "second"):
        await bed.delete(kinds.RUNS, name)
    await bed.delete(kinds.PLACEMENTS, STAGED)
    await bed.until(lambda: is_only_on(bed))
    await bed.patch(kinds.MEMBERS, "cluster-3", {"metadata": {"labels": {"environment": "production"}}}, on="hub")
    await bed.patch(kinds.MEMBERS, "cluster-4", {"metadata": {"labels": {"env": "prod"}}}, on="hub")
    await bed.apply(STRATEGY)
    await bed.apply(placing("test-ns", {"placementType": "PickFixed", "clusterNames": ["cluster-4"]}))
    await bed.until(lambda: is_so(bed, "Available"))
    await bed.delete(kinds.MEMBERS, "cluster-4")
    return await bed.at_rest()


STEPS: dict[str, Callable[[Bed], Awaitable[Fleet]]] = {
    "01": joined,
    "02": example_1_placed,
    "03": bad_image,
    "04": good_image_again,
    "05": example_2_west,
    "06": example_2_moving,
    "07": example_2_east,
    "08": too_few,
    "08-rest": too_few_for_good,
    "09": unknown_cluster,
    "10": nothing_selected,
    "11": apply_fails,
    "12": apply_recovers,
    "13": external,
    "14": run_initialized,
    "15": run_waits_for_time,
    "16": run_waits_for_approval,
    "17": run_succeeds,
    "18": second_run,
    "18-rest": second_run_ends,
    "19": member_leaves,
}


class _Failures(logging.Handler):
    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        self._into.append(getattr(record, "error", record.getMessage()))


@contextmanager
def _failures(into: list[str]) -> Iterator[None]:
    """A while in which whatever Kedge logs as an error is written down."""
    log, handler = logging.getLogger("kedge"), _Failures(into)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


# What is placed


def deployment(image: str, replicas: int = 2) -> Untyped:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "test-ns", "labels": {"app": "web"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def placing(namespace: str, policy: Untyped | None) -> Untyped:
    """A placement of a namespace, with no strategy."""
    spec = {"resourceSelectors": [{**_NAMESPACE_SELECTOR, "name": namespace}], **({"policy": policy} if policy else {})}
    return placement(spec)


async def set_image(bed: Bed, image: str) -> None:
    containers = [{"name": "app", "image": image}]
    body = {"spec": {"template": {"spec": {"containers": containers}}}}
    await bed.patch(kinds.DEPLOYMENTS, "web", body, "test-ns", on="hub")


async def begin_anew(bed: Bed) -> None:
    """Delete the placement, and wait until nothing of it is left anywhere."""
    await bed.delete(kinds.PLACEMENTS, PLACEMENT)
    await bed.until(lambda: is_only_on(bed))


@asynccontextmanager
async def held(bed: Bed, member: str) -> AsyncIterator[None]:
    """A while in which what is placed on a member cannot be removed from it entirely."""
    await bed.patch(kinds.DEPLOYMENTS, "web", {"metadata": {"finalizers": [_HOLD]}}, "test-ns", on=member)
    try:
        yield
    finally:
        others = (await bed.get(kinds.DEPLOYMENTS, "web", "test-ns", on=member))["metadata"]["finalizers"]
        left = [one for one in others if one != _HOLD]
        await bed.patch(kinds.DEPLOYMENTS, "web", {"metadata": {"finalizers": left}}, "test-ns", on=member)


def run_named(name: str, state: str) -> Untyped:
    """A run of whatever is the newest."""
    spec = {"placementName": STAGED, "stagedRolloutStrategyName": "example-staged-strategy", "state": state}
    kind = {"apiVersion": "placement.kubernetes-fleet.io/v1", "kind": "ClusterStagedUpdateRun"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


async def approve(bed: Bed, name: str) -> None:
    said = {"type": "Approved", "status": "True", "reason": "lgtm", "message": "", "observedGeneration": 1}
    now = f"{bed.ground.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    body = {"status": {"conditions": [{**said, "lastTransitionTime": now}]}}
    await bed.hub.patch(kinds.APPROVALS, name, MergePatch(body), subresource="status")


# What to wait for


async def is_picked(bed: Bed) -> bool:
    found = await bed.condition(kinds.PLACEMENTS, STAGED, "ClusterResourcePlacementScheduled")
    return bool(found.get("status") == "True")


async def is_there(bed: Bed, kind: Codec[Untyped], name: str) -> bool:
    return not await bed.is_gone(kind, name)


async def run_says(bed: Bed, name: str, kind: str, reason: str) -> bool:
    return bool((await bed.condition(kinds.RUNS, name, kind)).get("reason") == reason)


async def is_so(bed: Bed, suffix: str, status: str = "True", reason: str = "") -> bool:
    """Whether the placement's condition says so, of the placement as it is."""
    found = await bed.get(kinds.PLACEMENTS, PLACEMENT)
    condition = await bed.condition(kinds.PLACEMENTS, PLACEMENT, f"ClusterResourcePlacement{suffix}")
    says = condition.get("status") == status and condition.get("reason", "").startswith(reason)
    return says and condition.get("observedGeneration") == found["metadata"]["generation"]


async def is_at_index(bed: Bed, index: str) -> bool:
    status = (await bed.get(kinds.PLACEMENTS, PLACEMENT)).get("status", {})
    return bool(status.get("observedResourceIndex") == index)


async def works_in(bed: Bed) -> set[str]:
    """The members that have Works."""
    return {work["metadata"]["namespace"].removeprefix("fleet-member-") for work in await bed.all(kinds.WORKS)}


async def has_works(bed: Bed, *members: str) -> bool:
    return set(members) <= await works_in(bed)


async def has_no_works(bed: Bed, *members: str) -> bool:
    return not set(members) & await works_in(bed)


async def is_only_on(bed: Bed, *members: str) -> bool:
    return await works_in(bed) == set(members)


async def refuses_deployments(bed: Bed, member: str) -> bool:
    """Whether the quota is in force: on a real cluster a controller has to count first."""
    found = await bed.get(kinds.QUOTAS, "none", "test-ns", on=member)
    return "used" in found.get("status", {}) or bed.ground.apply is None


STRATEGY = """
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateStrategy
metadata:
  name: example-staged-strategy
spec:
  stages:
  - name: staging
    labelSelector: {matchLabels: {environment: staging}}
    afterStageTasks: [{type: TimedWait, waitTime: 40s}]
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
    sortingLabelKey: order
    afterStageTasks: [{type: Approval}]
  - name: production
    labelSelector: {matchLabels: {environment: production}}
    sortingLabelKey: order
"""
