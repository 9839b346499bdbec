"""The ledger of a binding, as it is kept in its annotation."""

from __future__ import annotations

import pytest

from kedge.plan.aligning.ledger import Spec
from kedge.plan.aligning.ledger_text import BadLedger, Ledger, ledger_text, read_ledger

FIRST, SECOND, THIRD = Spec(1, "v1", 4, 1), Spec(2, "v2", 4, 2, 1), Spec(5, "v3", 6, 0, 1, 3)


def test_a_ledger_is_read_as_it_was_written() -> None:
    ledger = Ledger({"b": (FIRST, SECOND), "a": (THIRD,)})
    assert read_ledger(ledger_text(ledger)) == ledger
    assert ledger_text(ledger) == '{"a":[[5,"v3",6,0,1,3]],"b":[[1,"v1",4,1,0,0],[2,"v2",4,2,1,0]]}'
    assert read_ledger("") == Ledger()
    assert read_ledger('{"a":[]}') == Ledger()


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": [[1]]}', '{"a": [["1", "v1", 1, 1, 1, 1]]}'])
def test_what_cannot_be_read_is_not_guessed(text: str) -> None:
    with pytest.raises(BadLedger, match="cannot be read"):
        read_ledger(text)


def test_what_may_be_in_effect_stays() -> None:
    ledger = Ledger({"a": (FIRST, SECOND)})
    assert ledger.with_spec("a", THIRD, 2).specs == {"a": (SECOND, THIRD)}
    assert ledger.with_spec("a", THIRD, 1).specs == {"a": (FIRST, SECOND, THIRD)}
    assert ledger.with_spec("a", THIRD, 9).specs == {"a": (SECOND, THIRD)}
    assert ledger.with_spec("b", THIRD, 0).specs == {"a": (FIRST, SECOND), "b": (THIRD,)}
    assert ledger.without("a").specs == {}
    assert Ledger({"a": (FIRST,)}).with_spec("a", THIRD, 9).specs == {"a": (FIRST, THIRD)}
