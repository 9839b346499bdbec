"""The state machine of rollouts: every event in every state."""

from __future__ import annotations

from itertools import pairwise, product
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_status import BatchState as B
from kedge.api.oam.rollout_status import PlannedBatch, RolloutStatus
from kedge.api.oam.rollout_status import RollingState as R
from kedge.plan.batching.states import (
    BATCH_TABLE,
    ENDED,
    ROLLOUT_TABLE,
    Illegal,
    RolloutState,
    Transition,
    after,
    has_begun,
    is_others,
)
from kedge.plan.batching.states import RolloutEvent as E

STATES = [
    *(RolloutState(rolling) for rolling in R if rolling is not R.rolling),
    *(RolloutState(R.rolling, batch) for batch in B),
]
WORKING = [state for state in STATES if state.rolling not in ENDED]


class Row(NamedTuple):
    """A transition that KubeVela has, or one of ours instead."""

    state: RolloutState
    event: E
    to: RolloutState
    resets: bool = False
    next_batch: bool = False


def rolling(batch: B) -> RolloutState:
    return RolloutState(R.rolling, batch)


START = RolloutState(R.locating)
KUBEVELA = [
    Row(RolloutState(R.locating), E.located, RolloutState(R.verifying)),
    Row(RolloutState(R.verifying), E.verified, RolloutState(R.initializing)),
    Row(RolloutState(R.initializing), E.initialized, rolling(B.initializing)),
    Row(RolloutState(R.finalising), E.finalized, RolloutState(R.succeeded, B.ready)),
    Row(RolloutState(R.failing), E.finalized, RolloutState(R.failed)),
    Row(RolloutState(R.deleting), E.finalized, RolloutState(R.failed)),
    Row(RolloutState(R.abandoning), E.finalized, START, resets=True),
    Row(rolling(B.initializing), E.batch_initialized, rolling(B.rolling)),
    Row(rolling(B.rolling), E.batch_rolled, rolling(B.verifying)),
    Row(rolling(B.verifying), E.batch_available, rolling(B.finalizing)),
    Row(rolling(B.finalizing), E.batch_finished, rolling(B.ready)),
    Row(rolling(B.finalizing), E.all_batches_finished, RolloutState(R.finalising, B.ready)),
    Row(rolling(B.ready), E.batch_approved, rolling(B.initializing), next_batch=True),
    Row(RolloutState(R.succeeded), E.modified, START, resets=True),
    Row(RolloutState(R.failed), E.modified, START, resets=True),
    *(Row(rolling(batch), E.modified, RolloutState(R.abandoning)) for batch in B),
    *(
        Row(RolloutState(one), E.modified, RolloutState(R.abandoning))
        for one in (R.initializing, R.finalising, R.failing)
    ),
    Row(RolloutState(R.abandoning), E.modified, RolloutState(R.abandoning)),
    *(Row(state, E.deleted, RolloutState(R.deleting)) for state in WORKING),
]
# Not taken over: AppLocatedEvent where nothing is located is not legal, and no stray event fails a rollout.
OURS = [
    # What failed midway is taken back when it is deleted, if that was asked for.
    Row(RolloutState(R.failed), E.deleted, RolloutState(R.deleting)),
    # Before initializing nothing was touched, so there is nothing to abandon.
    Row(RolloutState(R.locating), E.modified, START, resets=True),
    Row(RolloutState(R.verifying), E.modified, START, resets=True),
    # A failure is an event like any other, and leads through the clean-up, unless there is nothing to clean up.
    Row(RolloutState(R.locating), E.failed, RolloutState(R.failed)),
    Row(RolloutState(R.verifying), E.failed, RolloutState(R.failed)),
    Row(RolloutState(R.initializing), E.failed, RolloutState(R.failing)),
    *(Row(rolling(batch), E.failed, RolloutState(R.failing)) for batch in B),
    Row(RolloutState(R.finalising), E.failed, RolloutState(R.failing)),
    # A batch that failed its verification is let go of, too; only there can that be found.
    Row(rolling(B.verifying), E.batch_failed, RolloutState(R.failing, B.verify_failed)),
    # A failed rollout can be tried again.
    Row(RolloutState(R.failed), E.retried, START, resets=True),
    # What another controller began is begun anew.
    *(Row(RolloutState(one), E.adopted, START, resets=True) for one in (R.verifying, R.initializing, R.finalising)),
    *(Row(rolling(batch), E.adopted, START, resets=True) for batch in B),
    Row(RolloutState(R.abandoning), E.adopted, START, resets=True),
]
TABLE = {(row.state, row.event): row for row in (*KUBEVELA, *OURS)}


def test_the_tables_have_no_row_twice() -> None:
    assert len(TABLE) == len(KUBEVELA) + len(OURS)


@pytest.mark.parametrize(("state", "event"), [*product(STATES, E)], ids=lambda one: str(getattr(one, "value", "")))
def test_every_event_in_every_state(state: RolloutState, event: E) -> None:
    row = TABLE.get((state, event))
    expected = Illegal(state, event) if row is None else Transition(row.to, row.next_batch, row.resets)
    assert after(state, event) == expected


def test_nothing_is_in_the_tables_that_is_not_reached() -> None:
    rows = {(state.rolling, event) for state, event in TABLE if (state.batch, event) not in BATCH_TABLE}
    assert set(ROLLOUT_TABLE) == rows
    assert {(state.batch, event) for state, event in TABLE if state.rolling is R.rolling} >= set(BATCH_TABLE)


