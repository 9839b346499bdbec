"""Deployments go through the same states with our controllers as with kube-controller-manager.

The test makes pods ready itself, one at a time, so that everything in between is at rest and nothing is a race. There
are no nodes: a pod that is deleted is gone at once. How long a pod has been ready is the test's to say as well, so
that minReadySeconds takes no time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from kedge.api.apps import Deployment, ReplicaSet
from kedge.embedded.workloads.deployments import Deployments
from kedge.embedded.workloads.everything import Parts
from kedge.embedded.workloads.replicas import ReplicaSets
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from real.histories import Histories, as_told
from support.recording.api import RealApi
from support.stage import PODS, Stage, embedded_stage
from support.virtual import run

DEPLOYMENTS, SETS = untyped(Deployment.resource), untyped(ReplicaSet.resource)
PARTS: Parts = [("deployment", Deployments), ("replicaset", ReplicaSets)]
HASH, PREFIX = "pod-template-hash", "deployment.kubernetes.io/"
AN_HOUR = timedelta(hours=1)
LATE = "ProgressDeadlineExceeded"


def rolling(surge: int | str, unavailable: int | str, replicas: int = 3, **spec: Any) -> dict[str, Any]:
    numbers = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": numbers}, **spec}


def recreate(replicas: int = 3) -> dict[str, Any]:
    return {"replicas": replicas, "strategy": {"type": "Recreate"}}


# `ready` makes one pod ready (of the newest revision first), `all` one after another until every pod is; `old`, after
# a colon, means a pod of the oldest revision that has one.
ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "no strategy": ({"replicas": 4}, "all image=b ready ready ready ready"),
    "one more": (rolling(1, 0), "all image=b ready ready ready"),
    "one less": (rolling(0, 1), "all image=b ready ready ready"),
    "one more and one less": (rolling(1, 1, 4), "all image=b ready ready ready ready"),
    "all at once": (rolling("100%", 0), "all image=b ready ready ready"),
    "all may be gone": (rolling(0, "100%"), "all image=b ready ready ready"),
    "percentages, surge rounded up and unavailable down": (rolling("34%", "34%", 5), "all image=b all"),
    "percentages that come to nothing": (rolling("0%", "10%", 3), "all image=b ready ready ready"),
    "more surge than pods": (rolling(5, 1, 2), "all image=b ready ready"),
    "a single pod": (rolling("25%", "25%", 1), "ready image=b ready"),
    "no pods at all": (rolling(1, 1, 0), "image=b replicas=2 ready ready"),
    "Recreate": (recreate(), "all image=b ready ready ready"),
    "Recreate before anything is ready": (recreate(2), "image=b ready image=a all"),
    "Recreate scaled": (recreate(2), "all replicas=3 image=b replicas=1 all"),
    "a bad revision stops at the budget, and is undone": (rolling(1, 1, 4), "all image=b image=a"),
    "a bad revision is replaced by a good one": (rolling(1, 0), "all image=b image=c ready ready ready"),
    "three revisions at once": (rolling(2, 1, 6), "all image=b ready ready image=c ready ready ready all"),
    "broken old pods go first": (rolling(1, 1, 4), "all unready:old unready:old image=b ready ready ready ready"),
    "nothing was ever ready": (rolling(1, 1, 3), "image=b ready ready ready"),
    "scaled up and down at rest": (rolling(1, 1), "all replicas=5 ready ready replicas=2 replicas=0 replicas=1 ready"),
    "scaled up during a rollout": (rolling(3, 2, 10), "all-quick image=b replicas=15 ready"),
    "scaled down during a rollout": (rolling(2, 2, 8), "all-quick image=b ready replicas=5 ready all"),
    "scaled to nothing during a rollout": (rolling(1, 1, 4), "all image=b replicas=0 replicas=2 all"),
    "paused at first": (rolling(1, 1, 3, paused=True), "image=b replicas=4 resume ready ready ready ready"),
    "paused and resumed": (rolling(1, 0), "all pause image=b replicas=4 ready resume ready ready ready ready"),
    "paused in the middle": (rolling(1, 0), "all image=b pause ready replicas=5 ready resume all"),
    "minReadySeconds": (
        rolling(1, 0, 2, minReadySeconds=1000, progressDeadlineSeconds=2000),
        "ready ready aged aged image=b ready aged ready aged",
    ),
    "minReadySeconds changed": (
        rolling(1, 0, 2, minReadySeconds=300),
        "ready ready wait=0 image=b wait=500 ready aged",
    ),
    "a short history": (
        rolling(1, 0, 1, revisionHistoryLimit=1),
        "ready image=b ready image=c ready image=a ready image=d ready image=c ready",
    ),
    "no history": (rolling(0, 1, 1, revisionHistoryLimit=0), "ready image=b ready image=a ready"),
    "too late": (rolling(1, 0, 2), "all image=b deadline=1=late deadline=900 ready ready"),
    "too late, then paused": (rolling(1, 0, 2), "image=b deadline=1=late deadline=900 pause image=c resume all"),
    "no deadline": (rolling(1, 0, 2, progressDeadlineSeconds=2**31 - 1), "all image=b ready ready pause resume"),
    "annotations are taken over": (rolling(1, 0, 1), "ready note=x image=b note=y ready"),
    "pods that end are replaced": (rolling(1, 0, 2), "all fail:old ready image=b ready ready"),
}

State: TypeAlias = tuple[Any, ...]


@pytest.fixture(scope="module")
def histories(without_nodes_api: RealApi, request: pytest.FixtureRequest) -> Histories:
    """What kube-controller-manager does in the rows that are to be tested."""
    return Histories(without_nodes_api, ROWS, played, request)


@pytest.mark.timeout(600)  # the first to run waits for all of them on the real side
@pytest.mark.parametrize("row", ROWS)
def test_a_deployment_goes_through_the_same_states_as_with_kubernetes(histories: Histories, row: str) -> None:
    spec, steps = ROWS[row]
    ours = run(played(embedded_stage(PARTS), spec, steps))
    for (step, here), (_, there) in zip(as_told(ours), histories.of(row), strict=True):
        assert here == there, f"after {step}"


async def played(
    opening: AbstractAsyncContextManager[Stage], spec: dict[str, Any], steps: str
) -> list[tuple[str, State]]:
    """The states at rest, after creation and after each step."""
    async with opening as stage:
        play = Play(stage)
        await play.begin(spec)
        for step in steps.split():
            await play.take(step)
        return play.states


class Play:
    """One Deployment, `web`, on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.states: list[tuple[str, State]] = []
        self._names: dict[str, str] = {}  # of ReplicaSets: what stands for them, in the order they came

    async def begin(self, spec: dict[str, Any]) -> None:
        selector = {"matchLabels": {"app": "web"}}
        template = {"metadata": {"labels": {"app": "web"}}, **template_of("a")}
        body = {"metadata": {"name": "web"}, "spec": {"selector": selector, "template": template, **spec}}
        await self.stage.client.create(DEPLOYMENTS, body, self.stage.namespace)
        await self._record("created")

    async def take(self, step: str) -> None:
        """Do what a step says, and record where that leads."""
        word, _, value = step.partition("=")
        match word:
            case "all":
                while await self._make_ready("ready"):
                    await self._record("ready, one of all")
                return
            case "all-quick":
                while await self._make_ready("ready"):
                    await self.stage.at_rest(self._look)
            case "ready" | "aged":
                assert await self._make_ready(word), "no pod is left to make ready"
            case "unready:old":
                await self._say(await self._pod("True", newest=False), "Running", ready=False)
            case "fail:old":
                await self._say(await self._pod("True", newest=False), "Failed", ready=False)
            case _:
                await self._change(word, value)
        await self._record(step, late=value.endswith("late"))

    async def _change(self, word: str, value: str) -> None:
        plain = value.partition("=")[0]
        number = int(plain) if plain.isdecimal() else 0
        changes: Mapping[str, Mapping[str, Any]] = {
            "image": {"spec": {"template": template_of(plain)}},
            "replicas": {"spec": {"replicas": number}},
            "pause": {"spec": {"paused": True}},
            "resume": {"spec": {"paused": False}},
            "wait": {"spec": {"minReadySeconds": int(value) if word == "wait" else 0}},
            "deadline": {
                "spec": {"progressDeadlineSeconds": int(value.partition("=")[0]) if word == "deadline" else 0}
            },
            "note": {"metadata": {"annotations": {"example.com/note": value}}},
        }
        if word == "image":
            await self._another_second()
        await self.stage.client.patch(DEPLOYMENTS, "web", MergePatch(changes[word]), self.stage.namespace)

    async def _another_second(self) -> None:
        """Wait until a ReplicaSet made now is younger than those there are: among equals, names would decide."""
        newest = max(one["metadata"]["creationTimestamp"] for one in [*await self.stage.all(SETS), NEVER])
        while f"{self.stage.clock.now():%Y-%m-%dT%H:%M:%SZ}" <= newest:
            await asyncio.sleep(0.05)

    # Playing kubelet

    async def _make_ready(self, how: str) -> bool:
        """Make one pod ready, or one that is ready so for an hour. False if there is none."""
        aged = how == "aged"
        pod = await self._pod("True" if aged else "False", newest=True, young=aged)
        if pod is not None:
            await self._say(pod, "Running", ready=True, ago=AN_HOUR if aged else timedelta())
        return pod is not None

    async def _pod(self, ready: str, *, newest: bool, young: bool = False) -> Untyped | None:
        """A pod of the newest or the oldest revision that has one such."""
        ages = {one["metadata"]["name"]: one["metadata"]["creationTimestamp"] for one in await self.stage.all(SETS)}
        an_hour_ago = f"{self.stage.clock.now() - AN_HOUR / 2:%Y-%m-%dT%H:%M:%SZ}"
        found = [
            (ages[owner_of(pod)], pod["metadata"]["name"], pod)
            for pod in await self.stage.all(PODS)
            if readiness(pod) == ready and not (young and ready_since(pod) < an_hour_ago)
        ]
        if not found:
            return None
        return (max if newest else min)(found, key=lambda one: one[:2])[2]

    async def _say(self, pod: Untyped | None, phase: str, *, ready: bool, ago: timedelta = timedelta()) -> None:
        assert pod is not None, "there is no such pod"
        since = f"{self.stage.clock.now() - ago:%Y-%m-%dT%H:%M:%SZ}"
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
        patch = MergePatch({"status": {"phase": phase, "conditions": [condition]}})
        await self.stage.client.patch(PODS, pod["metadata"]["name"], patch, self.stage.namespace, subresource="status")

    # Looking

    async def _record(self, step: str, *, late: bool = False) -> None:
        async def look() -> State | None:
            found = await self._look()
            return None if found is not None and late and LATE not in str(found) else found

        self.states.append((step, await self.stage.at_rest(look)))

    async def _look(self) -> State | None:
        """What can be seen; None while something is still to happen that does not need us."""
        deployment = await self.stage.client.get(DEPLOYMENTS, "web", self.stage.namespace)
        sets = sorted(await self.stage.all(SETS), key=lambda one: int(annotation(one, "revision")))
        pods = await self.stage.all(PODS)
        if not agree(deployment, sets, pods):
            return None
        for one in sorted(sets, key=lambda one: str(one["metadata"]["creationTimestamp"])):
            self._names.setdefault(one["metadata"]["name"], f"set-{len(self._names) + 1}")
        is_new = bool(sets) and not sets[-1]["status"].get("readyReplicas")
        masks = {rf"{name}(-[a-z0-9]{{5}}\b)?": word for name, word in self._names.items()}
        told = [await self.stage.events_of(kind, masks) for kind in ("Deployment", "ReplicaSet")]
        return (
            summary(deployment, self._names, is_new=is_new),
            *(summary(one, self._names) for one in sets),
            *sorted((self._names[owner_of(pod)], phase(pod), readiness(pod)) for pod in pods),
            *(tuple(lines) for lines in told),
        )


