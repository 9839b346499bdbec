"""CEL rules: the `x-kubernetes-validations` of a schema, evaluated on an object and its old state.

As in kube-apiserver: a rule that reads `oldSelf` is evaluated only where there is an old value (unless it says
`optionalOldSelf`); a rule that is broken by unchanged values is let pass; one that cannot be evaluated refuses the
object. Rules are compiled when first needed, which is when a CRD is accepted. The CEL engine does not know schemas:
`check_types` refuses what the schema does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from kedge.api import cel as engine
from kedge.api.cel import BadExpression
from kedge.api.cel_budget import Failed
from kedge.api.openapi.model import Raw, Schema
from kedge.embedded.custom import cel_types, go_causes
from kedge.embedded.custom.cel_type_check import CheckedExpression, check_types
from kedge.embedded.custom.cel_types import CelType
from kedge.embedded.custom.jsonpath import PathError, schema_at
from kedge.embedded.custom.ratcheting import NO_OLD_VALUE, old_item, old_member, unchanged
from kedge.kube.errors import Cause

__all__ = ["BadExpression", "CelProgram", "CelRule", "Failed", "compile_expression"]

_TYPED = {"bool": "BOOL", "bytes": "BYTES", "double": "DOUBLE", "int": "INT", "string": "STRING"}


class CelProgram:
    """One expression, ready to be evaluated, and what is known of it."""

    def __init__(self, program: engine.Program, examined: CheckedExpression) -> None:
        self._program = program
        self.type = examined.type
        self.uses = examined.uses
        self.reads = examined.reads

    def value(self, data: Mapping[str, Any]) -> Any:
        """The result."""
        return self._program.value(data)


def compile_expression(source: str, variables: Mapping[str, CelType], *, binds: bool = False) -> CelProgram:
    """Compile an expression. Refuses what does not compile, or reads what the schema does not have.

    `binds` lets it use `cel.bind`, which rules in Kubernetes cannot.
    """
    env = engine.environment(tuple((name, _declared(found)) for name, found in variables.items()), binds=binds)
    expression = engine.compile_in(env, source)
    examined = check_types(expression.serialize(), variables)
    if examined.problems:
        raise BadExpression("\n".join(_located(source, at, why) for at, why in sorted(examined.problems)))
    if examined.rewritten is not None:
        expression = env.deserialize(examined.rewritten)
    return CelProgram(engine.Program(expression), examined)


def _declared(found: CelType) -> str:
    """The type of a variable as the compiler knows it; `check_types` adds the fields of objects."""
    if found.name in ("list", "map"):
        return found.name.upper()
    return _TYPED.get(found.name, "DYN")


def _located(source: str, at: int, why: str) -> str:
    """A problem as the compiler shows one: the line, and a pointer to the column."""
    before = source[:at]
    line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1)
    shown = source.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {why}\n | {shown}\n | {'.' * column}^"


Unchanged: TypeAlias = Callable[[], bool]

_LONGEST_MESSAGE = 5 * 1024
_OPTIONAL = "cel.bind(oldSelf, __had ? optional.of(__old) : optional.none(), {})"


class BadRule(ValueError):
    """A rule that does not compile: which part of it, and why."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part = part


class CelRule:
    """One rule of one schema node."""

    def __init__(self, schema: Schema, raw: Raw, *, is_root: bool) -> None:
        self._schema = schema
        self._raw = raw
        own = cel_types.cel_type_of(schema, is_root=is_root) or cel_types.DYN
        self._optional = bool(raw.get("optionalOldSelf"))
        source = str(raw.get("rule", ""))
        plain = _program("rule", source, {"self": own, "oldSelf": cel_types.DYN if self._optional else own}, "bool")
        self.uses_old = "oldSelf" in plain.uses
        asks = {"self": own, "__old": cel_types.DYN, "__had": cel_types.CelType("bool")}
        self._program = compile_expression(_OPTIONAL.format(source), asks, binds=True) if self._optional else plain
        said = str(raw.get("messageExpression", "")).strip()
        self._said = _program("messageExpression", said, {"self": own, "oldSelf": own}, "string") if said else None
        ways = [*plain.reads, *(self._said.reads if self._said else ())]
        self._needs = cel_types.needed_members(schema, [way[1:] for way in ways if way[0] in ("self", "oldSelf")])
        self._at = _field_path(schema, str(raw.get("fieldPath", "")))

    def broken(self, value: Any, old: Any, path: str) -> Cause | None:
        """The cause if the rule is broken; None if it holds or does not apply."""
        had = old is not NO_OLD_VALUE and old is not None
        if self.uses_old and not had and not self._optional:
            return None
        data = self._data(value, old, had=had)
        try:
            holds = self._program.value(data)
        except Failed as failure:
            return self._failed(str(failure), path)
        return None if holds is True else self._refusal(value, path, self._detail(data))

    def _data(self, value: Any, old: Any, *, had: bool) -> dict[str, Any]:
        needed = cel_types.reduce_to(value, self._needs)
        data = {"self": cel_types.cel_value(self._schema, needed)}
        if had and (self.uses_old or self._said):
            before = cel_types.in_order_of(self._schema, needed, cel_types.reduce_to(old, self._needs))
            data["oldSelf"] = cel_types.cel_value(self._schema, before)
        if self._optional:
            data |= {"__had": had, "__old": data.get("oldSelf")}
        return data

    def _failed(self, why: str, path: str) -> Cause:
        kind = self._schema.type
        if why.startswith("no such overload"):
            said = f"'{why}': call arguments did not match a supported operator, function or macro signature for rule"
            return go_causes.invalid_value(path, kind, f"{said}: {self._name()}")
        return go_causes.invalid_value(path, kind, f"{why} evaluating rule: {self._name()}")

    def _refusal(self, value: Any, path: str, detail: str) -> Cause:
        field = f"{path}.{self._at}".removeprefix(".") if self._at else path
        whole = self._schema.type in ("object", "array")
        match self._raw.get("reason"):
            case "FieldValueForbidden":
                return go_causes.forbidden(field, detail)
            case "FieldValueRequired":
                return go_causes.required_value(field or go_causes.NO_FIELD, detail)
            case "FieldValueDuplicate" if whole:
                return Cause(field or go_causes.NO_FIELD, "Duplicate value", "FieldValueDuplicate")
            case "FieldValueDuplicate":
                return go_causes.duplicate_value(field, value)
        return (
            go_causes.invalid_without_value(field, detail) if whole else go_causes.invalid_value(field, value, detail)
        )

    def _detail(self, data: Mapping[str, Any]) -> str:
        if self._said is not None:
            try:
                said = str(self._said.value(data)).strip()
            except Failed:
                said = ""
            if said and "\n" not in said and len(said.encode()) <= _LONGEST_MESSAGE:
                return said
        return self._name() if self._raw.get("message") else f"failed rule: {self._name()}"

    def _name(self) -> str:
        return str(self._raw.get("message") or self._raw.get("rule", "")).strip()


