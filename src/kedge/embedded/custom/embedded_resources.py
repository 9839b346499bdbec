"""Embedded resources: objects inside objects (`x-kubernetes-embedded-resource`).

They need an apiVersion and a kind; their metadata, if any, is validated like all metadata. Unknown members of it are
dropped when the object is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kedge.api.openapi.model import Schema
from kedge.embedded.custom import go_causes
from kedge.embedded.naming import is_finalizer, key_problems, name_problems, value_problems
from kedge.kube.errors import Cause

KIND_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_KIND = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def embedded_problems(schema: Schema | None, value: Any, path: str = "") -> Iterator[Cause]:
    """What is wrong with the objects inside a value."""
    if schema is None or not schema.once(_embeds):
        return
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from embedded_problems(schema.items, one, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.is_object:
            yield from embedded_object_problems(value, path)
        for key, one in value.items():
            known = key in schema.properties
            below = f"{path}.{key}".removeprefix(".") if known else f"{path}[{key}]"
            yield from embedded_problems(schema.at(key), one, below)


def embedded_object_problems(obj: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with one object inside another."""
    at = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if name not in obj:
            yield go_causes.required_value(f"{at}{name}")
    if "apiVersion" in obj:
        yield from _api_version(obj["apiVersion"], f"{at}apiVersion")
    if "kind" in obj:
        yield from _kind(obj["kind"], f"{at}kind")
    if "metadata" in obj:
        yield from _metadata(obj["metadata"], f"{at}metadata")


def dns_1035_label_problems(name: str) -> list[str]:
    """What is wrong with a name that begins with a letter: a DNS-1035 label."""
    found = ["must be no more than 63 characters"] if len(name) > 63 else []
    return found if _KIND.fullmatch(name) else [*found, KIND_RULE]


def _api_version(value: Any, path: str) -> Iterator[Cause]:
    if not isinstance(value, str):
        yield go_causes.invalid_value(path, value, "must be a string")
    elif not value:
        yield go_causes.invalid_value(path, value, "must not be empty")
    elif value.count("/") > 1:
        yield go_causes.invalid_value(path, value, f"unexpected GroupVersion string: {value}")


def _kind(value: Any, path: str) -> Iterator[Cause]:
    if not isinstance(value, str):
        yield go_causes.invalid_value(path, value, "must be a string")
    elif not value:
        yield go_causes.invalid_value(path, value, "must not be empty")
    elif wrong := dns_1035_label_problems(value.lower()):
        yield go_causes.invalid_value(
            path, value, f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        )


def _metadata(metadata: Any, path: str) -> Iterator[Cause]:
    if not isinstance(metadata, dict):
        yield go_causes.invalid_value(path, metadata, "must be an object")
        return
    for problem in name_problems(metadata.get("name") or "fakename", "path"):
        yield go_causes.invalid_value(f"{path}.name", metadata["name"], problem)
    for key, value in (metadata.get("labels") or {}).items():
        yield from (go_causes.invalid_value(f"{path}.labels", key, problem) for problem in key_problems(key))
        yield from (go_causes.invalid_value(f"{path}.labels", value, problem) for problem in value_problems(str(value)))
    for key in metadata.get("annotations") or {}:
        yield from (
            go_causes.invalid_value(f"{path}.annotations", key, problem) for problem in key_problems(key.lower())
        )
    for index, name in enumerate(metadata.get("finalizers") or []):
        if not is_finalizer(str(name)):
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield go_causes.invalid_value(f"{path}.finalizers[{index}]", name, why)


def _embeds(schema: Schema) -> bool:
    below = [*schema.properties.values(), schema.values, schema.items]
    return schema.is_object or any(one is not None and one.once(_embeds) for one in below)
