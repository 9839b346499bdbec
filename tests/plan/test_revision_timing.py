"""When changes of what is selected become a revision."""

from __future__ import annotations

import pytest

from kedge.api.dialect import Dialect
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ResourceSelector
from kedge.plan.revision_timing import PendingChanges, RevisionSettings, wait_before_revision
from kedge.plan.selecting.snapshots import NumberedSnapshot

SHOP = (ResourceSelector(group="", version="v1", kind="Namespace", name="shop"),)
OTHER = (ResourceSelector(group="", version="v1", kind="Namespace", name="other"),)
CURRENT, BROKEN = NumberedSnapshot(ObjectMeta(name="r0"), 0, "hash"), NumberedSnapshot(ObjectMeta(name="r0"), 0, "")
COLLECT = RevisionSettings(1.0)
SETTLED = PendingChanges().settled(SHOP)
ONE = SETTLED.seen("a", 100.0)
TWO = ONE.seen("b", 100.5)

TABLE = [
    ("one change", ONE, SHOP, CURRENT, COLLECT, 100.0, 1.0),
    ("one change, later", ONE, SHOP, CURRENT, COLLECT, 100.75, 0.25),
    ("one change, for long enough", ONE, SHOP, CURRENT, COLLECT, 101.5, 0.0),
    ("two changes wait as their pace has it", TWO, SHOP, CURRENT, COLLECT, 100.5, 2.0),
    ("no revision yet", ONE, SHOP, None, COLLECT, 100.0, 0.0),
    ("a revision that lost a part", ONE, SHOP, BROKEN, COLLECT, 100.0, 0.0),
    ("other selectors", ONE, OTHER, CURRENT, COLLECT, 100.0, 0.0),
    ("selectors nobody knows", PendingChanges().seen("a", 100.0), SHOP, CURRENT, COLLECT, 100.0, 1.0),
    ("nothing changed", SETTLED, SHOP, CURRENT, COLLECT, 100.0, 0.0),
    ("an interval", ONE, SHOP, CURRENT, RevisionSettings(1.0, 30.0), 100.0, 20.0),
    ("an interval, other selectors", ONE, OTHER, CURRENT, RevisionSettings(1.0, 30.0), 100.0, 20.0),
    ("KubeFleet, two changes", TWO, SHOP, CURRENT, RevisionSettings(1.0, dialect=Dialect.kubefleet), 100.5, 0.5),
    ("KubeFleet, other selectors", ONE, OTHER, CURRENT, RevisionSettings(1.0, dialect=Dialect.kubefleet), 100.0, 1.0),
]


@pytest.mark.parametrize(
    ("pending", "selectors", "current", "settings", "now", "wait"), [pytest.param(*row[1:], id=row[0]) for row in TABLE]
)
def test_how_long_changes_are_collected(
    pending: PendingChanges,
    selectors: tuple[ResourceSelector, ...],
    current: NumberedSnapshot | None,
    settings: RevisionSettings,
    now: float,
    wait: float,
) -> None:
    assert wait_before_revision(pending, selectors, current, settings, age=10.0, now=now) == pytest.approx(wait)


def test_the_same_selection_seen_again_is_no_change() -> None:
    assert ONE.seen("a", 105.0) is ONE
    assert ONE.settled(SHOP).seen("a", 105.0).burst is not None


def test_changes_count_from_the_first_of_them_and_a_settled_one_begins_anew() -> None:
    two = SETTLED.seen("a", 100.0).seen("b", 100.5)
    assert two.burst is not None
    assert (two.burst.since, two.burst.last, two.burst.pause) == (100.0, 100.5, 0.5)
    again = two.settled(OTHER).seen("c", 103.5)
    assert again.burst is not None
    assert (again.burst.since, again.burst.last, again.burst.pause) == (103.5, 103.5, 3.0)
    assert (again.digest, again.since, again.selectors) == ("c", 103.5, OTHER)
