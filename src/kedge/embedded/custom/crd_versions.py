"""CRD versions: what is wrong with the versions of a CRD, one by one and together.

Kubernetes keeps once, at the top, what all versions share, and names it there in its messages: the schema as
`spec.validation`, the rest under its own name. `spec.versions[0].schema` is named only where versions differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from kedge.api.openapi.model import Raw, Schema
from kedge.embedded.custom import crd_schema, go_causes
from kedge.embedded.custom.embedded_resources import dns_1035_label_problems
from kedge.embedded.custom.jsonpath import PathError, schema_at
from kedge.embedded.go_text import GoStruct
from kedge.kube.errors import Cause

_COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"]
_COLUMN_FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"]
_MOST_SELECTABLE = 8


def version_problems(sent: Sequence[Raw] | None) -> Iterator[Cause]:
    """What is wrong with each version, and with their number and names."""
    versions = sent or []
    for index, version in enumerate(versions):
        if not _schema(version):
            yield go_causes.required_value(f"spec.versions[{index}].schema.openAPIV3Schema")
    shared = {part: _same(versions, part) for part in _PARTS}
    for index, version in enumerate(versions):
        yield from _version(version, f"spec.versions[{index}]", shared)
    yield from _all_versions(sent, shared)


def shared_part_problems(versions: Sequence[Raw]) -> Iterator[Cause]:
    """What is wrong with the parts that all versions share."""
    for part, look in _PARTS.items():
        if _same(versions, part):
            with_status = next(filter(_has_status, versions), versions[0])
            yield from look({**versions[0], "subresources": with_status.get("subresources")}, "spec")


def _schema(version: Raw) -> Raw:
    found: Raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def _has_status(version: Raw) -> bool:
    return (version.get("subresources") or {}).get("status") is not None


def _same(versions: Sequence[Raw], part: str) -> bool:
    """Whether all versions have this part, and the same."""
    return bool(versions) and all(one.get(part) and one[part] == versions[0].get(part) for one in versions)


def _version(version: Raw, path: str, shared: Raw) -> Iterator[Cause]:
    if wrong := dns_1035_label_problems(version.get("name", "")):
        yield go_causes.invalid_value(f"{path}.name", version.get("name", ""), ",".join(wrong))
    warning = version.get("deprecationWarning")
    if warning is not None:
        for why in _warning(warning, is_deprecated=bool(version.get("deprecated"))):
            yield go_causes.invalid_value(f"{path}.deprecationWarning", warning, why)
    for part, look in _PARTS.items():
        if not shared[part]:
            yield from look(version, path)


def _warning(text: str, *, is_deprecated: bool) -> Iterator[str]:
    if not is_deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(text) > 256:
        yield "must be <= 256 characters long"
    if not text:
        yield "must not be an empty string"
    for index, char in enumerate(text):
        if not char.isprintable():
            said = "must only contain printable UTF-8 characters; non-printable character found at index"
            yield f"{said} {len(text[:index].encode())}"
            return


def _all_versions(sent: Sequence[Raw] | None, shared: Raw) -> Iterator[Cause]:
    versions = sent or []
    shown = None if sent is None else [_as_go_has_it(one, shared) for one in versions]
    names = [one.get("name") for one in versions]
    if len({*names}) != len(names):
        yield go_causes.invalid_value("spec.versions", shown, "must contain unique version names")
    if sum(bool(one.get("storage")) for one in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield go_causes.invalid_value("spec.versions", shown, why)
    if names and names[0] and (wrong := dns_1035_label_problems(str(names[0]))):
        yield go_causes.invalid_value("spec.version", names[0], ",".join(wrong))


def _as_go_has_it(version: Raw, shared: Raw) -> GoStruct:
    words = ("name", "served", "storage", "deprecated")
    plain = {word.capitalize(): version.get(word, False) for word in words}
    own = {part[0].upper() + part[1:]: None if shared[part] else version.get(part) for part in _PARTS}
    return GoStruct(plain | {"DeprecationWarning": version.get("deprecationWarning")} | own)


def _schemas(version: Raw, path: str) -> Iterator[Cause]:
    if schema := _schema(version):
        at = "spec.validation" if path == "spec" else f"{path}.schema"
        yield from _judged(msgspec.json.encode(schema), f"{at}.openAPIV3Schema", _has_status(version))


@lru_cache(maxsize=1024)  # a fleet has the same CRDs on every server, and to judge one takes some 15 ms
def _judged(encoded: bytes, path: str, has_status: bool) -> tuple[Cause, ...]:
    return tuple(crd_schema.problems(msgspec.json.decode(encoded), path, has_status=has_status))


def _subresources(version: Raw, path: str) -> Iterator[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for word, roots in (("specReplicasPath", ["spec"]), ("statusReplicasPath", ["status"])):
        at = f"{path}.subresources.scale.{word}"
        if not scale.get(word):
            yield go_causes.required_value(at)
        else:
            yield from _scale_path(scale[word], at, roots)
    if scale.get("labelSelectorPath"):
        at = f"{path}.subresources.scale.labelSelectorPath"
        yield from _scale_path(scale["labelSelectorPath"], at, ["spec", "status"])


def _scale_path(value: str, path: str, roots: list[str]) -> Iterator[Cause]:
    if not value.startswith("."):
        yield go_causes.invalid_value(path, value, "must be a simple json path starting with .")
    elif not value.startswith(tuple(f".{root}." for root in roots)):
        where = " or ".join(f".{root}" for root in roots)
        yield go_causes.invalid_value(
            path, value, f"should be a json path under {'either ' if len(roots) > 1 else ''}{where}"
        )


def _columns(version: Raw, path: str) -> Iterator[Cause]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or []):
        at = f"{path}.additionalPrinterColumns[{index}]"
        if not column.get("name"):
            yield go_causes.required_value(f"{at}.name")
        yield from _column_type(column, at)
        where = column.get("jsonPath", "")
        if not where:
            yield go_causes.required_value(f"{at}.JSONPath")
        elif not where.startswith("."):
            yield go_causes.invalid_value(f"{at}.JSONPath", where, "must be a simple json path starting with .")


def _column_type(column: Raw, at: str) -> Iterator[Cause]:
    kind, form = column.get("type", ""), column.get("format", "")
    known = f"must be one of {','.join(_COLUMN_TYPES)}"
    if kind not in _COLUMN_TYPES:
        yield (
            go_causes.invalid_value(f"{at}.type", kind, known)
            if kind
            else go_causes.required_value(f"{at}.type", known)
        )
    if form and form not in _COLUMN_FORMATS:
        yield go_causes.invalid_value(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")


def _selectable(version: Raw, path: str) -> Iterator[Cause]:
    seen: list[str] = []
    for index, one in enumerate(version.get("selectableFields") or []):
        at, where = f"{path}.selectableFields[{index}].jsonPath", one.get("jsonPath", "")
        if not where:
            yield go_causes.required_value(at)
            continue
        try:
            shown, found = schema_at(Schema(_schema(version)), where, quoted=False)
        except PathError as error:
            yield go_causes.invalid_value(at, where, f"is an invalid path: {error}")
            continue
        yield from _selectable_field(shown, found, where, at)
        if shown in seen:
            yield go_causes.duplicate_value(at, where)
        seen.append(shown)
    if len({*seen}) > _MOST_SELECTABLE:
        yield go_causes.too_many(f"{path}.selectableFields", len({*seen}), _MOST_SELECTABLE)


def _selectable_field(shown: str, schema: Schema, where: str, at: str) -> Iterator[Cause]:
    if shown.partition(".")[0] == "metadata":
        yield go_causes.invalid_value(at, where, "must not point to fields in metadata")
    if schema.type not in ("string", "boolean", "integer"):
        why = (
            "must point to a field of type string, boolean or integer. "
            "Enum string fields and strings with formats are allowed."
        )
        yield go_causes.invalid_value(at, where, why)


_PARTS = {
    "schema": _schemas,
    "subresources": _subresources,
    "additionalPrinterColumns": _columns,
    "selectableFields": _selectable,
}
