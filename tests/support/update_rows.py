"""Update rows: changes of a RolloutTrait that may be made, and those that may not, by the rules of the seed.

The rollout has four batches of 10 pods; its partition is batch 1, and batch 1 is under way.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.client import Client
from kedge.kube.errors import Invalid
from kedge.kube.patches import MergePatch

PARTITION: Final = "the BatchPartition field can only increase unless the target ref has changed"
BATCHES: Final = "RolloutBatches can only change the part after the BatchPartition field"
REST: Final = "cannot be changed while the rollout is under way unless the target changes"
SOURCE: Final = "only targetRef can say what is rolled out next while the rollout is under way"
ENDED: Final = "a successful or failed rollout cannot be modified without changing the target or the source"
UNDER_WAY, OVER, NEW = "under way", "over", "new"
PEER, PEER_OVER, PEER_FAILED = "under way of another", "over of another", "failed of another"
"""With a status as KubeVela's controllers write it: it does not list the batches."""


def ref(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def sizes(*replicas: int) -> list[dict[str, int]]:
    return [{"replicas": one} for one in replicas]


class Update(NamedTuple):
    """A change of the spec, and why it is refused; empty if it is not."""

    change: dict[str, Any]
    refused: str = ""
    state: str = UNDER_WAY


def _plan(refused: str = "", state: str = UNDER_WAY, **change: Any) -> Update:
    return Update({"rolloutPlan": change}, refused, state)


_HOOK = {"type": "pre-batch-rollout", "name": "ask", "url": "https://example.com/ask"}
_METRIC = {"name": "errors", "metricsRange": {"max": 5}, "templateRef": {"name": "errors"}}
_TRAFFIC = {
    "provider": "nginx",
    "routeRef": {"name": "web"},
    "sourceService": "web-v1",
    "targetService": "web-v2",
}
ROWS: Final[dict[str, Update]] = {
    "a larger partition": _plan(batchPartition=2),
    "no partition any more": _plan(batchPartition=None),
    "the other name of the partition": _plan(batchPartition=None, lastBatchToRollout=1),
    "a smaller partition": _plan(PARTITION, batchPartition=0),
    "a smaller partition by its other name": _plan(PARTITION, batchPartition=None, lastBatchToRollout=0),
    "a smaller partition with another target": Update({"targetRef": ref("v3"), "rolloutPlan": {"batchPartition": 0}}),
    "other later batches": _plan(rolloutBatches=sizes(2, 2, 1, 5)),
    "more later batches": _plan(rolloutBatches=sizes(2, 2, 1, 1, 4)),
    "fewer later batches": _plan(rolloutBatches=sizes(2, 2, 6)),
    "no later batch": _plan(BATCHES, rolloutBatches=sizes(2, 8)),
    "another first batch": _plan(BATCHES, rolloutBatches=sizes(1, 3, 4, 2)),
    "another batch at the partition": _plan(BATCHES, rolloutBatches=sizes(2, 3, 3, 2)),
    "a webhook for a batch that began": _plan(
        BATCHES, rolloutBatches=[{"replicas": 2}, {"replicas": 2, "batchRolloutWebhooks": [_HOOK]}, *sizes(4, 2)]
    ),
    "a metric": _plan(canaryMetric=[_METRIC]),
    "a pause": _plan(paused=True),
    "to be taken back": _plan(revertOnDelete=True),
    "a deadline": _plan(progressDeadlineSeconds=60, onDeadline="Hold"),
    "autoscalers": _plan(onAutoscaler="TakeOver"),
    "a strategy": _plan(REST, rolloutStrategy="DecreaseFirst"),
    "a size": _plan(REST, targetSize=12),
    "a webhook": _plan(REST, rolloutWebhooks=[_HOOK]),
    "traffic": _plan(REST, traffic=_TRAFFIC),
    "everything with another target": Update(
        {
            "targetRef": ref("v3"),
            "sourceRef": [ref("v2")],
            "rolloutPlan": {"rolloutBatches": sizes(5, 5), "rolloutWebhooks": [_HOOK], "targetSize": 12},
        }
    ),
    "another source": Update({"sourceRef": [ref("v0")]}, SOURCE),
    "no source": Update({"sourceRef": None}, SOURCE),
    "nothing": Update({}),
    "anything before it began": _plan(
        state=NEW, batchPartition=0, rolloutBatches=sizes(5, 5), rolloutStrategy="DecreaseFirst", targetSize=12
    ),
    "another source before it began": Update({"sourceRef": [ref("v0")]}, state=NEW),
    "a plan when it is over": _plan(ENDED, OVER, batchPartition=3),
    "a pause when it is over": _plan(ENDED, OVER, paused=True),
    "a size when it is over": _plan(state=OVER, targetSize=12),
    "a larger partition by another": _plan(state=PEER, batchPartition=2),
    "a smaller partition by another": _plan(PARTITION, PEER, batchPartition=0),
    "a batch that rolled by another": _plan(BATCHES, PEER, rolloutBatches=sizes(1, 3, 4, 2)),
    "a size by another": _plan(REST, PEER, targetSize=12),
    "another target by another": Update({"targetRef": ref("v3"), "rolloutPlan": {"batchPartition": 0}}, state=PEER),
    "a plan when it is over by another": _plan(ENDED, PEER_OVER, batchPartition=3),
    "a size when it is over by another": _plan(state=PEER_OVER, targetSize=12),
    "a plan when it failed by another": _plan(ENDED, PEER_FAILED, batchPartition=3),
    "another target when it is over": Update(
        {"targetRef": ref("v3"), "rolloutPlan": {"batchPartition": 0}}, state=OVER
    ),
}
_STATUSES: Final[dict[str, dict[str, Any]]] = {
    NEW: {},
    UNDER_WAY: {"rollingState": "rollingInBatches", "batchRollingState": "batchInRolling", "currentBatch": 1},
    OVER: {"rollingState": "rolloutSucceed", "batchRollingState": "batchReady", "currentBatch": 3},
    PEER: {"rollingState": "rollingInBatches", "batchRollingState": "batchInRolling", "currentBatch": 1},
    PEER_OVER: {"rollingState": "rolloutSucceed", "batchRollingState": "batchReady", "currentBatch": 3},
    PEER_FAILED: {"rollingState": "rolloutFailed", "batchRollingState": "batchReady", "currentBatch": 1},
}
_GOALS: Final = [{"replicas": size, "goal": goal} for size, goal in ((2, 2), (2, 4), (4, 8), (2, 10))]


def trait(name: str, namespace: str) -> dict[str, Any]:
    plan = {"rolloutBatches": sizes(2, 2, 4, 2), "batchPartition": 1}
    spec = {"targetRef": ref("v2"), "sourceRef": [ref("v1")], "rolloutPlan": plan}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def status_in(state: str) -> dict[str, Any]:
    """The status of a rollout in this state."""
    counts = {"upgradedReplicas": 4, "upgradedReadyReplicas": 4, "lastTarget": "apps/v1/Deployment/v2"}
    batches = {"batches": _GOALS} if state in (UNDER_WAY, OVER) else {}
    return {**_STATUSES[state], **counts, **batches} if _STATUSES[state] else {}


async def create(client: Client, namespace: str, state: str) -> str:
    """A rollout in this state, by its name."""
    name = state.replace(" ", "-")
    await client.create(RolloutTrait, trait(name, namespace))
    if found := status_in(state):
        await client.patch(RolloutTrait, name, MergePatch({"status": found}), namespace, subresource="status")
    return name


async def refusal(client: Client, namespace: str, name: str, change: dict[str, Any]) -> str:
    """Why the server does not take a change; empty if it does."""
    try:
        await client.patch(RolloutTrait, name, MergePatch({"spec": change}), namespace, dry_run=True)
    except Invalid as error:
        return str(error)
    return ""


async def wrong_answers(client: Client, namespace: str) -> dict[str, str]:
    """What the server says where it should not, or does not say, by the name of the row."""
    names = {state: await create(client, namespace, state) for state in _STATUSES}
    wrong: dict[str, str] = {}
    for name, row in ROWS.items():
        said = await refusal(client, namespace, names[row.state], row.change)
        if row.refused not in said or bool(row.refused) != bool(said):
            wrong[name] = said or "it was taken"
    return wrong
