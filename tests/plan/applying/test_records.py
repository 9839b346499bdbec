"""How an object was left, and what that means for the next pass."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.plan.applying.observed import observe
from kedge.plan.applying.records import ObjectRecord, content, without_status


def config(data: str = "b", **metadata: Any) -> dict[str, Any]:
    meta = {"name": "settings", "namespace": "shop", "uid": "7", "resourceVersion": "1", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": data}}


LEFT = ObjectRecord().written("one", config())
HELD = LEFT.holding(config("others"))
GOING = "2030-01-01T00:00:00Z"


TABLE: list[tuple[str, ObjectRecord, str, dict[str, Any], float, bool]] = [
    ("as it was left", LEFT, "one", config(resourceVersion="9"), 0.0, True),
    ("for another manifest", LEFT, "two", config(), 0.0, False),
    ("changed by others", LEFT, "one", config("others"), 0.0, False),
    ("changed, and others are to be repaired later", LEFT, "one", config("others"), 5.0, False),
    ("made again by others", LEFT, "one", config(uid="8"), 0.0, False),
    ("being deleted", LEFT, "one", config(deletionTimestamp=GOING), 0.0, False),
    ("held", HELD, "one", config("others"), 5.0, True),
    ("held, and being deleted", HELD, "one", config("others", deletionTimestamp=GOING), 5.0, False),
    ("held for another moment", HELD, "one", config("others"), 0.5, True),
    ("held for long enough", HELD, "one", config("others"), 0.0, False),
    ("held, and changed again", HELD, "one", config("again"), 5.0, False),
    ("held, and put back by others", HELD, "one", config(), 5.0, True),
    ("never written", ObjectRecord(), "", config(), 5.0, False),
]


@pytest.mark.parametrize(
    ("record", "digest", "shown", "wait", "needs_nothing"), [pytest.param(*row[1:], id=row[0]) for row in TABLE]
)
def test_whether_there_is_nothing_to_do(
    record: ObjectRecord, digest: str, shown: dict[str, Any], wait: float, needs_nothing: bool
) -> None:
    assert record.needs_nothing(digest, observe(shown), wait) is needs_nothing


@pytest.mark.parametrize(
    ("record", "digest", "repairs"),
    [(LEFT, "one", True), (LEFT, "two", False), (ObjectRecord(), "", False), (HELD, "one", True)],
)
def test_to_write_the_same_manifest_again_is_a_repair(record: ObjectRecord, digest: str, repairs: bool) -> None:
    assert record.is_repair(digest) is repairs


UNKNOWN: list[tuple[ObjectRecord, dict[str, Any] | None]] = [
    (LEFT, None),
    (LEFT, config("others")),
    (LEFT, config(uid="8")),
    (LEFT, config(deletionTimestamp=GOING)),
    (ObjectRecord(), config()),
    (replace(LEFT, left=None), config()),
]


@pytest.mark.parametrize(("record", "shown"), UNKNOWN)
def test_an_object_that_is_not_as_it_was_left_has_to_be_read(
    record: ObjectRecord, shown: dict[str, Any] | None
) -> None:
    assert record.known(observe(shown) if shown is not None else None) is None


def test_an_object_as_it_was_left_is_known_in_its_newest_version() -> None:
    assert LEFT.known(observe(config(resourceVersion="9"))) == config(resourceVersion="9")


def test_a_status_and_the_list_of_managers_are_not_kept() -> None:
    full = {**config(managedFields=[{}]), "status": {"ready": True}}
    assert without_status(full) == config()
    assert ObjectRecord().written("one", full).left == config()
    assert content(full) == content(config())


def test_an_object_that_is_held_and_then_written_is_no_longer_as_it_was_held() -> None:
    record = HELD.written("two", config("two"))
    assert (record.digest, record.content, record.held) == ("two", content(config("two")), HELD.held)


def test_a_held_object_is_remembered_as_it_looked() -> None:
    record = LEFT.holding(config("others"))
    assert record.held == content(config("others")) != content(config())
    assert (record.digest, record.content, record.left) == (LEFT.digest, LEFT.content, LEFT.left)