def rule_problems(schema: Schema, value: Any, old: Any = NO_OLD_VALUE) -> list[Cause]:
    """The causes of all rules of a kind that an object breaks."""
    return list(_evaluated(_SchemaNode(schema, "", is_root=True), value, old, _kept(schema, value, old, _never)))


def rules_of(schema: Schema, *, is_root: bool) -> tuple[CelRule, ...]:
    """The rules of one node. Raises `BadRule` for one that does not compile."""
    return schema.once(_root_rules if is_root else _own_rules)


def has_rules(schema: Schema) -> bool:
    """Whether there is any rule, here or below."""
    below = [*schema.properties.values(), schema.values, schema.items]
    return bool(schema.rules) or any(one is not None and one.once(has_rules) for one in below)


def _own_rules(schema: Schema) -> tuple[CelRule, ...]:
    return tuple(CelRule(schema, raw, is_root=False) for raw in schema.rules)


def _root_rules(schema: Schema) -> tuple[CelRule, ...]:
    return tuple(CelRule(schema, raw, is_root=True) for raw in schema.rules)


class _SchemaNode(Struct, frozen=True):
    """A node of the schema, and where it stands in the object."""

    schema: Schema
    path: str
    is_root: bool = False

    def member(self, name: str) -> _SchemaNode | None:
        below = self.schema.at(name)
        if below is None:
            return None
        at = f"{self.path}.{name}".removeprefix(".") if name in self.schema.properties else f"{self.path}[{name}]"
        return _SchemaNode(below, at, is_root=below.is_object)


def _evaluated(node: _SchemaNode, value: Any, old: Any, kept: Unchanged) -> Iterator[Cause]:
    """Evaluate the rules of a node and of all below it; `kept` says whether the value here is unchanged."""
    schema = node.schema
    if value is None or not schema.once(has_rules):
        return
    if schema.rules:
        for rule in rules_of(schema, is_root=node.is_root):
            cause = rule.broken(value, old, node.path)
            if cause is not None and (rule.uses_old or not kept()):
                yield cause
    if isinstance(value, dict):
        for name, one in value.items():
            if (below := node.member(name)) is not None and below.schema.once(has_rules):
                before = old_member(schema, value, old, name)
                yield from _evaluated(below, one, before, _kept(below.schema, one, before, kept))
    elif isinstance(value, list) and schema.items is not None:
        for index, one in enumerate(value):
            below = _SchemaNode(schema.items, f"{node.path}[{index}]", is_root=schema.items.is_object)
            before = old_item(schema, old, one)
            yield from _evaluated(below, one, before, _kept(schema.items, one, before, kept))


def _kept(schema: Schema, value: Any, old: Any, around: Unchanged) -> Unchanged:
    """Whether a value is unchanged; one without an old value is, if its parent is."""
    return around if old is NO_OLD_VALUE else lambda: unchanged(schema, value, old)


def _never() -> bool:
    return False


def _program(part: str, source: str, variables: Mapping[str, cel_types.CelType], wanted: str) -> CelProgram:
    lead = "messageExpression " if part == "messageExpression" else ""
    try:
        program = compile_expression(source, variables)
    except BadExpression as error:
        raise BadRule(part, f"{lead}compilation failed: {error}") from None
    if program.type != wanted:
        what = "messageExpression must evaluate to a string" if lead else "cel expression must evaluate to a bool"
        raise BadRule(part, what)
    return program


def _field_path(schema: Schema, path: str) -> str:
    """Where a rule points, from its own node."""
    try:
        return schema_at(schema, path)[0] if path else ""
    except PathError:
        return ""
