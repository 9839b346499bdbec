"""The kinds of rollouts in batches: what their schemas and rules take and refuse, and how they may be changed."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import MERGE, Answer, Api
from contract.crds import Object
from contract.installed import Installed, served
from kedge.api.crd import crd
from kedge.api.oam.rollout_rules import ENDED
from kedge.api.oam.rollouts import ROLLOUT_KINDS
from support.bad_plans import BAD_PLANS, GOOD_PLANS, HOOK, METRIC, TRAFFIC

DEFINITIONS = {kind.resource.kind: crd(kind) for kind in ROLLOUT_KINDS}  # here: it reads files
SPECS: dict[str, Object] = {
    "RolloutTrait": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}},
    "Rollout": {"targetRevisionName": "web-v2", "componentName": "web"},
    "AppRollout": {"targetAppRevisionName": "web-v2"},
    "ApplicationDeployment": {"targetApplicationName": "web-v2"},
}
OTHER_TARGETS: dict[str, Object] = {
    "RolloutTrait": {"targetRef": {"name": "web-v3"}},
    "Rollout": {"targetRevisionName": "web-v3"},
    "AppRollout": {"targetAppRevisionName": "web-v3"},
    "ApplicationDeployment": {"targetApplicationName": "web-v3"},
}
OTHER_SOURCES: dict[str, Object] = {
    "RolloutTrait": {"sourceRef": [{"name": "web-v1"}]},
    "Rollout": {"sourceRevisionName": "web-v1"},
    "AppRollout": {"sourceAppRevisionName": "web-v1"},
    "ApplicationDeployment": {"sourceApplicationName": "web-v1"},
}
every_kind = pytest.mark.parametrize("kind", list(DEFINITIONS))
UNDER_WAY = {"batchRollingState": "batchReady", "currentBatch": 0, "upgradedReplicas": 1, "upgradedReadyReplicas": 1}
LOWERED = "the BatchPartition field can only increase unless the target ref has changed"
REWRITTEN = "RolloutBatches can only change the part after the BatchPartition field"
RESTS = "cannot be changed while the rollout is under way unless the target changes"
ONE, TWO, THREE = ({"replicas": number} for number in (1, 2, 3))


def fields(answer: Answer) -> list[str]:
    return [where for _, where in answer.fields]


def reasons(answer: Answer) -> str:
    return " ".join(cause["message"] for cause in answer.body["details"]["causes"])


async def test_good_plans_are_kept_and_bad_ones_refused(api: Api) -> None:
    async with served(api, DEFINITIONS["RolloutTrait"]) as there:
        for number, plan in enumerate(GOOD_PLANS.values()):
            made = await there.create(f"x{number}", spec=SPECS["RolloutTrait"] | {"rolloutPlan": plan})
            assert (made.code, made.body.get("spec", made)) == (201, SPECS["RolloutTrait"] | {"rolloutPlan": plan})
        for name, row in BAD_PLANS.items():
            answer = await there.create(name="x", spec=SPECS["RolloutTrait"] | {"rolloutPlan": row.plan})
            if row.crd:
                assert answer.code == 422, name
                assert any(row.path.startswith(where) for where in fields(answer)), (name, fields(answer))
            else:
                assert answer.code == 201, (name, answer)
                await api.ask("DELETE", f"{there.path}/x")


class Changes:
    """A rollout that is there, and what becomes of a change of it."""

    def __init__(self, there: Installed, kind: str) -> None:
        self.there = there
        self.kind = kind

    async def begin(self, plan: Object, state: str = "rollingInBatches", *, has_batches: bool = True) -> None:
        path = f"{self.there.path}/x"
        await self.there.api.ask("DELETE", path)
        assert (await self.there.create(spec=SPECS[self.kind] | {"rolloutPlan": plan})).code == 201
        begun = {"batches": [{"replicas": 1, "goal": 1}]} if has_batches and state != "verifyingSpec" else {}
        status = {"status": UNDER_WAY | begun | {"rollingState": state} | self.revisions}
        assert (await self.there.api.ask("PATCH", f"{path}/status", status, MERGE)).code == 200

    @property
    def revisions(self) -> Object:
        names = {"Rollout": "lastTargetRevision", "AppRollout": "lastTargetAppRevision"}
        return {names[self.kind]: "web-v2"} if self.kind in names else {}

    async def change(self, **spec: Any) -> str:
        """The reasons why it is refused, in one; empty if it is not."""
        answer = await self.there.api.ask("PATCH", f"{self.there.path}/x", {"spec": spec}, MERGE, dryRun="All")
        return "" if answer.code == 200 else reasons(answer)

    async def replan(self, **plan: Any) -> str:
        return await self.change(rolloutPlan=plan)


@every_kind
async def test_every_kind_is_changed_by_the_same_rules(api: Api, kind: str) -> None:
    """One test: the definitions are long, and each is recorded with every test that needs it."""
    async with served(api, DEFINITIONS[kind]) as there:
        found = await api.look(there.crd)
        assert found["spec"]["versions"] == there.definition["spec"]["versions"]
        await needs_a_target(there, kind)
        await only_raises_the_partition(Changes(there, kind))
        await keeps_its_source(Changes(there, kind))
        await is_mended_before_it_begins(Changes(there, kind))
        await has_begun_without_batches(Changes(there, kind))
        await is_only_resized_in_the_end(Changes(there, kind))


async def needs_a_target(there: Installed, kind: str) -> None:
    assert (await there.create(spec={"rolloutPlan": {}})).code == 422
    if kind != "RolloutTrait":
        (target,) = OTHER_TARGETS[kind]
        assert fields(await there.create(spec=SPECS[kind] | {target: "", "rolloutPlan": {}})) == [f"spec.{target}"]


async def only_raises_the_partition(rollout: Changes) -> None:
    await rollout.begin({"batchPartition": 1, "rolloutBatches": [ONE, TWO, THREE]})
    assert not await rollout.replan(batchPartition=2)
    assert not await rollout.replan(batchPartition=None)
    assert not await rollout.replan(batchPartition=None, lastBatchToRollout=1)
    assert LOWERED in await rollout.replan(batchPartition=0)
    assert LOWERED in await rollout.replan(batchPartition=None, lastBatchToRollout=0)
    assert not await rollout.change(rolloutPlan={"batchPartition": 0}, **OTHER_TARGETS[rollout.kind])
    await rollout.begin({})
    assert LOWERED in await rollout.replan(batchPartition=5)


async def keeps_its_source(rollout: Changes) -> None:
    await rollout.begin({})
    assert "what is rolled out next" in await rollout.change(**OTHER_SOURCES[rollout.kind])
    assert not await rollout.change(**OTHER_SOURCES[rollout.kind], **OTHER_TARGETS[rollout.kind])


async def is_mended_before_it_begins(rollout: Changes) -> None:
    await rollout.begin({"batchPartition": 1, "targetSize": 3, "rolloutBatches": [ONE, TWO, THREE]}, "verifyingSpec")
    assert not await rollout.replan(batchPartition=0, targetSize=None, rolloutBatches=[TWO, ONE])
    assert not await rollout.change(**OTHER_SOURCES[rollout.kind])


async def has_begun_without_batches(rollout: Changes) -> None:
    """The status of KubeVela's controllers does not list them."""
    for state in ("initializing", "rollingInBatches", "finalising", "rolloutAbandoned"):
        await rollout.begin({"batchPartition": 1, "rolloutBatches": [ONE, TWO, THREE]}, state, has_batches=False)
        assert LOWERED in await rollout.replan(batchPartition=0)
        assert REWRITTEN in await rollout.replan(rolloutBatches=[TWO, ONE, THREE])
        assert RESTS in await rollout.replan(targetSize=5)
    for state in ("rolloutSucceed", "rolloutFailed"):
        await rollout.begin({"batchPartition": 1}, state, has_batches=False)
        assert ENDED in await rollout.replan(paused=True)


