"""Rules: the `x-kubernetes-validations` of a schema, asked of an object and what it was before.

Promises what kube-apiserver does: a rule that reads `oldSelf` is asked only where there is an old value to compare
with (or says itself that it need not be); a rule that is broken by what has not changed is let pass; one that cannot be
worked out refuses the object. Rules are compiled when first asked, which is when a CRD is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from kedge.api.openapi.model import Raw, Schema
from kedge.embedded.custom import causes, types
from kedge.embedded.custom.cel import BadExpression, Failed, Program, compiled
from kedge.embedded.custom.correlation import NOTHING, item, member, unchanged
from kedge.embedded.custom.paths import PathError, below
from kedge.kube.errors import Cause

Kept: TypeAlias = Callable[[], bool]

_LONGEST_MESSAGE = 5 * 1024
_OPTIONAL = "cel.bind(oldSelf, __had ? optional.of(__old) : optional.none(), {})"


class BadRule(ValueError):
    """A rule that is no rule: which part of it, and why."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part = part


class Rule:
    """One rule of one schema node."""

    def __init__(self, schema: Schema, raw: Raw, *, is_root: bool) -> None:
        self._schema = schema
        self._raw = raw
        own = types.of(schema, is_root=is_root) or types.DYN
        self._optional = bool(raw.get("optionalOldSelf"))
        source = str(raw.get("rule", ""))
        plain = _program("rule", source, {"self": own, "oldSelf": types.DYN if self._optional else own}, "bool")
        self.uses_old = "oldSelf" in plain.uses
        asks = {"self": own, "__old": types.DYN, "__had": types.CelType("bool")}
        self._program = compiled(_OPTIONAL.format(source), asks, binds=True) if self._optional else plain
        said = str(raw.get("messageExpression", "")).strip()
        self._said = _program("messageExpression", said, {"self": own, "oldSelf": own}, "string") if said else None
        ways = [*plain.reads, *(self._said.reads if self._said else ())]
        self._needs = types.needs(schema, [way[1:] for way in ways if way[0] in ("self", "oldSelf")])
        self._at = _relative(schema, str(raw.get("fieldPath", "")))

    def broken(self, value: Any, old: Any, path: str) -> Cause | None:
        """What the rule says against a value; nothing if it holds, or does not apply."""
        had = old is not NOTHING and old is not None
        if self.uses_old and not had and not self._optional:
            return None
        data = self._data(value, old, had=had)
        try:
            holds = self._program.value(data)
        except Failed as failure:
            return self._failed(str(failure), path)
        return None if holds is True else self._refusal(value, path, self._detail(data))

    def _data(self, value: Any, old: Any, *, had: bool) -> dict[str, Any]:
        needed = types.cut(value, self._needs)
        data = {"self": types.converted(self._schema, needed)}
        if had and (self.uses_old or self._said):
            before = types.aligned(self._schema, needed, types.cut(old, self._needs))
            data["oldSelf"] = types.converted(self._schema, before)
        if self._optional:
            data |= {"__had": had, "__old": data.get("oldSelf")}
        return data

    def _failed(self, why: str, path: str) -> Cause:
        kind = self._schema.type
        if why.startswith("no such overload"):
            said = f"'{why}': call arguments did not match a supported operator, function or macro signature for rule"
            return causes.invalid(path, kind, f"{said}: {self._name()}")
        return causes.invalid(path, kind, f"{why} evaluating rule: {self._name()}")

    def _refusal(self, value: Any, path: str, detail: str) -> Cause:
        field = f"{path}.{self._at}".removeprefix(".") if self._at else path
        whole = self._schema.type in ("object", "array")
        match self._raw.get("reason"):
            case "FieldValueForbidden":
                return causes.forbidden(field, detail)
            case "FieldValueRequired":
                return causes.missing(field or causes.NOWHERE, detail)
            case "FieldValueDuplicate" if whole:
                return Cause(field or causes.NOWHERE, "Duplicate value", "FieldValueDuplicate")
            case "FieldValueDuplicate":
                return causes.duplicate(field, value)
        return causes.broken(field, detail) if whole else causes.invalid(field, value, detail)

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


def problems(schema: Schema, value: Any, old: Any = NOTHING) -> list[Cause]:
    """What the rules of a kind say against an object, and what it was."""
    return list(_asked(_Place(schema, "", is_root=True), value, old, _kept(schema, value, old, _never)))


def rules_of(schema: Schema, *, is_root: bool) -> tuple[Rule, ...]:
    """The rules of one node. Raises `BadRule` for one that does not compile."""
    return schema.once(_root_rules if is_root else _own_rules)


def has_rules(schema: Schema) -> bool:
    """Whether there is any rule, here or below."""
    below = [*schema.properties.values(), schema.values, schema.items]
    return bool(schema.rules) or any(one is not None and one.once(has_rules) for one in below)


def _own_rules(schema: Schema) -> tuple[Rule, ...]:
    return tuple(Rule(schema, raw, is_root=False) for raw in schema.rules)


def _root_rules(schema: Schema) -> tuple[Rule, ...]:
    return tuple(Rule(schema, raw, is_root=True) for raw in schema.rules)


class _Place(Struct, frozen=True):
    """A node of the schema, and where it stands in the object."""

    schema: Schema
    path: str
    is_root: bool = False

    def member(self, name: str) -> _Place | None:
        below = self.schema.at(name)
        if below is None:
            return None
        at = f"{self.path}.{name}".removeprefix(".") if name in self.schema.properties else f"{self.path}[{name}]"
        return _Place(below, at, is_root=below.is_object)


def _asked(place: _Place, value: Any, old: Any, kept: Kept) -> Iterator[Cause]:
    """The rules of a place and of all below it; `kept` says whether what is wrong here was so before."""
    schema = place.schema
    if value is None or not schema.once(has_rules):
        return
    if schema.rules:
        for rule in rules_of(schema, is_root=place.is_root):
            cause = rule.broken(value, old, place.path)
            if cause is not None and (rule.uses_old or not kept()):
                yield cause
    if isinstance(value, dict):
        for name, one in value.items():
            if (below := place.member(name)) is not None and below.schema.once(has_rules):
                before = member(schema, value, old, name)
                yield from _asked(below, one, before, _kept(below.schema, one, before, kept))
    elif isinstance(value, list) and schema.items is not None:
        for index, one in enumerate(value):
            below = _Place(schema.items, f"{place.path}[{index}]", is_root=schema.items.is_object)
            before = item(schema, old, one)
            yield from _asked(below, one, before, _kept(schema.items, one, before, kept))


def _kept(schema: Schema, value: Any, old: Any, around: Kept) -> Kept:
    """Whether a value is unchanged; one that correlates with nothing is, if what is around it is."""
    return around if old is NOTHING else lambda: unchanged(schema, value, old)


def _never() -> bool:
    return False


def _program(part: str, source: str, variables: Mapping[str, types.CelType], wanted: str) -> Program:
    lead = "messageExpression " if part == "messageExpression" else ""
    try:
        program = compiled(source, variables)
    except BadExpression as error:
        raise BadRule(part, f"{lead}compilation failed: {error}") from None
    if program.type != wanted:
        what = "messageExpression must evaluate to a string" if lead else "cel expression must evaluate to a bool"
        raise BadRule(part, what)
    return program


def _relative(schema: Schema, path: str) -> str:
    """Where a rule points, from its own node."""
    try:
        return below(schema, path)[0] if path else ""
    except PathError:
        return ""
