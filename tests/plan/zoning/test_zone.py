"""What a StatefulSet of a rollout group and its pods say."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.api.apps import Ordinals, StatefulSetSpec
from kedge.plan.zoning.zone import Zone
from plan.zoning.making import full, zone


def with_spec(one: Zone, **fields: object) -> Zone:
    return replace(one, stateful_set=replace(one.stateful_set, spec=_spec(one.stateful_set.spec, **fields)))


def _spec(spec: StatefulSetSpec, **fields: object) -> StatefulSetSpec:
    return replace(spec, **fields)


def test_a_spec_without_replicas_wants_one() -> None:
    assert zone("a", "o", replicas=None).replicas == 1


@pytest.mark.parametrize(
    ("pods", "replicas", "expected"),
    [
        ("oo-", 3, ["a-2"]),
        ("-o-", 3, ["a-0", "a-2"]),
        ("-oo", 2, []),  # one too many is there, which is about to go
    ],
)
def test_the_pods_that_are_wanted_and_not_there(pods: str, replicas: int, expected: list[str]) -> None:
    assert list(zone("a", pods, replicas=replicas).missing) == [f"ingester-zone-{name}" for name in expected]


def test_pods_are_counted_from_where_the_stateful_set_begins() -> None:
    one = with_spec(zone("a", "-" * 10 + "o-", replicas=2), ordinals=Ordinals(start=10))
    assert one.missing == (f"{full('a')}-11",)
    assert [unit.key for unit in one.outdated] == [f"{full('a')}-10"]


def test_what_is_not_ready_is_in_natural_order() -> None:
    assert [unit.key for unit in zone("a", "u-uo").not_ready] == [f"{full('a')}-{number}" for number in (0, 1, 2)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("Parallel", "a-0 a-1 a-2 a-3"), ("OrderedReady", "a-0 a-1 a-2")],
)
def test_the_pods_about_to_be_created_count(policy: str, expected: str) -> None:
    """In order, one waits for those before it; else all that are missing are created at once."""
    one = with_spec(zone("a", "oo--"), pod_management_policy=policy)
    assert " ".join(unit.key.removeprefix("ingester-zone-") for unit in one.units) == expected