async def is_only_resized_in_the_end(rollout: Changes) -> None:
    for state in ("rolloutSucceed", "rolloutFailed"):
        await rollout.begin({"targetSize": 3, "batchPartition": 1}, state)
        assert ENDED in await rollout.replan(paused=True)
        assert ENDED in await rollout.replan(batchPartition=2)
        assert not await rollout.replan(targetSize=5, batchPartition=None, numBatches=2)
        for other in (OTHER_TARGETS, OTHER_SOURCES):
            assert not await rollout.change(rolloutPlan={"batchPartition": 0}, **other[rollout.kind])


async def test_what_changes_and_what_stays(api: Api) -> None:
    async with served(api, DEFINITIONS["Rollout"]) as there:
        rollout = Changes(there, "Rollout")
        await only_changes_batches_after_the_partition(rollout)
        await only_changes_free_fields(rollout)
        await changes_the_longest_plan(rollout)


async def only_changes_batches_after_the_partition(rollout: Changes) -> None:
    await rollout.begin({"batchPartition": 0, "rolloutBatches": [ONE, TWO, THREE]})
    assert not await rollout.replan(rolloutBatches=[ONE, THREE])
    assert not await rollout.replan(rolloutBatches=[ONE, THREE, TWO, TWO])
    assert REWRITTEN in await rollout.replan(rolloutBatches=[TWO, ONE, THREE])
    assert REWRITTEN in await rollout.replan(rolloutBatches=[ONE])
    assert REWRITTEN in await rollout.replan(rolloutBatches=None)
    assert not await rollout.change(rolloutPlan={"rolloutBatches": [THREE]}, **OTHER_TARGETS["Rollout"])
    await rollout.begin({"rolloutBatches": [ONE, TWO]})
    assert REWRITTEN in await rollout.replan(rolloutBatches=[ONE, THREE])
    assert REWRITTEN in await rollout.replan(rolloutBatches=[ONE, TWO, THREE])


async def only_changes_free_fields(rollout: Changes) -> None:
    free = {"paused": True, "revertOnDelete": True, "canaryMetric": [METRIC], "progressDeadlineSeconds": 60}
    others = {"rolloutStrategy": "DecreaseFirst", "targetSize": 4, "numBatches": 2, "rolloutWebhooks": [HOOK]}
    await rollout.begin({})
    for name, value in (free | {"onDeadline": "Hold", "onAutoscaler": "TakeOver"}).items():
        assert not await rollout.replan(**{name: value}), name
    for name, value in (others | {"traffic": TRAFFIC}).items():
        assert RESTS in await rollout.replan(**{name: value}), name
        assert not await rollout.change(rolloutPlan={name: value}, **OTHER_TARGETS["Rollout"]), name


async def changes_the_longest_plan(rollout: Changes) -> None:
    """What rules cost is also limited when they are carried out."""
    batch = {"replicas": "1%", "batchRolloutWebhooks": [HOOK | {"type": "pre-batch-rollout"}]}
    await rollout.begin({"batchPartition": 98, "rolloutBatches": [batch] * 100})
    assert not await rollout.replan(paused=True, rolloutBatches=[batch] * 99 + [ONE])
    assert REWRITTEN in await rollout.replan(rolloutBatches=[batch] * 98 + [ONE, ONE])