NEVER: Untyped = {"metadata": {"creationTimestamp": ""}}


def template_of(image: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "web", "image": f"web:{image}"}]}}


def annotation(one: Untyped, name: str) -> str:
    return str((one["metadata"].get("annotations") or {}).get(PREFIX + name, "0"))


def owner_of(pod: Untyped) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["name"])


def ready_condition(pod: Untyped) -> Untyped:
    conditions = pod.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "Ready"), {"status": "False", "lastTransitionTime": ""})


def phase(pod: Untyped) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def readiness(pod: Untyped) -> str:
    return str(ready_condition(pod)["status"]) if phase(pod) in ("Pending", "Running") else "over"


def ready_since(pod: Untyped) -> str:
    return str(ready_condition(pod)["lastTransitionTime"])


def agree(deployment: Untyped, sets: Sequence[Untyped], pods: Sequence[Untyped]) -> bool:
    """Whether everyone has seen what there is: statuses are of this generation, and counts are those of the pods."""
    status = deployment.get("status", {})
    return all(is_observed(one) for one in (deployment, *sets)) and (
        all(one["spec"]["replicas"] == active(pods, one) == one["status"]["replicas"] for one in sets)
        and status.get("replicas", 0) == sum(one["status"]["replicas"] for one in sets)
        and status.get("readyReplicas", 0) == sum(readiness(pod) == "True" for pod in pods)
    )


