"""What holds of every step of a rollout, whatever is observed; and that a rollout comes to its end."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import BatchState, RollingState, RolloutStatus
from kedge.embedded.json_patch import merge_patch
from kedge.plan.batching.batches import back, current_batch
from kedge.plan.batching.deployment_moves import DeploymentMoves
from kedge.plan.batching.moves import Batch, Workload, Workloads, Write
from kedge.plan.batching.progress import moved, state_of
from kedge.plan.batching.records import with_records
from kedge.plan.batching.rollout import step
from kedge.plan.batching.rollout_waits import BatchCode
from kedge.plan.batching.sizes import BadBatches
from kedge.plan.batching.states import ENDED, Illegal, RolloutEvent, after
from kedge.plan.batching.steps import Act, BatchRolloutInput, Ended, Hold, Move, Note
from kedge.plan.workloads.deployments import Deployments
from plan.batching.making import NOW, WHO, deployment, plan_of, sized, workloads

MOVES = DeploymentMoves(Deployments())
R = RollingState
B = BatchState
E = RolloutEvent
SIZES = st.one_of(st.integers(0, 4), st.sampled_from(["0%", "10%", "25%", "50%", "100%"]))
PLANS = st.builds(
    lambda sizes, more: plan_of(*sizes, "100%", **more),
    st.lists(SIZES, max_size=3),
    st.fixed_dictionaries(
        {
            "strategy": st.sampled_from([None, *RolloutStrategy]),
            "max_unavailable": st.sampled_from([None, 0, 1, "50%"]),
            "batch_partition": st.none() | st.integers(0, 4),
            "paused": st.booleans(),
            "revert_on_delete": st.booleans(),
        }
    ),
)


@st.composite
def deployments(draw: st.DrawFn, name: str) -> Workload:
    asked, pods = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    available = draw(st.integers(0, pods))
    return deployment(name, asked, pods=pods, available=available, observed=draw(st.sampled_from([2, 2, 2, 1])))


@st.composite
def observations(draw: st.DrawFn, rolling: R | None = None, batch: B | None = None) -> BatchRolloutInput:
    """Any rollout between Deployments, in any state; in this one, and with nothing in between, if it is given."""
    plan, total = draw(PLANS), draw(st.integers(0, 10))
    try:
        status = sized(plan, total, draw(st.integers(0, 10)))
    except BadBatches:
        assume(False)
        raise
    anything = rolling is None
    given = {
        "rolling_state": draw(st.sampled_from([None, *R])) if anything else rolling,
        "batch_rolling_state": draw(st.sampled_from([None, *B])) if batch is None else batch,
        "current_batch": draw(st.integers(0, len(status.batches) - 1)),
        "desired_size": draw(st.integers(0, 10)),
        "batch_available_at": draw(st.sampled_from([None, NOW])),
    }
    sources = [draw(deployments("v1")), draw(deployments("v0"))][: draw(st.integers(1, 2))]
    found = workloads(draw(deployments("v2")), *sources)
    is_located = not anything or draw(st.booleans())
    return BatchRolloutInput(
        WHO,
        plan if anything else replace(plan, paused=False, revert_on_delete=True),
        with_records(replace(status, **given), found),
        "v2" if not anything else draw(st.sampled_from(["v2", "v2", "v3"])),
        "v2" if not anything else draw(st.sampled_from(["v2", "v2", ""])),
        workloads=found if is_located else None,
        moves=MOVES if is_located else None,
        problem=draw(st.sampled_from(["", "", "no such kind"])) if anything else "",
        is_deleting=draw(st.booleans()) if anything else rolling is R.deleting,
        is_aborted=anything and draw(st.sampled_from([False, False, True])),
        retry=draw(st.sampled_from(["", "1"])),
    )


@given(observations())
def test_the_same_observation_leads_to_the_same_step(seen: BatchRolloutInput) -> None:
    assert step(seen, NOW) == step(seen, NOW)


@given(observations())
def test_every_event_is_one_that_can_happen(seen: BatchRolloutInput) -> None:
    found = step(seen, NOW)
    if isinstance(found, Move):
        assert not isinstance(after(state_of(seen.status), found.event), Illegal)


@given(st.sampled_from(sorted(ENDED)), st.data())
def test_what_has_ended_is_only_begun_anew_for_another_target_or_at_somebodys_wish(
    state: R, data: st.DataObject
) -> None:
    seen = data.draw(observations())
    seen = replace(seen, status=replace(seen.status, rolling_state=state))
    found = step(seen, NOW)
    if isinstance(found, Move) and found.event is E.deleted:
        assert state is R.failed  # it is taken back, as it asks for
        assert seen.is_deleting
        assert seen.plan.revert_on_delete
        return
    assert isinstance(found, Ended) or (isinstance(found, Move) and found.event in (E.modified, E.retried))
    if seen.is_deleting or (seen.wanted == seen.moving and not seen.retry):
        assert isinstance(found, Ended)


@given(observations(R.rolling, B.ready))
def test_no_batch_behind_the_partition_begins(seen: BatchRolloutInput) -> None:
    last, found = seen.plan.last_batch, step(seen, NOW)
    is_held = last is not None and last <= seen.status.current_batch
    assert (isinstance(found, Hold) and found.wait.code == BatchCode.last_batch) is is_held
    if not is_held:
        assert isinstance(found, Move | Hold | Note)


@given(observations(R.rolling))
def test_a_paused_rollout_changes_nothing(seen: BatchRolloutInput) -> None:
    assert isinstance(step(replace(seen, plan=replace(seen.plan, paused=True)), NOW), Hold)


def counts(seen: Workloads) -> dict[str, tuple[int, int, int]]:
    """How many pods each asks for, has, and has available for certain."""
    found: dict[str, tuple[int, int, int]] = {}
    for one in (seen.target, *seen.sources):
        obj = one.obj or {}
        is_known = obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        available = obj["status"]["availableReplicas"] if is_known else 0
        found[one.ref.name] = (obj["spec"]["replicas"], obj["status"]["replicas"], available)
    return found


def check_bounds(seen: BatchRolloutInput, writes: tuple[Write, ...], batch: Batch) -> None:
    """Never more pods than the ceiling because of a write, and never fewer available ones than the floor."""
    assert seen.workloads is not None
    before = counts(seen.workloads)
    asked = {name: count[0] for name, count in before.items()}
    sizes = asked | {write.ref.name: (write.patch or {})["spec"]["replicas"] for write in writes}
    assert writes
    if any(sizes[name] > asked[name] for name in sizes):
        assert sum(max(sizes[name], pods) for name, (_, pods, _) in before.items()) <= batch.budget.most
    if any(sizes[name] < asked[name] for name in sizes):
        assert all(write.takes_away for write in writes)
        left = sum(min(sizes[name], available) for name, (_, _, available) in before.items())
        certain = sum(min(size, available) for size, _, available in before.values())
        assert left >= min(certain, batch.budget.must_stay_available)


@given(observations(R.rolling, B.rolling))
def test_a_batch_keeps_floor_ceiling_and_goal(seen: BatchRolloutInput) -> None:
    found = step(seen, NOW)
    if not isinstance(found, Act):
        return
    assert seen.workloads is not None
    batch = current_batch(seen.plan, seen.status, is_scale=False)
    check_bounds(seen, found.writes, batch)
    before = counts(seen.workloads)
    sizes = {write.ref.name: (write.patch or {})["spec"]["replicas"] for write in found.writes}
    if "v2" in sizes:
        assert before["v2"][0] < sizes["v2"] <= batch.goal
    else:
        old = sum(sizes.get(name, count[0]) for name, count in before.items() if name != "v2")
        assert old >= batch.total - batch.goal


@given(observations(R.deleting))
def test_the_way_back_keeps_floor_and_ceiling(seen: BatchRolloutInput) -> None:
    found = step(seen, NOW)
    if isinstance(found, Act) and any("spec" in (write.patch or {}) for write in found.writes):
        check_bounds(seen, found.writes, back(seen.plan, seen.status, is_scale=False))


# Whole rollouts


class Played:
    """A rollout from v1 to v2 with Deployments whose pods come, work and go in any order."""

    def __init__(self, plan: RolloutPlan, size: int, data: st.DataObject) -> None:
        self.plan, self.size, self.data = plan, size, data
        self.seen = workloads(deployment("v2", 0, claim=""), deployment("v1", size, claim=""))
        self.status = RolloutStatus()
        self.moving = ""
        self.is_deleting = False
        self.holds = ""

    def input(self) -> BatchRolloutInput:
        given: dict[str, Any] = {"workloads": self.seen, "moves": MOVES, "is_deleting": self.is_deleting}
        return BatchRolloutInput(WHO, self.plan, self.status, "v2", self.moving, **given)

    def play(self, most: int = 400) -> None:
        """Until it ends, or holds with nothing under way."""
        for _ in range(most):
            seen = self.input()
            found = step(seen, NOW)
            match found:
                case Move(event=event):
                    self.moving = "v2"
                    status = moved(found, self.status, NOW)
                    assert isinstance(status, RolloutStatus), event
                    self.status = status
                case Note(status=status):
                    self.status = status
                case Act(writes=writes):
                    if self.status.rolling_state is R.rolling:
                        check_bounds(seen, writes, current_batch(self.plan, self.status, is_scale=False))
                    self.write(writes)
                case Hold(wait=wait):
                    self.holds = wait.code
                    if not self.act():
                        return
                case Ended():
                    return
        raise AssertionError(f"it never ends: {self.status}")

    def write(self, writes: tuple[Write, ...]) -> None:
        patches = {write.ref.name: write.patch or {} for write in writes}

        def one(workload: Workload) -> Workload:
            if workload.ref.name not in patches:
                return workload
            return replace(workload, obj=merge_patch(workload.obj, patches[workload.ref.name]))

        self.seen = replace(self.seen, target=one(self.seen.target), sources=tuple(map(one, self.seen.sources)))

    def act(self) -> bool:
        """One pod comes, works or goes; False if there is none that would."""
        every = {one.ref.name: one for one in (self.seen.target, *self.seen.sources)}
        found = counts(self.seen)
        busy = sorted(name for name, (asked, pods, available) in found.items() if not asked == pods == available)
        if not busy:
            return False
        name = self.data.draw(st.sampled_from(busy))
        asked, pods, available = found[name]
        if pods > asked:
            pods, available = pods - 1, min(available, pods - 1)
        elif available < pods and self.data.draw(st.booleans()):
            available += 1
        elif pods < asked:
            pods += 1
        else:
            available += 1
        status = {"replicas": pods, "readyReplicas": available, "availableReplicas": available}
        obj = merge_patch(every[name].obj, {"status": status})
        made = {**every, name: replace(every[name], obj=obj)}
        self.seen = replace(self.seen, target=made["v2"], sources=(made["v1"],))
        return True

    def asked(self) -> dict[str, int]:
        return {name: count[0] for name, count in counts(self.seen).items()}


@given(PLANS, st.integers(1, 8), st.data())
def test_a_rollout_moves_all_pods_up_to_its_partition_and_can_be_taken_back(
    plan: RolloutPlan, size: int, data: st.DataObject
) -> None:
    plan = replace(plan, paused=False)
    try:
        goals = [batch.goal for batch in sized(plan, size).batches]
    except BadBatches:
        assume(False)
        raise
    played = Played(plan, size, data)
    played.play()
    last = plan.last_batch
    if last is None or last >= len(goals) - 1:
        assert played.status.rolling_state is R.succeeded
        assert played.asked() == {"v1": 0, "v2": size}
        return
    assert (played.status.rolling_state, played.holds) == (R.rolling, BatchCode.last_batch)
    assert played.status.current_batch == last
    assert played.asked() == {"v1": size - goals[last], "v2": goals[last]}
    played.is_deleting = True
    played.play()
    assert played.status.rolling_state is R.failed
    if plan.revert_on_delete:
        assert played.asked() == {"v1": size, "v2": 0}
    else:
        assert played.asked() == {"v1": size - goals[last], "v2": goals[last]}
