"""A preview that takes long says how far it has come."""

from __future__ import annotations

import sys

import pytest

from kedge.cli import preview


def test_on_a_terminal_a_line_moves_and_is_gone_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(preview, "_PROGRESS_EVERY", 0.0)
    with preview.progress_line("what is expected", 86400.0) as report:
        report(60.0)
        report(7500.0)
    told = capsys.readouterr().err.split("\r\033[K")
    assert told == ["", *(f"simulating what is expected: {far} of at most 1d" for far in ("1m", "2h 5m")), ""]


def test_what_is_over_in_a_moment_or_watched_by_nobody_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with preview.progress_line("what is expected", 86400.0) as report:
        report(60.0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(preview, "_PROGRESS_EVERY", 3600.0)
    with preview.progress_line("what is expected", 86400.0) as report:
        report(60.0)
    assert "simulating" not in capsys.readouterr().err
