"""Tables of rows: written once, left alone while nothing has changed, and not believed for longer than they may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kedge.kube.transport import Request, Response
from support.recording import tables
from support.recording.exchange import answered
from support.recording.rows import Rows
from support.recording.tape import Differs

ASK = Request("GET", "/a")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    return tmp_path / "test_it.py"


def recorded(module: Path, **rows: str) -> None:
    """Let a server say these texts in these rows, and write that down."""
    live = Rows(module, is_live=True, writes=True)
    for name, said in rows.items():
        live.begin(name)
        live.recording.add(answered(ASK, Response(200, said.encode())))
    live.write()


def test_what_was_written_is_replayed(module: Path) -> None:
    recorded(module, one="1", two="2")
    replayed = Rows(module, is_live=False)
    replayed.begin("two")
    assert replayed.replay.answer(ASK).body == b"2"


def test_rows_that_were_not_played_stay(module: Path) -> None:
    recorded(module, one="1")
    recorded(module, two="2")
    assert tables.read(module).keys() == {"one", "two"}


def test_rows_of_tests_that_are_gone_go(module: Path) -> None:
    recorded(module, one="1", two="2")
    live = Rows(module, is_live=True, writes=True, known={"two"})
    live.begin("two")
    live.write()
    assert tables.read(module).keys() == {"two"}


def test_a_row_in_which_only_what_always_differs_differs_is_left_as_it_was(module: Path) -> None:
    recorded(module, one='{"uid":"a","v":1}', two='{"uid":"a","v":1}')
    before = tables.read(module)
    recorded(module, one='{"uid":"b","v":1}', two='{"uid":"b","v":2}')
    after = tables.read(module)
    assert after["one"] == before["one"]
    assert after["two"][0].answer == {"json": {"uid": "b", "v": 2}}


def test_a_live_server_is_held_to_what_was_recorded(module: Path) -> None:
    recorded(module, one="1")
    live = Rows(module, is_live=True)
    live.begin("one")
    live.recording.add(answered(ASK, Response(200, b"2")))
    with pytest.raises(Differs, match="said something else"):
        live.check("one")


def test_a_long_answer_that_two_rows_have_is_written_once(module: Path) -> None:
    long = '{"k":"' + "v" * 10_000 + '"}'
    recorded(module, one=long, two=long)
    assert tables.file_of(module).stat().st_size < 1.5 * len(long)
    assert tables.read(module)["one"] == tables.read(module)["two"]


def test_what_prepares_a_server_for_all_rows_belongs_to_none(module: Path) -> None:
    live = Rows(module, is_live=True, writes=True)
    live.begin("one")
    with live.aside():
        live.recording.add(answered(Request("POST", "/prepared"), Response(201)))
    live.write()
    assert tables.read(module) == {"one": []}


def test_a_table_of_another_kubernetes_is_not_believed(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(module, one="1")
    monkeypatch.setattr(tables, "KUBERNETES", "0.0.0")
    assert tables.read(module) == {}
