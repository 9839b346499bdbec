"""Witness: a pytest plugin that sees to it that rows run on the broken copy, and writes down which of them noticed.

    python -m pytest -p mutations.witness ...

Refuses to run if `kedge` was imported from anywhere but the copy (an editable install would give the server as it is).
A row counts as red only if the row itself fails: what fails before or after it, or cannot be collected, is an error.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

COPY = "KEDGE_MUTATIONS_COPY"
SEEN = "KEDGE_MUTATIONS_SEEN"


class Seen(Struct, frozen=True):
    """What came of a run."""

    green: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class Witness:
    """Notes what becomes of each row."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._green: list[str] = []
        self._red: list[str] = []
        self._errors: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            (self._red if report.when == "call" else self._errors).append(report.nodeid)
        elif report.when == "call" and report.passed:
            self._green.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._errors.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        seen = Seen(tuple(self._green), tuple(self._red), tuple(self._errors))
        self._to.write_bytes(msgspec.json.encode(seen))


def pytest_configure(config: pytest.Config) -> None:
    import kedge  # not before the copy stands in front of it

    found, copy = Path(str(kedge.__file__)).resolve(), Path(os.environ[COPY]).resolve()
    if not found.is_relative_to(copy):
        raise pytest.UsageError(f"kedge is {found}, which is not in {copy}: the rows would run on the whole server")
    config.pluginmanager.register(Witness(Path(os.environ[SEEN])), "mutations-witness")