@pytest.mark.parametrize(("rolling_state", "event"), [*product(sorted(ENDED), E)])
@pytest.mark.parametrize("batch", B)
def test_what_has_ended_stays_so_until_it_is_asked_for_something_else(rolling_state: R, event: E, batch: B) -> None:
    """D12: in KubeVela any stray event turned a success into a failure."""
    found = after(RolloutState(rolling_state, batch), event)
    if event is E.modified or (rolling_state, event) == (R.failed, E.retried):
        assert found == Transition(START, resets=True)
    elif (rolling_state, event) == (R.failed, E.deleted):
        assert found == Transition(RolloutState(R.deleting))  # to be taken back, if that was asked for
    else:
        assert isinstance(found, Illegal)


@pytest.mark.parametrize("event", E)
def test_a_deletion_is_not_undone(event: E) -> None:
    found = after(RolloutState(R.deleting), event)
    assert isinstance(found, Illegal) or found.state in (RolloutState(R.deleting), RolloutState(R.failed))


@pytest.mark.parametrize(
    ("state", "event", "text"),
    [
        (RolloutState(R.succeeded), E.failed, "RollingFailedEvent cannot happen in the state rolloutSucceed"),
        (rolling(B.ready), E.batch_rolled, "RolloutOneBatchEvent cannot happen in the state batchReady"),
        (RolloutState(R.failing, B.ready), E.located, "AppLocatedEvent cannot happen in the state rolloutFailing"),
    ],
)
def test_what_is_not_legal_says_so_and_changes_nothing(state: RolloutState, event: E, text: str) -> None:
    """D11: in KubeVela an unknown state took the whole process down."""
    found = after(state, event)
    assert isinstance(found, Illegal)
    assert (str(found), found.state) == (text, state)


def test_events_are_told_apart() -> None:
    """In KubeVela the last batch and the end of the clean-up had the same name."""
    assert len({event.value for event in E}) == len(E)


def reached(events: list[E]) -> list[Transition]:
    """The transitions of these events from the start; what is not legal is passed over."""
    state, found = START, []
    for event in events:
        transition = after(state, event)
        if isinstance(transition, Transition):
            state = transition.state
            found.append(transition)
    return found


@given(st.lists(st.sampled_from(E), max_size=60))
def test_a_rollout_only_succeeds_through_all_states(events: list[E]) -> None:
    passed = [transition.state for transition in reached(events)]
    if RolloutState(R.succeeded, B.ready) in passed:
        before = passed[: passed.index(RolloutState(R.succeeded, B.ready))]
        for needed in (
            RolloutState(R.verifying),
            RolloutState(R.initializing),
            rolling(B.verifying),
            RolloutState(R.finalising, B.ready),
        ):
            assert needed in before


@given(st.lists(st.sampled_from(E), max_size=60))
def test_the_next_batch_only_begins_when_one_is_ready(events: list[E]) -> None:
    found = reached(events)
    for before, transition in pairwise(found):
        if transition.next_batch:
            assert before.state == rolling(B.ready)


@pytest.mark.parametrize("state", WORKING)
def test_every_state_can_be_left_for_good(state: RolloutState) -> None:
    deleting = after(state, E.deleted)
    assert isinstance(deleting, Transition)
    ended = after(deleting.state, E.finalized)
    assert isinstance(ended, Transition)
    assert ended.state.rolling in ENDED


BATCHES = (PlannedBatch(replicas=1, goal=1),)
TARGET = ObjectReference(api_version="apps/v1", kind="Deployment", name="v2")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (RolloutStatus(), False),
        *((RolloutStatus(rolling_state=state), False) for state in (R.locating, R.verifying, R.failed)),
        *(
            (RolloutStatus(rolling_state=state), True)
            for state in R
            if state not in (R.locating, R.verifying, R.failed)
        ),
        (RolloutStatus(rolling_state=R.verifying, batches=BATCHES), True),
        (RolloutStatus(rolling_state=R.failed, batches=BATCHES), True),
        (RolloutStatus(rolling_state=R.failed, upgraded_replicas=1), True),
        (RolloutStatus(rolling_state=R.failed, current_batch=1), True),
    ],
)
def test_a_rollout_has_begun_when_its_batches_are_fixed_also_if_the_status_does_not_list_them(
    status: RolloutStatus, expected: bool
) -> None:
    assert has_begun(status) is expected


UNDER_WAY = (R.initializing, R.rolling, R.finalising, R.abandoning)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (RolloutStatus(), False),
        *((RolloutStatus(rolling_state=state), True) for state in (R.verifying, *UNDER_WAY)),
        *((RolloutStatus(rolling_state=state, target_workload=TARGET), True) for state in UNDER_WAY),
        *((RolloutStatus(rolling_state=state, batches=BATCHES), True) for state in UNDER_WAY),
        *((RolloutStatus(rolling_state=state, target_workload=TARGET, batches=BATCHES), False) for state in R),
        (RolloutStatus(rolling_state=R.verifying, target_workload=TARGET), False),
        *((RolloutStatus(rolling_state=state), False) for state in (R.locating, R.failing, R.deleting, *ENDED)),
    ],
)
def test_a_status_under_way_is_ours_if_it_has_the_workload_and_the_batches(
    status: RolloutStatus, expected: bool
) -> None:
    assert is_others(status) is expected


def test_the_other_word_for_a_rollout_that_was_given_up_is_read() -> None:
    found = msgspec.json.decode(b'{"rollingState": "rolloutAbandoned"}', type=RolloutStatus)
    assert found.rolling_state is R.abandoning
    assert msgspec.to_builtins(found)["rollingState"] == "rolloutAbandoning"
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"rollingState": "rolloutLost"}', type=RolloutStatus)
