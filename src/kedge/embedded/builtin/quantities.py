"""Quantities: what is wrong with the resources of containers, quotas and limit ranges."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kedge.api.numbers import Quantity
from kedge.embedded.builtin import checks
from kedge.embedded.causes import NOT_NEGATIVE, invalid_value, required_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_STANDARD_RESOURCES = frozenset(
    (
        *_CONTAINER_RESOURCES,
        *(f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER_RESOURCES),
        "requests.storage",
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_COUNTED_RESOURCES = frozenset(
    ("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps")
)


parse_quantity = lru_cache(4096)(Quantity.parse)  # the same few texts recur


def resource_problems(at: str, resources: Untyped) -> Iterator[Cause]:
    """What is wrong with the requests and limits of a container."""
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            if name not in _CONTAINER_RESOURCES or parse_quantity(text).amount < 0:
                yield from _amount(f"{at}.{part}[{name}]", name, text)
    for name, text in requests.items():
        yield from _request(at, name, text, limits.get(name))


def _request(at: str, name: str, text: str, limit: str | None) -> Iterator[Cause]:
    if limit is None:
        if is_extended_resource(name):
            yield required_value(f"{at}.limits", "Limit must be set for non overcommitable resources")
        return
    if is_extended_resource(name) and parse_quantity(text) != parse_quantity(limit):
        yield invalid_value(f"{at}.requests", text, f"must be equal to {name} limit of {limit}")
    elif parse_quantity(text) > parse_quantity(limit):
        yield invalid_value(f"{at}.requests", text, f"must be less than or equal to {name} limit of {limit}")


def _amount(at: str, name: str, text: str) -> Iterator[Cause]:
    if name not in _CONTAINER_RESOURCES:
        yield from _container_resource(at, name)
    yield from quantity_must_not_be_negative(at, text)
    if is_extended_resource(name):
        yield from quantity_must_be_whole(at, text)


def _container_resource(at: str, name: str) -> Iterator[Cause]:
    yield from resource_name_problems(at, name)
    if "/" not in name and not name.startswith("hugepages-") and name not in _CONTAINER_RESOURCES:
        yield invalid_value(at, name, "must be a standard resource for containers")


def resource_name_problems(at: str, name: str) -> Iterator[Cause]:
    """It must be a standard resource, or a qualified name."""
    yield from checks.qualified_name(at, name)
    if "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
        yield invalid_value(at, name, "must be a standard resource type or fully qualified")


def hard_limit_problems(at: str, hard: Untyped) -> Iterator[Cause]:
    for name, text in hard.items():
        where = f"{at}[{name}]"
        if not name.startswith("count/"):
            yield from resource_name_problems(where, name)
            if "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
                yield invalid_value(where, name, "must be a standard resource for quota")
        yield from quantity_must_not_be_negative(where, text)
        if name in _COUNTED_RESOURCES:
            yield from quantity_must_be_whole(where, text)


def is_extended_resource(name: str) -> bool:
    """Whether it is an extended resource: integers only, and no overcommit."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def quantity_must_not_be_negative(at: str, text: str) -> Iterator[Cause]:
    if parse_quantity(text).amount < 0:
        yield invalid_value(at, text, NOT_NEGATIVE)


def quantity_must_be_whole(at: str, text: str) -> Iterator[Cause]:
    amount = parse_quantity(text).amount
    if amount != amount.to_integral_value():
        yield invalid_value(at, text, "must be an integer")
