"""Bad input is refused, or reported, with a message that names the field and the fix; nothing else is affected."""

from __future__ import annotations

import pytest

from fleet.bad_input import ROWS, Row, play
from fleet.bed import Backend
from fleet.situations.playing import Failure
from kedge.api.dialect import Dialect

pytestmark = pytest.mark.timeout(400)  # the first of these tests plays all of them


@pytest.fixture(scope="session")
def said() -> dict[str, str | Failure]:
    return Backend("embedded").play(play, Dialect.seed)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_mistake_is_told_and_harms_nobody_else(said: dict[str, str | Failure], row: Row) -> None:
    found = said[row.name]
    assert not isinstance(found, Failure), found.traceback
    missing = [words for words in row.says if words not in found]
    assert not missing, f"nothing is said of {missing}, but:\n{found}"


def test_there_are_at_least_thirty() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 30
