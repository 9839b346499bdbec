"""Overriding: what is different in one cluster. Policies of the cluster first, then those of the namespace.

Among each, those that mean more win: by name over by labels over all, then by their own name. What a policy says of
the rolling strategy is somebody else's decision: such a cluster is charged for it and left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from enum import IntEnum
from typing import Any, Final

from msgspec import Struct

from kedge.api.karmada.overrides import (
    ClusterOverridePolicy,
    ImageOverrider,
    OverrideOperator,
    OverridePolicy,
    Overriders,
    PlaintextOverrider,
)
from kedge.api.karmada.policies import ResourceSelector
from kedge.plan.aligning.images import overridden_image
from kedge.plan.aligning.scheduling import CandidateCluster, is_meant
from kedge.plan.aligning.supporting import override_problems
from kedge.plan.fields import Object, at, text

AnyOverridePolicy = OverridePolicy | ClusterOverridePolicy
_STRATEGIES: Final = (("spec", "strategy"), ("spec", "updateStrategy"))
_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


class Exactness(IntEnum):
    """How exactly a policy means an object: the more exactly, the later its word."""

    all = 1
    """With all others of its kind."""
    by_labels = 2
    by_name = 3


class NotOverridden(ValueError):
    """Why an override cannot be applied, in words."""


class Overridden(Struct, frozen=True):
    """An object as one cluster gets it."""

    obj: Object
    policies: tuple[str, ...] = ()
    """The policies that said something, in the order they were applied."""
    cluster_policies: tuple[str, ...] = ()
    sets_strategy: bool = False
    """Whether one of them decides on the rolling strategy."""


def overridden(obj: Object, cluster: CandidateCluster, policies: Iterable[AnyOverridePolicy]) -> Overridden:
    """An object with all that is different in a cluster."""
    found: Any = obj
    named: dict[type, list[str]] = {ClusterOverridePolicy: [], OverridePolicy: []}
    sets_strategy = False
    for policy in sorted(policies, key=lambda one: _rank(one, obj)):
        rules = [one.overriders for one in policy.spec.override_rules if is_meant(one.target_cluster, cluster)]
        if _weight(policy.spec.resource_selectors, obj) is None or not (rules or _is_older(policy)):
            continue
        if problems := override_problems(policy.spec):
            raise NotOverridden(f"{policy.metadata.name}: {'; '.join(problems)}")
        found = deepcopy(found) if found is obj else found
        for overriders in rules:
            found = _applied(found, overriders, policy.metadata.name)
            sets_strategy = sets_strategy or any(map(_is_of_strategy, overriders.plaintext))
        named[type(policy)].append(policy.metadata.name)
    return Overridden(found, tuple(named[OverridePolicy]), tuple(named[ClusterOverridePolicy]), sets_strategy)


def _is_older(policy: AnyOverridePolicy) -> bool:
    """Whether a policy is written in the older form, which is refused wherever it means an object."""
    return policy.spec.overriders is not None


def _rank(policy: AnyOverridePolicy, obj: Object) -> tuple[bool, int, str]:
    weight = _weight(policy.spec.resource_selectors, obj)
    return isinstance(policy, OverridePolicy), weight or Exactness.all, policy.metadata.name


def _weight(selectors: Sequence[ResourceSelector], obj: Object) -> Exactness | None:
    """How exactly a policy means an object, which one without selectors does with all; None if it does not."""
    if not selectors:
        return Exactness.all
    return max((found for one in selectors if (found := selected(one, obj)) is not None), default=None)


def selected(selector: ResourceSelector, obj: Object) -> Exactness | None:
    """How exactly a selector means an object; None if it does not."""
    if (selector.api_version, selector.kind) != (text(obj, "apiVersion"), text(obj, "kind")):
        return None
    if selector.namespace and selector.namespace != text(obj, "metadata", "namespace"):
        return None
    if selector.name:
        return Exactness.by_name if selector.name == text(obj, "metadata", "name") else None
    if selector.label_selector is not None:
        return Exactness.by_labels if selector.label_selector.matches(at(obj, "metadata", "labels") or {}) else None
    return Exactness.all


def _is_of_strategy(one: PlaintextOverrider) -> bool:
    return _touches(_parts(one.path), _STRATEGIES)


def _touches(path: Iterable[str], places: Iterable[Sequence[str]]) -> bool:
    """Whether a path leads to one of these places, or above or below it."""
    parts = tuple(path)
    return any(parts[: len(place)] == tuple(place)[: len(parts)] for place in places)


def _applied(obj: Any, overriders: Overriders, policy: str) -> Any:
    for image in overriders.image_overrider:
        for path in _image_paths(obj, image):
            changed = overridden_image(_image_at(obj, path, policy), image)
            obj = _set(obj, path, OverrideOperator.set, changed, policy)
    for one in overriders.plaintext:
        obj = _set(obj, _parts(one.path), one.operator, one.value, policy)
    return obj


# Values by their paths


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _get(obj: Any, path: Sequence[str]) -> Any:
    for part in path:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    return obj


def _set(obj: Any, path: Sequence[str], operator: OverrideOperator, value: Any, policy: str) -> Any:
    """An object with one value changed. Missing parents are an error, as in a JSON patch. Which object it is stays: a
    policy of one namespace must not write into another."""
    if _touches(path, _IDENTITY):
        raise NotOverridden(f"{policy} must not {operator} /{'/'.join(path)}: it says which object this is")
    try:
        parent = _get(obj, path[:-1])
        _change(parent, path[-1], operator, value)
    except (KeyError, IndexError, ValueError, TypeError):
        where = "/" + "/".join(path)
        raise NotOverridden(f"{policy} cannot {operator} {where}: the object has no such place") from None
    return obj


def _change(parent: Any, name: str, operator: OverrideOperator, value: Any) -> None:
    key: Any = name
    if isinstance(parent, list):
        key = len(parent) if name == "-" else int(name)
    match operator:
        case OverrideOperator.add if isinstance(parent, list):
            if not 0 <= key <= len(parent):
                raise IndexError(key)
            parent.insert(key, deepcopy(value))
        case OverrideOperator.add:
            parent[key] = deepcopy(value)
        case OverrideOperator.set:
            parent[key]  # it has to be there
            parent[key] = deepcopy(value)
        case OverrideOperator.remove:
            del parent[key]


# Images


def _image_paths(obj: Any, image: ImageOverrider) -> list[list[str]]:
    if image.predicate is not None:
        return [_parts(image.predicate.path)]
    pods = [("spec",)] if text(obj, "kind") == "Pod" else [("spec", "template", "spec")]
    return [
        [*where, field, str(number), "image"]
        for where in pods
        for field in ("initContainers", "containers")
        for number, one in enumerate(at(obj, *where, field) or ())
        if "image" in one
    ]


def _image_at(obj: Any, path: Sequence[str], policy: str) -> str:
    try:
        found = _get(obj, path)
    except (KeyError, IndexError, ValueError, TypeError):
        found = None
    if not isinstance(found, str):
        raise NotOverridden(f"{policy} cannot change the image at /{'/'.join(path)}: the object has none there")
    return found
