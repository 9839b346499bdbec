"""How a test run is shared between processes, and what it says of its time."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from support.durations import Spent, table
from support.scheduling import FLEET, longest_first, scope_of, written


class Item(Struct, frozen=True):
    nodeid: str


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/plan/test_a.py::test_it[real]", "tests/plan/test_a.py"),
        ("tests/fleet/test_traces.py::test_it[embedded-13]", "tests/fleet/test_traces.py"),
        ("tests/fleet/test_traces.py::test_it[real-13]", FLEET),
        ("tests/fleet/test_seed_examples.py::test_it[real]", FLEET),
        ("tests/fleet/test_situations.py::test_it_is_so_on_real_clusters[a rollout]", FLEET),
        ("tests/fleet/test_kills.py::test_it", FLEET),
        ("tests/fleet/test_comparing.py::test_it[a-really-long-name]", "tests/fleet/test_comparing.py"),
    ],
)
def test_tests_of_a_file_stay_together_and_those_on_the_real_fleet_too(test: str, scope: str) -> None:
    assert scope_of(test) == scope


def test_what_takes_longest_goes_first_and_a_file_keeps_its_order() -> None:
    items = [Item(f"tests/{name}") for name in ("a.py::x", "b.py::y", "b.py::x", "c.py::x")]
    longest_first(items, {"tests/b.py": 2.0, "tests/c.py": 3.0})
    assert [item.nodeid for item in items] == [f"tests/{name}" for name in ("c.py::x", "b.py::y", "b.py::x", "a.py::x")]


def test_what_is_on_the_real_fleet_stays_together_though_its_files_do_not() -> None:
    names = ["tests/fleet/a.py::x[real]", "tests/fleet/a.py::x[embedded]", "tests/b.py::x", "tests/fleet/c.py::x[real]"]
    items = [Item(name) for name in names]
    longest_first(items, {})
    assert [item.nodeid for item in items] == [names[0], names[3], names[1], names[2]]


def test_only_what_is_worth_knowing_is_written_down() -> None:
    spent = [
        Spent("tests/a.py::x", "unit", 1.5),
        Spent("tests/a.py::y", "unit", 1.6),
        Spent("tests/b.py::x", "unit", 1.0),
    ]
    assert msgspec.json.decode(written(spent)) == {"tests/a.py": 3}


def test_the_table_adds_up_by_folder_and_by_what_tests_run_on() -> None:
    spent = [
        Spent("tests/plan/rolling/test_a.py::x", "unit", 1.0, 0.5),
        Spent("tests/plan/test_b.py::x", "unit", 2.0, 0.5),
        Spent("tests/fleet/test_c.py::x", "real", 9.0, 1.0),
    ]
    lines = [line.split() for line in table(spent)]
    assert ["plan", "unit", "2", "3.0", "1.0"] in lines
    assert ["fleet", "real", "1", "9.0", "1.0"] in lines
    assert ["all", "3", "12.0", "2.0"] in lines
    assert lines[1][0] == "fleet", "what takes longest comes first"
