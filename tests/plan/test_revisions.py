"""Which of a placement's snapshots is the newest."""

from __future__ import annotations

import pytest

from kedge.api.fleet import IS_LATEST, POLICY_INDEX, RESOURCE_HASH, RESOURCE_INDEX
from kedge.api.meta import ObjectMeta
from kedge.plan.revisions import newest_policy, newest_resources, resource_index_in


def snapshot(name: str, index: str | None, latest: str | None = None, *, master: bool = True) -> ObjectMeta:
    labels = {IS_LATEST: latest} if latest is not None else {}
    numbers = {} if index is None else {RESOURCE_INDEX: index, POLICY_INDEX: index}
    return ObjectMeta(name=name, labels=labels | numbers, annotations={RESOURCE_HASH: "x"} if master else {})


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        ([], None),
        ([snapshot("a", "0")], "a"),
        ([snapshot("a", "0"), snapshot("b", "2"), snapshot("c", "1")], "b"),
        ([snapshot("a", "2"), snapshot("b", "10")], "b"),
        ([snapshot("a", "1"), snapshot("b", "0")], "a"),
        ([snapshot("b", "0"), snapshot("a", "1")], "a"),
        ([snapshot("a", "0", "true"), snapshot("b", "1")], "a"),  # the label counts more than the number
        ([snapshot("a", "0", "false"), snapshot("b", "1")], "b"),
        ([snapshot("a", "0", "true"), snapshot("b", "1", "true")], "b"),
        ([snapshot("a", None, "true")], None),
        ([snapshot("a", "x", "true"), snapshot("b", "0")], "b"),
    ],
)
def test_the_snapshot_with_the_label_is_the_newest_or_else_the_highest_number(
    known: list[ObjectMeta], wanted: str | None
) -> None:
    for newest in (newest_resources, newest_policy):
        found = newest(known)
        assert (found.name if found else None) == wanted


def test_a_further_part_of_a_revision_is_not_the_newest() -> None:
    parts = [snapshot("a", "0"), snapshot("b", "1", "true", master=False), snapshot("c", "2", master=False)]
    found = newest_resources(parts)
    assert found is not None
    assert found.name == "a"


@pytest.mark.parametrize(
    ("snapshot", "index"), [("crp-12-snapshot", 12), ("crp-snapshot", None), ("other-1-snapshot", None), ("", None)]
)
def test_a_revision_is_known_by_the_name_of_its_snapshot(snapshot: str, index: int | None) -> None:
    assert resource_index_in(snapshot, "crp") == index
