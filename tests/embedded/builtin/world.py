"""A server's surroundings, and its write path, as far as the rules of built-in kinds go: no storing, no metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kedge.api.openapi.builtin import schema_of
from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.builtin.rules_by_kind import RULES_BY_KIND
from kedge.embedded.kind import Kind
from kedge.embedded.kind_rules import NO_RULES, KindRules
from kedge.embedded.schema.builtin_decoding import decode_struct
from kedge.embedded.schema.zero_values import with_zero_values
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

HERE = Path(__file__).parent
KINDS = {(kind.resource.api_version, kind.resource.kind): kind for kind in BUILT_IN}
NOW = "2024-01-01T00:00:00Z"


class Context:
    """Other objects, by resource; names end in `xxxxx`."""

    def __init__(self, *objects: Untyped) -> None:
        self._objects = objects

    def find(self, resource: Resource, namespace: str, name: str) -> Untyped | None:
        found = (obj for obj in self.each(resource, namespace) if obj["metadata"]["name"] == name)
        return next(found, None)

    def each(self, resource: Resource, namespace: str = "") -> Iterator[Untyped]:
        kind = (resource.api_version, resource.kind)
        for obj in self._objects:
            inside = not namespace or obj["metadata"].get("namespace") == namespace
            if inside and (obj["apiVersion"], obj["kind"]) == kind:
                yield obj

    def name(self, prefix: str) -> str:
        return f"{prefix}xxxxx"

    def now(self) -> str:
        return NOW


def documents(file: str, **words: str) -> list[Any]:
    """The documents of a file beside this one, with some words replaced."""
    text = (HERE / file).read_text()
    for word, instead in words.items():
        text = text.replace(word, instead)
    return list(yaml.load_all(text, yaml.CSafeLoader))


def kind_of(obj: Untyped) -> Kind:
    return KINDS[obj["apiVersion"], obj["kind"]]


def rules_of(obj: Untyped) -> KindRules:
    resource = kind_of(obj).resource
    return RULES_BY_KIND.get((resource.group, resource.kind), NO_RULES)


def made(obj: Untyped, context: Context) -> Untyped:
    """What becomes of a manifest that is posted."""
    rules = rules_of(obj)
    named = {**obj, "metadata": {**obj["metadata"], "uid": "u"}}
    begun = rules.prepare_new(rules.with_defaults(read_as_sent(named)), context)
    return with_zero_values(_schema(obj), begun)


def changed(old: Untyped, new: Untyped, context: Context) -> Untyped:
    """What becomes of an object that is replaced."""
    rules = rules_of(old)
    kept = {**new, "status": old["status"]} if kind_of(old).status and "status" in old else new
    renewed = rules.allocate_changed(old, rules.prepare_changed(old, rules.with_defaults(read_as_sent(kept))), context)
    return with_zero_values(_schema(new), renewed)


def read_as_sent(obj: Untyped) -> Untyped:
    """The object as it is read before any rule sees it."""
    return decode_struct(_schema(obj), obj).obj


def _schema(obj: Untyped) -> Schema:
    resource = kind_of(obj).resource
    return schema_of(resource.group, resource.version, resource.kind)


def problems(obj: Untyped, old: Untyped | None = None) -> list[Cause]:
    """What is wrong with an object, or with making it of the old one."""
    rules = rules_of(obj)
    return [*rules.problems(obj), *(rules.update_problems(old, obj) if old else ())]


def merged(target: Any, patch: Any) -> Any:
    """The target after a merge patch."""
    if not isinstance(patch, dict):
        return patch
    kept = {} if not isinstance(target, dict) else {k: v for k, v in target.items() if patch.get(k, v) is not None}
    return {**kept, **{k: merged(kept.get(k), v) for k, v in patch.items() if v is not None}}
