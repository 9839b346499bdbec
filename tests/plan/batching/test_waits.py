"""What a move waits for, in words."""

from __future__ import annotations

import pytest

from kedge.plan.batching.waits import SENTENCES, MoveCode, sentence
from kedge.plan.moving.wait import Blocker, Code, Wait

NUMBERS = {"pods": 4, "desired": 5, "updated": 3, "available": 2, "goal": 6, "tolerated": 1}
UNIT = "StatefulSet shop/web"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (MoveCode.not_found, f"{UNIT} does not exist"),
        (MoveCode.leaving, f"{UNIT} is being deleted"),
        (MoveCode.not_observed, f"{UNIT} has changed, and its controller has not reported on that yet"),
        (MoveCode.scaling, f"{UNIT} is still scaling: it has 4 of 5 pods"),
        (MoveCode.updating, f"{UNIT} is still updating: 3 of 5 pods are updated, 2 are available"),
        (MoveCode.claimed, f"{UNIT} is being moved by another rollout"),
        (MoveCode.paused, f"{UNIT} was paused by somebody else"),
        (MoveCode.not_available, f"2 of 6 pods of {UNIT} are available, 1 may be unavailable"),
        (MoveCode.pods_left, f"{UNIT} has 4 pods and is to have 6"),
        (MoveCode.strategy_changed, f"the update strategy of {UNIT} was changed by somebody else"),
    ],
)
def test_each_wait_is_a_sentence(code: MoveCode, text: str) -> None:
    assert sentence(Wait(UNIT, code, NUMBERS)) == text


def test_every_code_has_a_sentence() -> None:
    assert set(MoveCode) <= SENTENCES.keys()


def test_codes_of_the_kernel_have_one_too() -> None:
    spent = Wait("web-1", Code.budget_spent, {"available": 3, "desired": 5, "maxUnavailable": 2})
    assert sentence(spent) == "web-1 waits: 3 of 5 pods are available, at most 2 may not be"
    unproven = Wait("web-1", Code.revision_unproven, {"limit": 1, "holding": 2})
    assert sentence(unproven) == "web-1 waits: of the new revision 2 pods are not available yet"
    assert sentence(Wait("web-1", "Other")) == "web-1 waits: Other"


def test_blockers_are_named_with_what_they_report() -> None:
    wait = Wait(UNIT, MoveCode.claimed, {}, (Blocker("Rollout/a/u"), Blocker("web-1", reported="CrashLoopBackOff")))
    assert sentence(wait) == f"{UNIT} is being moved by another rollout: Rollout/a/u; web-1 (CrashLoopBackOff)"
