"""CRD schema: what is wrong with the schema of a CRD, beyond not being structural.

Keywords that CRDs may not have, lists whose keys cannot tell items apart, defaults that do not match, rules that do not
compile. Gives the causes kube-apiserver gives, but for the cost of rules, which is not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.openapi.model import Raw, Schema
from kedge.embedded.custom import cel_rules, embedded_resources, go_causes, structural_schema
from kedge.embedded.custom.jsonpath import PathError, schema_at
from kedge.embedded.custom.ratcheting import identical
from kedge.embedded.custom.schema_validation import SchemaValidator
from kedge.embedded.go_text import GoStruct
from kedge.embedded.schema import pruning
from kedge.kube.errors import Cause

_TYPES = ["array", "boolean", "integer", "number", "object", "string"]
_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_OF_OBJECTS = ("metadata", "kind", "apiVersion")
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_RULES = "x-kubernetes-validations"


class _ParentContext(Struct, frozen=True):
    """What a node inherits from its parents."""

    schema: Schema | None = None  # the node itself, where rules can be compiled
    no_defaults: str = ""  # why it may have none
    in_metadata: bool = False
    uncorrelated: str = ""  # where old and new cannot be told apart any more

    def down(self, schema: Schema | None) -> _ParentContext:
        return replace(self, schema=schema)


def problems(schema: Raw, path: str, *, has_status: bool) -> list[Cause]:
    """What is wrong with the whole schema of a version."""
    found = [*_root_problems(schema, path, has_status=has_status)]
    shape = structural_schema.problems(schema, path)
    fills = [] if shape else list(_default_problems(Schema(schema), path))
    whole = None if shape or fills else Schema(schema)
    words, compiling = _node(schema, path, _ParentContext(schema=whole), is_root=True)
    return [*found, *shape, *fills, *words, *compiling]


def _root_problems(schema: Raw, path: str, *, has_status: bool) -> Iterator[Cause]:
    if has_status and schema.get("type") != "object" and schema.get("type"):
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield go_causes.invalid_value(f"{path}.type", schema["type"], why)
    elif has_status and any(
        schema.get(word) not in (None, False, "", [], {}) and not _at_root(word) for word in schema
    ):
        why = f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield go_causes.invalid_value(path, schema, why)
    if schema.get("nullable"):
        yield go_causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def _at_root(word: str) -> bool:
    named = {"x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", _RULES: "XValidations"}
    return named.get(word, word[:1].upper() + word[1:]) in _AT_ROOT.split()


# Defaults


def _default_problems(schema: Schema, path: str) -> Iterator[Cause]:
    if schema.raw.get("default") is not None:
        yield from _default(schema, f"{path}.default")
    if schema.items is not None:
        yield from _default_problems(schema.items, f"{path}.items")
    for name, one in schema.properties.items():
        yield from _default_problems(one, f"{path}.properties[{name}]")


def _default(schema: Schema, path: str) -> Iterator[Cause]:
    value = schema.raw["default"]
    if not identical(_pruned(schema, value), value):
        yield go_causes.invalid_value(path, value, "must not have unknown fields")
    embedded = [
        Cause(f"{path}.{one.field}", one.message, one.reason)
        for one in embedded_resources.embedded_problems(schema, value)
    ]
    problems_found = embedded or SchemaValidator(schema).problems(value, field=path)
    if problems_found or not schema.once(cel_rules.has_rules):
        yield from problems_found
        return
    try:
        broken = cel_rules.rule_problems(schema, value, value) or cel_rules.rule_problems(schema, value)
    except cel_rules.BadRule:
        return  # said where the rule stands
    yield from (
        replace(one, field=path if one.field == go_causes.NO_FIELD else f"{path}.{one.field}") for one in broken
    )


def _pruned(schema: Schema, value: object) -> object:
    """A default as it would be stored in an object."""
    around = Schema({"type": "object", "properties": {"x": schema.raw}})
    return pruning.pruned(around, {"x": value}).obj["x"]


# Words


def _node(schema: Raw, path: str, around: _ParentContext, *, is_root: bool = False) -> tuple[list[Cause], list[Cause]]:
    """What is wrong with the words of a node and of those below, and with their rules."""
    found, compiling = [*_own_words(schema, path, around)], list[Cause]()
    for one, at, state in _below(schema, path, around, is_root=is_root):
        words, late = _node(one, at, state)
        found += words
        compiling += late
    found += [*_kubernetes_words(schema, path), *_rule_words(schema, path)]
    if not found and around.schema is not None:
        compiling += _compiling(around.schema, path, around, is_root=is_root)
    return found, compiling


def _own_words(schema: Raw, path: str, around: _ParentContext) -> Iterator[Cause]:
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield go_causes.unsupported_value(f"{path}.type", kind, _TYPES)
    if around.no_defaults and schema.get("default") is not None:
        yield go_causes.forbidden(f"{path}.default", f"must not be set {around.no_defaults}")
    for word in _UNSUPPORTED:
        if schema.get(word):
            yield go_causes.forbidden(f"{path}.{word}", f"{word} is not supported")
    if kind == "null":
        yield go_causes.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield go_causes.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if around.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield go_causes.forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield go_causes.forbidden(f"{path}.uniqueItems", why)
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        why = "additionalProperties and properties are mutual exclusive"
        yield go_causes.forbidden(f"{path}.additionalProperties", why)


def _below(
    schema: Raw, path: str, around: _ParentContext, *, is_root: bool
) -> Iterator[tuple[Raw, str, _ParentContext]]:
    """The nodes below one, where they stand, and what holds there."""
    own = around.schema
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        why = "inside additionalProperties applying to object metadata"
        state = replace(around, no_defaults=why) if around.in_metadata else around
        yield values, f"{path}.additionalProperties", state.down(own and own.values)
    is_object = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, one in schema.get("properties", {}).items():
        state = around
        if is_object and name in _OF_OBJECTS:
            forbids = f"in top-level {name}" if is_root else around.no_defaults
            state = replace(around, in_metadata=True, no_defaults=forbids)
        yield one, f"{path}.properties[{name}]", state.down(own and own.properties[name])
    if isinstance(schema.get("not"), dict):
        yield schema["not"], f"{path}.not", around.down(None)
    for word in ("allOf", "oneOf", "anyOf"):
        for index, one in enumerate(schema.get(word, ())):
            yield one, f"{path}.{word}[{index}]", around.down(None)
    if isinstance(schema.get("items"), dict):
        lost = around.uncorrelated or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        yield schema["items"], f"{path}.items", replace(around, uncorrelated=lost).down(own and own.items)


def _kubernetes_words(schema: Raw, path: str) -> Iterator[Cause]:
    kind, word = schema.get("type", ""), "x-kubernetes-preserve-unknown-fields"
    if schema.get(word) is False:
        yield go_causes.invalid_value(f"{path}.{word}", False, "must be true or undefined")
    yield from _container(schema, path, "x-kubernetes-map-type", "object", ["atomic", "granular"])
    yield from _container(schema, path, "x-kubernetes-list-type", "array", ["atomic", "set", "map"])
    of_list = schema.get("x-kubernetes-list-type")
    if schema.get("x-kubernetes-list-map-keys") and of_list != "map":
        at, why = f"{path}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
        yield go_causes.invalid_value(at, of_list, why) if of_list else go_causes.required_value(at, why)
    if of_list == "set" and kind == "array":
        yield from _set_items(schema.get("items") or {}, f"{path}.items")
    if of_list == "map":
        yield from _keys(schema, path)
    if of_list in ("set", "map") and isinstance(schema.get("items"), dict):
        yield from _item_words(schema, str(of_list), path)


def _container(schema: Raw, path: str, word: str, wanted: str, known: list[str]) -> Iterator[Cause]:
    value, kind = schema.get(word), schema.get("type", "")
    if value is None:
        return
    if kind != wanted:
        why = f"must be {wanted} if {word} is specified"
        yield (
            go_causes.invalid_value(f"{path}.type", kind, why)
            if kind
            else go_causes.required_value(f"{path}.type", why)
        )
    if value not in known:
        yield go_causes.unsupported_value(f"{path}.{word}", value, known)


def _set_items(items: Raw, path: str) -> Iterator[Cause]:
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        yield go_causes.invalid_value(f"{path}.x-kubernetes-list-type", items["x-kubernetes-list-type"], why)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield go_causes.invalid_value(f"{path}.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), why)


def _keys(schema: Raw, path: str) -> Iterator[Cause]:
    keys, items = schema.get("x-kubernetes-list-map-keys", []), schema.get("items")
    word = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield go_causes.required_value(word, "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        yield go_causes.required_value(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type", "") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield go_causes.invalid_value(f"{path}.items.type", items.get("type", ""), why)
        return
    for index, key in enumerate(keys):
        member = items.get("properties", {}).get(key)
        if member is None:
            yield go_causes.invalid_value(word, keys, "entries must all be names of item properties")
        elif member.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield go_causes.invalid_value(f"{path}.items.properties[{key}].type", items["type"], why)
        if key in keys[:index]:
            yield go_causes.invalid_value(word, keys, "must not contain duplicate entries")


def _item_words(schema: Raw, of_list: str, path: str) -> Iterator[Cause]:
    items = schema["items"]
    if items.get("nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {of_list}"
        yield go_causes.forbidden(f"{path}.items.nullable", why)
    for key in schema.get("x-kubernetes-list-map-keys", []) if of_list == "map" else []:
        member = items.get("properties", {}).get(key)
        if member is None:
            continue
        at, about = f"{path}.items.properties[{key}]", "this property is in x-kubernetes-list-map-keys, so it"
        if key not in items.get("required", []) and member.get("default") is None:
            yield go_causes.required_value(f"{at}.default", f"{about} must have a default or be a required property")
        if member.get("nullable"):
            yield go_causes.forbidden(f"{at}.nullable", f"{about} cannot be nullable")


# Rules


def _rule_words(schema: Raw, path: str) -> Iterator[Cause]:
    for index, rule in enumerate(schema.get(_RULES, ())):
        at = f"{path}.{_RULES}[{index}]"
        yield from _rule_texts(rule, at)
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield go_causes.unsupported_value(f"{at}.reason", rule["reason"], _REASONS)
        if points := str(rule.get("fieldPath", "")):
            yield from _rule_path(schema, points, f"{at}.fieldPath")


def _rule_texts(rule: Raw, at: str) -> Iterator[Cause]:
    text, message = str(rule.get("rule", "")), str(rule.get("message", ""))
    if not text.strip():
        yield go_causes.required_value(f"{at}.rule", "rule is not specified")
    elif message and not message.strip():
        yield go_causes.invalid_value(f"{at}.message", message, "must be non-empty if specified")
    elif _has_lines(message.strip()):
        yield go_causes.invalid_value(f"{at}.message", message, "must not contain line breaks")
    elif _has_lines(text.strip()) and not message.strip():
        yield go_causes.required_value(f"{at}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not str(rule["messageExpression"]).strip():
        yield go_causes.required_value(f"{at}.messageExpression", "messageExpression must be non-empty if specified")


def _rule_path(schema: Raw, points: str, at: str) -> Iterator[Cause]:
    if not points.strip():
        yield go_causes.invalid_value(at, points, "must be non-empty if specified")
    if _has_lines(points):
        yield go_causes.invalid_value(at, points, "must not contain line breaks")
    try:
        schema_at(Schema(schema), points)
    except PathError:
        yield go_causes.invalid_value(at, points, "must be a valid path")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _compiling(schema: Schema, path: str, around: _ParentContext, *, is_root: bool) -> Iterator[Cause]:
    """What the compiler says to the rules of a node."""
    is_object = is_root or schema.is_object
    for index, raw in enumerate(schema.rules):
        at = f"{path}.{_RULES}[{index}]"
        try:
            rule = cel_rules.CelRule(schema, raw, is_root=is_object)
        except cel_rules.BadRule as error:
            yield go_causes.invalid_value(f"{at}.{error.part}", _as_go_has_it(raw), str(error))
            continue
        if rule.uses_old and around.uncorrelated:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {around.uncorrelated}"
            yield go_causes.invalid_value(f"{at}.rule", raw["rule"], why)
        elif not rule.uses_old and raw.get("optionalOldSelf") is not None:
            why = "may not be set if oldSelf is not used in rule"
            yield go_causes.invalid_value(f"{at}.optionalOldSelf", raw["optionalOldSelf"], why)


def _as_go_has_it(raw: Raw) -> GoStruct:
    return GoStruct(
        Rule=raw.get("rule", ""),
        Message=raw.get("message", ""),
        MessageExpression=raw.get("messageExpression", ""),
        Reason=raw.get("reason"),
        FieldPath=raw.get("fieldPath", ""),
        OptionalOldSelf=raw.get("optionalOldSelf"),
    )
