"""What staged runs promise of gates and health: a stage is over, and the next begins, only while its clusters work.

A cluster that was done may break while its stage waits for time or for a person. What the hub had heard of it when it
sent that the stage is over, or that the next begins, decides (`heard`): its binding's Available condition. How many may
be down all the same is the stage's maxFailures. Not asked are clusters that failed or were skipped, that have something
else by now, that have left the fleet or are picked no more, or are not heard of where the strategy skips such; and runs
that take back what another one brought.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kedge.api.fleet import PARENT_PLACEMENT, ROLLBACK_OF
from kedge.api.numbers import resolve
from kedge.api.reasons import SUCCEEDED
from kedge.api.snapshot import ClusterSchedulingPolicySnapshot as PolicySnapshot
from kedge.api.stage import Missing, Stage
from kedge.api.staged_status import StageStatus
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.plan.revisions import newest_policy
from kedge.plan.staging.conditions import has_condition, is_over, is_settled, is_started
from kedge.plan.staging.initializing import selected_by
from kedge.simulate.simulation import Simulation
from simulate.heard import Heard, Known, Sent
from simulate.promises import HUBS, Promises, is_available
from simulate.run_facts import Run, has_resources_of, stage_of, strategy_of
from simulate.run_promises import RunPromises


class GatePromises:
    """Follows every write of a run, and says at once when a gate opens that should not."""

    def __init__(self, simulation: Simulation, promises: Promises, judge: RunPromises) -> None:
        self._simulation = simulation
        self._promises = promises
        self._runs = judge.runs
        self._policies = Heard(simulation.trace, HUBS, "hub", PolicySnapshot)
        self._done: dict[tuple[str, str], float] = {}  # when the last cluster of a stage was, by run and stage
        simulation.always("a gate opens only while what is behind it works", self._ask)

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        if server == "hub" and kind.resource.plural == PolicySnapshot.resource.plural:
            self._policies.changed(change, self._policies.number_of(self._simulation.trace.carried()))
        if server != "hub" or kind.resource.plural != Run.resource.plural:
            return ""
        versions = self._runs.versions[change.version.key][-2:]
        before, now, number = versions[0].object, versions[-1].object, versions[-1].number
        if before is None or now is None or before.metadata.uid != now.metadata.uid or not number:
            return ""
        if ROLLBACK_OF in now.metadata.annotations:
            return ""  # what comes next needs it all the more
        for stage in now.status.stages_status:
            if all(map(is_settled, stage.clusters)):
                self._done.setdefault((now.metadata.uid, stage.stage_name), self._simulation.loop.time())
        return next(filter(None, (self._of_gate(now, stage, number) for stage in _passed(before, now))), "")

    def _of_gate(self, run: Run, stage: StageStatus, number: int) -> str:
        """Whether the hub knew that this stage's clusters were not available when it sent that it is over."""
        sent = self._runs.sent[number]
        known = self._promises.bindings.known_at(sent.first, sent.life)
        skipped = self._promises.may_be_away(sent) if strategy_of(run).unreachable_clusters is Missing.skip else set()
        down = min((self._down(run, stage, one) for one in known), key=len, default=[])
        left = self._promises.may_have_left(sent) | self._may_be_picked_no_more(run, sent, down)
        down = [name for name in down if name not in skipped | left]
        allowed = _allowed(run, stage)
        since, deployments = self._done[run.metadata.uid, stage.stage_name], self._promises.deployments
        has_waited = any(deployments.was_down_since(one.cluster_name, since) for one in stage.clusters)
        self._promises.asked("a gate opens only while its stage works", tight=has_waited)
        if len(down) <= allowed:
            return ""
        what = f"{', '.join(down)} of it are known not to be available"
        return f"{run.metadata.name} passes stage {stage.stage_name}, and {what}, and {allowed} may"

    def _may_be_picked_no_more(self, run: Run, sent: Sent, clusters: Iterable[str]) -> set[str]:
        """Those of these clusters that the hub may have known not to be picked any more."""
        known = self._policies.known_at(sent.first, sent.life)
        found = [selected_by(policy) for one in known if (policy := self._policy(run, one)) is not None]
        return {name for name in clusters if any(name not in picked for picked in found)}

    def _policy(self, run: Run, known: Known) -> PolicySnapshot | None:
        """The newest policy of a run's placement that has been decided on."""
        seen = (one.object for one in self._policies.seen_all(known).values())
        decided = [one for one in seen if one is not None and one.status is not None and one.status.target_clusters]
        own = [one for one in decided if one.metadata.labels.get(PARENT_PLACEMENT) == run.spec.placement_name]
        newest = newest_policy([one.metadata for one in own])
        return next((one for one in own if one.metadata is newest), None)

    def _down(self, run: Run, stage: StageStatus, known: Known) -> list[str]:
        """The clusters of a stage that are done, have the run's resources, and are not available."""
        done = {one.cluster_name for one in stage.clusters if has_condition(one, SUCCEEDED)}
        seen = (one.object for one in self._promises.bindings.seen_all(known).values())
        held = [one for one in seen if one is not None and has_resources_of(one, run)]
        return sorted(
            one.spec.target_cluster for one in held if one.spec.target_cluster in done and not is_available(one)
        )


def _passed(before: Run, now: Run) -> Iterator[StageStatus]:
    """The stages that are over now and were not before, and the one before a stage that begins now."""
    last: StageStatus | None = None  # that has clusters
    for stage in now.status.stages_status:
        was = stage_of(before, stage.stage_name)
        begins = any(map(is_started, stage.clusters)) and not any(map(is_started, was.clusters))
        if begins and last is not None:
            yield last
        if stage.clusters and is_over(stage) and not is_over(was):
            yield stage
        last = stage if stage.clusters else last


def _allowed(run: Run, stage: StageStatus) -> int:
    wanted: Iterable[Stage] = (one for one in strategy_of(run).stages if one.name == stage.stage_name)
    most = next((one.max_failures for one in wanted), None)
    return 0 if most is None else resolve(most, len(stage.clusters), round_up=False)
