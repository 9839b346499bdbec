"""Fields of plain objects of any kind, which may lack anything and have anything anywhere.

A field that is missing or of another type reads as nothing: an object that cannot be read proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Object: TypeAlias = Mapping[str, Any]
_MAP: Final = (dict, Mapping)
"""Of the two, a dict is told much faster."""
_LEAF: Final = (str, int, list)
"""What is no mapping is told slowest: these are told before."""


def at(obj: Any, *path: str) -> Any:
    """What is at a path of members; None if nothing is."""
    for name in path:
        if obj is None or not isinstance(obj, _MAP):
            return None
        obj = obj.get(name)
    return obj


def whole(obj: Object, *path: str) -> int | None:
    """The whole number at a path."""
    found = at(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def count(obj: Object, *path: str) -> int:
    """The number at a path. Kubernetes leaves out most that are 0."""
    return whole(obj, *path) or 0


def text(obj: Any, *path: str) -> str:
    """The text at a path; empty if there is none."""
    found = at(obj, *path)
    return found if isinstance(found, str) else ""


def first(obj: Object, *path: str) -> Any:
    """The first item of the list at a path."""
    found = at(obj, *path)
    return found[0] if isinstance(found, list) and found else None


def condition(obj: Object, *types: str) -> Object | None:
    """The condition of a type, or of the first of several names of it that is there."""
    found = at(obj, "status", "conditions")
    known = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return next((one for name in types for one in known if one.get("type") == name), None)


def has_condition(obj: Object, type: str, status: str) -> bool:  # noqa: A002  # the field's own name
    """Whether a condition is there with this status."""
    return text(condition(obj, type), "status") == status


def generation(obj: Object) -> int | None:
    return whole(obj, "metadata", "generation")


def is_observed(obj: Object) -> bool:
    """Whether its status is of its present generation, and not of one before a change."""
    seen = whole(obj, "status", "observedGeneration")
    return seen is not None and seen == generation(obj)


def group_of(obj: Object) -> str:
    """The group of its API; empty for the core one."""
    before, slash, _ = text(obj, "apiVersion").partition("/")
    return before if slash else ""


def name_of(obj: Object) -> str:
    """How it is called in a sentence: `Deployment shop/web`."""
    kind, namespace, name = text(obj, "kind"), text(obj, "metadata", "namespace"), text(obj, "metadata", "name")
    return f"{kind or 'an object'} {namespace}/{name}" if namespace else f"{kind or 'an object'} {name}"


def replacement(old: Object, new: Object) -> dict[str, Any]:
    """The merge patch after which a map is the new one, whatever the old one had."""
    gone = {name: None for name in old if name not in new}
    return gone | {name: _replaced(old.get(name), value) for name, value in new.items()}


def _replaced(old: Any, new: Any) -> Any:
    return replacement(old if isinstance(old, Mapping) else {}, new) if isinstance(new, Mapping) else new


def merged(one: Object, *others: Object) -> dict[str, Any]:
    """Several merge patches as one. A later one has the last word."""
    found = dict(one)
    for other in others:
        for name, value in other.items():
            both = isinstance(value, _MAP) and name in found and isinstance(found[name], _MAP)
            found[name] = merged(found[name], value) if both else value
    return found


def changed(obj: Any, patch: Object) -> dict[str, Any]:
    """The part of a merge patch that changes something."""
    found = {name: _changed_value(at(obj, name), value) for name, value in patch.items()}
    return {name: value for name, value in found.items() if value != {} and value != at(obj, name)}


def _changed_value(old: Any, value: Any) -> Any:
    return changed(old, value) if isinstance(value, Mapping) else value


def patched(obj: Object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """An object with a merge patch in it; what the patch removes is gone."""
    merged = dict(obj)
    for name, value in patch.items():
        if value is None or isinstance(value, _LEAF) or not isinstance(value, _MAP):
            merged[name] = value
            continue
        old = merged.get(name)
        merged[name] = patched(old if old is not None and isinstance(old, _MAP) else {}, value)
    return {name: value for name, value in merged.items() if value is not None}


def covers(obj: Any, wanted: Any) -> bool:
    """Whether an object has all that is wanted of it; it may have more members, but not more items in a list."""
    if isinstance(wanted, _MAP):
        return all(covers(at(obj, name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(obj, list):
        return len(obj) == len(wanted) and all(map(covers, obj, wanted))
    return bool(obj == wanted)