def is_observed(one: Untyped) -> bool:
    return bool(one.get("status", {}).get("observedGeneration") == one["metadata"]["generation"])


def active(pods: Sequence[Untyped], one: Untyped) -> int:
    return sum(owner_of(pod) == one["metadata"]["name"] and readiness(pod) != "over" for pod in pods)


def summary(one: Untyped, names: Mapping[str, str], *, is_new: bool = False) -> State:
    """All that is to be the same: what it wants, what it has, and what it says. `is_new`: no pod made progress yet."""
    status = {key: value for key, value in one["status"].items() if key not in ("conditions", "observedGeneration")}
    annotations = sorted((one["metadata"].get("annotations") or {}).items())
    labels = {key: value for key, value in one["metadata"].get("labels", {}).items() if key != HASH}
    return (
        names.get(one["metadata"]["name"], "deployment"),
        one["spec"]["replicas"],
        one["spec"].get("minReadySeconds", 0),
        one["metadata"]["generation"],
        tuple(sorted(status.items())),
        tuple(condition(said, names, is_new=is_new) for said in one["status"].get("conditions", ())),
        tuple(annotations),
        tuple(labels.items()),
    )


def condition(said: Untyped, names: Mapping[str, str], *, is_new: bool) -> tuple[str, ...]:
    # Which of the two a new ReplicaSet leaves behind is a race within kube-controller-manager: whether it looks again
    # before the ReplicaSet has its first pods, or after, when there are no more new pods than there were before.
    if is_new and said["reason"] in ("NewReplicaSetCreated", "ReplicaSetUpdated"):
        return said["type"], said["status"], "there is a new ReplicaSet"
    message = str(said["message"])
    for name, word in names.items():
        message = message.replace(name, word)
    return said["type"], said["status"], said["reason"], message
