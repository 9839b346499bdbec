"""What clusters wait for, in words: from real decisions, so that every code is reached by one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.alignment import align
from kedge.plan.aligning.ledger import NOTHING, Member, OwnStrategy, Report, Spec
from kedge.plan.aligning.turns import TurnCode
from kedge.plan.aligning.wait_text import wait_sentence
from kedge.plan.moving.wait import Wait
from plan.aligning.test_alignment import STORY_1, STORY_2, resting, rolling

OVERRIDDEN = Member("a", 4, "v2", (Spec(1, "v1", 4, 1),), Report(1, 4, 4, 4), own=OwnStrategy(is_held=True))
LOST = Member("a", 4, "v2", (Spec(1, "v1", 4, 1),), Report(1, 4, 4, 4), is_reachable=False)
PENDING = Member("a", 4, "v2", (Spec(1, "v1", 4, 1), Spec(2, "v2", 4, 2)), Report(1, 4, 4, 4))
BROKEN = Member("b", 6, "v2", (Spec(1, "v2", 6, 1),), Report(1, 6, 6, 4, 4))
CASES = [
    (
        STORY_1,
        [PENDING, resting("b", 6, wants="v1")],
        AlignCode.unacknowledged,
        "it has not reported yet that it acts on what was written last, so it keeps what it holds",
    ),
    (
        STORY_1,
        [LOST, resting("b", 6, wants="v1")],
        AlignCode.unreachable,
        "it is not heard from: it keeps what it holds of the budget, and gets no more",
    ),
    (
        STORY_1,
        [replace(resting("a", 4), is_suspended=True), resting("b", 6, wants="v1")],
        AlignCode.suspended,
        "its dispatching is suspended: it keeps what it holds of the budget, and gets no more",
    ),
    (
        STORY_1,
        [OVERRIDDEN, resting("b", 6, wants="v1")],
        AlignCode.overridden,
        (
            "an override policy decides on its strategy, and the budget has no room for that, or it keeps its pods as "
            "they are: it keeps what it has; take the strategy out of the policy"
        ),
    ),
    (
        STORY_1,
        [Member("a", 4, "v1", (Spec(1, "v1", 4, 0, 1),), Report(1, 2, 2, 0)), resting("b", 6, wants="v1")],
        AlignCode.creating,
        "its pods are being created: 2 of 4 pods",
    ),
    (
        Aim(10, 2, 1, is_paused=True),
        [resting("a", 4), resting("b", 6)],
        AlignCode.paused,
        "the workload is paused: no cluster is granted anything until it is resumed",
    ),
    (
        STORY_1,
        [rolling("a", Spec(2, "v2", 4, 2, 1), updated=2, proven=1), resting("b", 6, wants="v1")],
        AlignCode.rolling,
        "it replaces its pods with what it holds: 2 of 4 pods",
    ),
    (
        STORY_1,
        [resting("a", 4), resting("b", 6)],
        AlignCode.budget_spent,
        "at most 2 of 10 pods may be unavailable, and 1 may be extra: b holds that until new pods there are available",
    ),
    (
        Aim(16, 2),
        [
            resting("a", 4),
            rolling("b", Spec(2, "v2", 6, 1), updated=2, proven=1),
            rolling("c", Spec(3, "v2", 6, 1), updated=2, proven=1),
        ],
        AlignCode.budget_spent,
        "at most 2 of 16 pods may be unavailable: b and c hold that until new pods there are available",
    ),
    (
        Aim(10, 2),
        [resting("a", 4), BROKEN],
        AlignCode.budget_spent,
        "at most 2 of 10 pods may be unavailable: b holds that until new pods there are available",
    ),
    (
        Aim(10, 2),
        [resting("a", 4), replace(BROKEN, template="v3", is_reachable=False)],
        AlignCode.budget_spent,
        "at most 2 of 10 pods may be unavailable: only 8 are sure to be available, and 8 have to be",
    ),
    (
        Aim(4, 0, 2, is_partitioned=True),
        [
            Member("a", 2, "v2", (Spec(2, "v1", 2, 1),), Report(2, 2, 2, 2, 2, is_back=True)),
            Member("b", 2, "v2", (Spec(1, "v1", 2, 1), Spec(3, "v2", 2, 1, 1)), Report(3, 2, 2, 0)),
        ],
        AlignCode.unproven,
        "2 pods in b may have the new template and not be available, and at most 2 may: they come first",
    ),
    (
        Aim(4, 2, 1, is_partitioned=True),
        [
            Member("a", 2, "v2", (Spec(1, "v1", 2, 1),), Report(1, 2, 2, 0, is_back=True)),
            Member("b", 2, "v2", (Spec(2, "v1", 2, 1), Spec(3, "v1", 2, 1)), Report(2, 2, 2, 0, is_back=True)),
        ],
        AlignCode.broken,
        "some pods do not work, and may work again: fewer than 2 pods could be left then; repair or delete them",
    ),
    (
        Aim(6, 1),
        [
            Member("a", 2, "v2", (Spec(2, "bad", 2, 1),), Report(2, 2, 2, 0)),
            Member("b", 4, "v2", (Spec(1, "v1", 4, 0, 1),), Report(1, 4, 4, 3), is_starting=True),
        ],
        AlignCode.starting,
        (
            "pods that do not work are given up once those in b have had time to become ready: 30 seconds and "
            "minReadySeconds, since their number last changed"
        ),
    ),
    (
        Aim(10, 2),
        [Member("a", 4, "v1", (), NOTHING), resting("b", 10, wants="v1", wanted=6)],
        AlignCode.no_room,
        "it is to get more replicas, and there may be 10 pods at most: others go first",
    ),
    (
        Aim(10, 0, 1),
        [resting("a", 4, wants="v1", wanted=0), resting("b", 6, wants="v1", wanted=10)],
        AlignCode.too_few,
        "it is to have fewer replicas, and 10 pods have to stay available: others come first",
    ),
    (
        STORY_2,
        [rolling("a", Spec(3, "v2", 3, 1, 0, 1), updated=3, proven=3), resting("b", 7)],
        AlignCode.kept_back,
        "the partition lets 3 pods through here, and they are there",
    ),
    (
        Aim(10, 2, recreates=True),
        [resting("a", 4), resting("b", 6)],
        AlignCode.recreates,
        (
            "its strategy takes all its pods away at once, and at most 2 of 10 pods may be unavailable:"
            " use RollingUpdate, or raise maxUnavailable"
        ),
    ),
]


@pytest.mark.parametrize(
    ("aim", "members", "code", "sentence"), CASES, ids=[f"{one[2]}-{one[3][:12]}" for one in CASES]
)
def test_what_the_first_cluster_waits_for(aim: Aim, members: list[Member], code: AlignCode, sentence: str) -> None:
    wait = align(aim, members).waiting["a"]
    assert wait.code == code
    assert wait_sentence(wait) == sentence


def test_every_code_has_a_sentence() -> None:
    assert {one[2] for one in CASES} == set(AlignCode)


NUMBERS = {"replicas": 10, "maxUnavailable": 2, "maxSurge": 1, "fewest": 8, "most": 11, "updated": 0, "goal": 4}


@pytest.mark.parametrize(
    ("code", "numbers", "sentence"),
    [
        (
            AlignCode.budget_spent,
            {"fewest": 0},
            (
                "at most 2 of 10 pods may be unavailable, and 1 may be extra:"
                " none is sure to be available, and 8 have to be"
            ),
        ),
        (
            AlignCode.budget_spent,
            {"fewest": 9},
            (
                "at most 2 of 10 pods may be unavailable, and 1 may be extra:"
                " it holds that until new pods there are available"
            ),
        ),
        (AlignCode.no_room, {}, "it is to get more replicas, and there may be 11 pods at most: others go first"),
    ],
)
def test_what_nobody_else_holds(code: AlignCode, numbers: dict[str, int], sentence: str) -> None:
    assert wait_sentence(Wait("a", code, {**NUMBERS, **numbers})) == sentence


@pytest.mark.parametrize("code", TurnCode)
def test_every_step_of_a_turn_has_a_sentence_of_its_own(code: TurnCode) -> None:
    others = {wait_sentence(Wait("a", other)) for other in TurnCode if other is not code}
    assert wait_sentence(Wait("a", code)) not in others
