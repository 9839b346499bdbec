"""What staged runs promise, judged from the hub's own store, write by write.

* Of a stage no more clusters move than maxConcurrency, and they begin in their order.
* No cluster begins before the stages before its own are over, and the gates between were passed: a wait since the last
  cluster was done, a request that somebody had approved since the run was made.
* Nothing begins in a run that was stopped, has ended, or while another run moves the placement.
* Bindings are given resources, and taken away, only as a run has said before that it does.
* Resources that clusters have do not become others by the same name.
* A cluster is done only if its binding said so; an approval counts only if it stood when it was taken note of; and a
  run goes by the stages it began with.

That a cluster begins is the run's own word, and the server takes that only of the run as it was seen. So nothing is
excused here by what the hub had heard, but for one thing: a binding may be given resources by a request that left
before the run was stopped, ended or was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.condition import TRUE
from kedge.api.fleet import ROLLBACK_OF
from kedge.api.numbers import resolve
from kedge.api.reasons import ROLLED_BACK, SUCCEEDED
from kedge.api.snapshot import ClusterResourceSnapshot as Snapshot
from kedge.api.stage import Stage, StageTask, StageTaskType
from kedge.api.staged import RunState
from kedge.api.staged_status import DELETE_STAGE, ClusterUpdateStatus, StageStatus
from kedge.api.times import parse_duration
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.plan.staging.approvals import stage_label
from kedge.plan.staging.conditions import (
    find,
    has_condition,
    has_ended,
    is_moving,
    is_over,
    is_settled,
    is_started,
    settled_at,
)
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry
from simulate.heard import Heard, Sent
from simulate.promises import HUBS, Binding, Promises, is_available, is_judged
from simulate.restores import ONE_LOOK
from simulate.run_facts import (
    Request,
    Run,
    has_resources_of,
    is_about,
    is_accepted,
    is_approved,
    makes_room,
    names,
    newly,
    resources_of,
    stage_of,
    stages_before,
    strategy_of,
)

A_SECOND = timedelta(seconds=1)  # as fine as times are kept


class Mover(Struct, frozen=True):
    """The run that had a cluster begin last, and the version of it that said so."""

    run: Run
    version: int


class RunPromises:
    """Follows every write on the hub, and says at once when one breaks a promise."""

    def __init__(self, simulation: Simulation, promises: Promises, *, true_clocks: bool) -> None:
        self._simulation = simulation
        self._promises = promises
        self._true_clocks = true_clocks
        self.runs = Heard(simulation.trace, HUBS, "hub", Run)
        self.requests = Heard(simulation.trace, HUBS, "hub", Request)
        self._at: dict[int, float] = {}  # when each version was made
        self._made: dict[str, int] = {}  # the first version of each run, by uid
        self._mover: Mover | None = None
        self._resources: dict[str, object] = {}  # by the name of their snapshot
        self._lost: set[str] = set()  # snapshots that somebody deleted
        simulation.trace.follow(self._note)
        simulation.always("a staged run keeps its promises", self._ask)

    def _note(self, entry: Entry) -> None:
        """A run that was stopped just in time is what tests the promise most."""
        sent = self.runs.sent.get(entry.number) if entry.what.startswith("→ 409") else None
        if sent is None or "/status" not in sent.what:
            return
        run = self.runs.now(sent.what.partition("/clusterstagedupdateruns/")[2].partition("/")[0])
        if run is not None and run.spec.state is RunState.stop:
            self._promises.asked("nothing begins in a run that was stopped", tight=True)

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        if server != "hub":
            return ""
        plural, number = kind.resource.plural, self.runs.number_of(self._simulation.trace.carried())
        self._at[change.version.number] = self._simulation.loop.time()
        if plural == Run.resource.plural:
            return self._of_run(change, number)
        if plural == Request.resource.plural:
            return self._of_request(change, number)
        if plural == Snapshot.resource.plural:
            return self._of_resources(change)
        if plural == Binding.resource.plural and number and is_judged(change.version.key):
            return self._of_binding(change.version.key, number)
        return ""

    def _of_resources(self, change: Change) -> str:
        """Resources that clusters have do not become others by the same name."""
        name, had = change.version.name, self._resources.get(change.version.name)
        if change.type != "ADDED":
            self._lost.update([name] if change.type == "DELETED" else [])
            return ""
        held = msgspec.json.decode(change.version.body, type=Snapshot).spec.selected_resources
        bindings = self._promises.bindings.all().values()
        users = [one for one in bindings if one.spec.resource_snapshot_name == name]
        missed = any(one.spec.resource_snapshot_name in self._lost for one in bindings)
        self._promises.asked("resources keep what they hold", tight=missed)
        self._resources[name] = held
        if not users or had is None or held == had:
            return ""
        return f"{users[0].spec.target_cluster} and others have {name}, which is now another"

    # Runs

    def _of_run(self, change: Change, number: int) -> str:
        before, now = self.runs.changed(change, number)
        if now is None:
            return ""
        if before is None or before.metadata.uid != now.metadata.uid:
            self._made.setdefault(now.metadata.uid, change.version.number)  # a restore brings back what was deleted
            return ""
        if not number:
            return ""
        wrong = self._of_copy(before, now) or self._of_way_back(before, now) or self._of_done(before, now)
        return wrong or self._of_begun(before, now, change)

    def _of_copy(self, before: Run, now: Run) -> str:
        """A run goes by the stages it began with."""
        copy = before.status.staged_update_strategy_snapshot
        self._promises.asked("a run goes by the stages it began with", tight=copy is not None)
        changed = copy is not None and now.status.staged_update_strategy_snapshot != copy
        return f"{now.metadata.name} goes by other stages than it began with" if changed else ""

    def _of_way_back(self, before: Run, now: Run) -> str:
        """A run that says it is taken back is so by a run that was made since it was made itself."""
        said = find(now.status, ROLLED_BACK)
        if said is None or said.status != TRUE or has_condition(before.status, ROLLED_BACK):
            return ""
        self._promises.asked("a run that is said to be taken back is so", tight=True)
        made, name = self._made[now.metadata.uid], now.metadata.name
        runs = [one.metadata for one in self.runs.all().values() if self._made[one.metadata.uid] > made]
        if any(one.annotations.get(ROLLBACK_OF) == name and f"run {one.name} " in said.message for one in runs):
            return ""
        return f"{name} is said to be taken back, and is not: {said.message}"

    # Clusters that begin

    def _of_begun(self, before: Run, now: Run, change: Change) -> str:
        begun = {stage.stage_name: new for stage, new in newly(before, now, is_started)}
        if not begun:
            return ""
        wrong = self._of_leave(before, begun) or self._of_turn(now)
        self._mover = Mover(now, change.version.number)
        return wrong or next(filter(None, (self._of_stage(before, now, *item) for item in begun.items())), "")

    def _of_leave(self, before: Run, begun: dict[str, list[ClusterUpdateStatus]]) -> str:
        """Nothing begins in a run that was stopped, or has ended."""
        name, clusters = before.metadata.name, names(one for new in begun.values() for one in new)
        self._promises.asked("nothing begins in a run that was stopped", tight=False)
        if before.spec.state is RunState.stop:
            return f"{name} begins with {clusters}, and was stopped"
        return f"{name} begins with {clusters}, and has ended" if has_ended(before.status) else ""

    def _of_turn(self, now: Run) -> str:
        """Of two runs the other moves only once the first was stopped, has ended, or is deleted."""
        last, uid = self._last_mover(), now.metadata.uid
        others = [one for one in self.runs.all().values() if one.metadata.uid != uid and not has_ended(one.status)]
        self._promises.asked("two runs never move a placement at once", tight=bool(others))
        if last is None or last.run.metadata.uid == uid:
            return ""
        since = (one.object for one in self.runs.versions[last.run.metadata.name] if one.version >= last.version)
        if any(one is None or one.metadata.uid != last.run.metadata.uid or makes_room(one) for one in since):
            return ""
        if self._had_made_room(now, self._at[last.version]):
            return ""
        return f"{now.metadata.name} moves, and {last.run.metadata.name} does so too"

    def _had_made_room(self, run: Run, moment: float) -> bool:
        """Whether a run was deleted or stopped at that moment, for anybody who had not heard of a restore yet."""
        restores, versions = self._promises.restores, self.runs.versions[run.metadata.name]
        undone = [
            one for one in versions if restores.have_undone(one.version) and not restores.is_void(one.version, moment)
        ]
        return any(one.object is None or makes_room(one.object) for one in undone)

    def _last_mover(self) -> Mover | None:
        """The run that moved last; none if a restore has undone that."""
        last = self._mover
        return None if last is not None and self._promises.restores.have_undone(last.version) else last

    def _of_stage(self, before: Run, now: Run, name: str, new: list[ClusterUpdateStatus]) -> str:
        stage, strategy = stage_of(now, name), strategy_of(now)
        wanted = next((one for one in strategy.stages if one.name == name), None)
        if wanted is None:
            return self._of_gates(before, now, stage, (*strategy.delete_stage_tasks,))
        wrong = self._of_number(now, stage, wanted) or self._of_order(now, stage, new)
        return wrong or self._of_gates(before, now, stage, wanted.before_stage_tasks)

    def _of_number(self, now: Run, stage: StageStatus, wanted: Stage) -> str:
        """No more clusters of a stage move than maxConcurrency."""
        moving = [one for one in stage.clusters if is_moving(one)]
        most = max(1, resolve(wanted.max_concurrency, len(stage.clusters), round_up=False))
        waiting = any(not is_started(one) and not is_settled(one) for one in stage.clusters)
        self._promises.asked("no more clusters of a stage move than may", tight=len(moving) == most and waiting)
        where = f"of stage {stage.stage_name} of {now.metadata.name}"
        return f"{names(moving)} {where} move, and {most} may" if len(moving) > most else ""

    def _of_order(self, now: Run, stage: StageStatus, new: list[ClusterUpdateStatus]) -> str:
        """No cluster begins before one that comes first, unless that is done with."""
        last = max(at for at, one in enumerate(stage.clusters) if one in new)
        passed_over = [one for one in stage.clusters[:last] if not is_started(one) and not is_settled(one)]
        self._promises.asked("clusters begin in their order", tight=len(stage.clusters) > 1)
        where = f"stage {stage.stage_name} of {now.metadata.name}"
        return f"{where} begins with {names(new)} before {names(passed_over)}" if passed_over else ""

    # Gates

    def _of_gates(self, before: Run, now: Run, stage: StageStatus, own: Sequence[StageTask]) -> str:
        """No cluster of a stage begins before all that has to be before it."""
        is_first = not any(map(is_started, stage_of(before, stage.stage_name).clusters))
        earlier = list(stages_before(now, stage))
        gates = [gate for one in earlier if one.clusters for gate in self._after(now, one)]
        since = max(filter(None, map(settled_at, earlier)), default=None)
        asked = f"{now.metadata.name}-before-{stage_label(stage.stage_name)}"
        gates += [(stage.stage_name, asked, task, since) for task in own]
        self._promises.asked("no cluster before the gates before it", tight=is_first and bool(gates))
        for one in earlier:
            if not is_over(one) or not all(map(is_settled, one.clusters)):
                return f"{now.metadata.name} begins with stage {stage.stage_name}, and {one.stage_name} is not over"
        return next(filter(None, (self._of_gate(now, *gate) for gate in gates)), "")

    def _after(self, now: Run, stage: StageStatus) -> Iterator[tuple[str, str, StageTask, datetime | None]]:
        for wanted in strategy_of(now).stages:
            if wanted.name == stage.stage_name:
                for task in wanted.after_stage_tasks:
                    yield stage.stage_name, f"{now.metadata.name}-{wanted.name}", task, settled_at(stage)

    def _of_gate(self, now: Run, stage: str, request: str, task: StageTask, since: datetime | None) -> str:
        if task.type is StageTaskType.approval:
            return self._of_approval(now, stage, request)
        if not self._true_clocks or since is None:
            return ""
        over = since + parse_duration(task.wait_time or "0")
        at = self._simulation.clock.now()
        self._promises.asked("no wait is cut short", tight=at < over + 3 * A_SECOND)
        return f"{now.metadata.name} passes stage {stage} at {at}, before {over}" if at < over else ""

    def _of_approval(self, now: Run, stage: str, request: str) -> str:
        """Somebody has approved it since the run was made, and the run took note of that."""
        made, is_void = self._made[now.metadata.uid], self._promises.restores.is_void
        found = [one for one in self.requests.versions.get(request, ()) if one.version > made]
        since = [one.object for one in found if not is_void(one.version, self._simulation.loop.time())]
        given = [one for one in since if one is not None and is_about(one, now, stage)]
        self._promises.asked("nothing begins unapproved", tight=True)
        if any(is_approved(one) for one in given) and any(is_accepted(one) for one in given):
            return ""
        return f"{now.metadata.name} passes stage {stage}, and nobody approved {request}"

    def _of_request(self, change: Change, number: int) -> str:
        """What a run takes note of is approved in that very version."""
        before, now = self.requests.changed(change, number)
        if not number or before is None or now is None or is_accepted(before) or not is_accepted(now):
            return ""
        known = [one.object for one in self.requests.versions[change.version.key] if one.object is not None]
        said = [is_approved(one) for one in known]
        self._promises.asked("an approval that was taken back does not count", tight=False in said[said.index(True) :])
        return "" if is_approved(before) else f"{now.metadata.name} is taken for approved, and is not"

    # Clusters that are done

    def _of_done(self, before: Run, now: Run) -> str:
        for stage, new in newly(before, now, lambda one: has_condition(one, SUCCEEDED)):
            for cluster in new if stage.stage_name != DELETE_STAGE else ():
                if wrong := self._of_one_done(now, cluster):
                    return wrong
        return ""

    def _of_one_done(self, now: Run, cluster: ClusterUpdateStatus) -> str:
        """A cluster is done only if its binding said so since the run was made; and not before it did."""
        name, since = cluster.cluster_name, self._made[now.metadata.uid]
        moments = [at for at, one in self._bindings_of(name, since) if has_resources_of(one, now) and is_available(one)]
        self._promises.asked("a cluster is done only if its binding says so", tight=True)
        if not moments:
            return f"{name} is done in {now.metadata.name}, and its binding never said so"
        said = find(cluster, SUCCEEDED)
        first = self._simulation.clock.now() - timedelta(seconds=self._simulation.loop.time() - moments[0])
        too_early = self._true_clocks and said is not None and said.last_transition_time < first - A_SECOND
        return f"{name} is said to be done in {now.metadata.name} before it was" if too_early else ""

    def _bindings_of(self, cluster: str, since: int) -> Iterator[tuple[float, Binding]]:
        """Each form that bindings of a cluster had, from that version on."""
        for versions in self._promises.bindings.versions.values():
            last = max((at for at, one in enumerate(versions) if one.version <= since), default=0)
            for one in versions[last:]:
                if one.object is not None and one.object.spec.target_cluster == cluster:
                    yield self._at[one.version], one.object

    # Bindings

    def _of_binding(self, key: str, number: int) -> str:
        versions, sent = self._promises.bindings.versions[key], self._promises.bindings.sent.get(number)
        if len(versions) < 2 or sent is None:
            return ""
        before, now = versions[-2].object, versions[-1].object
        if before is None:
            return ""
        if now is not None and "fieldManager=kedge-staged-runs" in sent.what and now.spec != before.spec:
            return self._of_given(now, sent)
        leaves = now is None or now.metadata.deletion_timestamp is not None
        if before.metadata.deletion_timestamp is None and leaves:
            return self._of_taken(before, sent)
        return ""

    def _of_given(self, now: Binding, sent: Sent) -> str:
        """A binding is given resources only if a run that goes on has said before that the cluster begins."""
        cluster, resources = now.spec.target_cluster, now.spec.resource_snapshot_name
        self._promises.asked("a binding is moved only as a run has said before", tight=True)
        wrongs = [f"{cluster} is given {resources}, and no run says so"]
        for run in self._runs_since(sent.first):
            stages = run.status.stages_status
            moves = any(one.cluster_name == cluster and is_moving(one) for stage in stages for one in stage.clusters)
            if moves and resources == resources_of(run) and not has_ended(run.status):
                wrongs.append(self._of_stopped(run, cluster, sent))
        return "" if "" in wrongs else wrongs[-1]  # just after a restore, several forms of a run may be known

    def _of_stopped(self, run: Run, cluster: str, sent: Sent) -> str:
        """Nothing is given by a hub that has long heard that the run was stopped."""
        if run.spec.state is not RunState.stop:
            return ""
        self._promises.asked("what was stopped is given nothing more", tight=True)
        known = self.runs.known_at(sent.first - ONE_LOOK, sent.life)
        seen = [self.runs.seen(run.metadata.name, one) for one in known]
        stopped = [
            one is not None and one.object is not None and one.object.spec.state is RunState.stop for one in seen
        ]
        if not stopped or not all(stopped):
            return ""
        return f"{cluster} is given resources by {run.metadata.name}, which was stopped long before"

    def _of_taken(self, before: Binding, sent: Sent) -> str:
        """A binding is taken away only if it is no longer wanted, and a run has said that it clears the cluster."""
        cluster = before.spec.target_cluster
        self._promises.asked("a binding is taken away only as a run has said before", tight=True)
        if before.spec.state != BindingState.unscheduled:
            return f"{cluster} is cleared, and is picked"
        for run in self._runs_since(sent.first):
            last = run.status.deletion_stage_status
            if last is not None and any(one.cluster_name == cluster and is_moving(one) for one in last.clusters):
                return ""
        return f"{cluster} is cleared, and no run says so"

    def _runs_since(self, moment: float) -> Iterator[Run]:
        """Every form of every run that was there at that moment or later, or before a restore just before it."""
        moment = self._promises.restores.unaware_since(moment)
        for versions in self.runs.versions.values():
            ends = [self._at[one.version] for one in versions[1:]] + [float("inf")]
            for one, end in zip(versions, ends, strict=True):
                if one.object is not None and end >= moment:
                    yield one.object
