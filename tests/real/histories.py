"""Histories: the states through which Kubernetes' own controllers take a row of a table, live or as recorded."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec
import pytest

from controlplane.pytest_plugin import run_apart
from support.recording.api import RealApi
from support.stage import each, real_stage

Row = tuple[Any, ...]
Play = Callable[..., Coroutine[Any, Any, Any]]
"""Plays a row on a stage: what came of it."""


class Histories:
    """The history of each row. Live, all rows that are to be tested are played at first: a namespace each."""

    def __init__(self, api: RealApi, rows: Mapping[str, Row], play: Play, request: pytest.FixtureRequest) -> None:
        self._api = api
        self._rows = rows
        self._live: Mapping[str, Any] = {}
        if api.is_live:
            tested = {row: rows[row] for row in _tested(request)}
            self._live = run_apart(each(tested, lambda row: play(real_stage(api.cluster), *row)))

    def of(self, row: str) -> Any:
        return self._api.told(f"the history of {self._rows[row]}", lambda: self._played(row))

    def _played(self, row: str) -> Any:
        found = self._live[row]
        if isinstance(found, BaseException):
            raise found
        return found


def _tested(request: pytest.FixtureRequest) -> list[str]:
    """The rows that this run tests in the module that asks."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    return [str(item.callspec.params["row"]) for item in items if hasattr(item, "callspec")]


def as_told(history: Any) -> Any:
    """A history of ours, in the form of one that was recorded."""
    return msgspec.json.decode(msgspec.json.encode(history))
