"""CEL: expressions over values with a schema, compiled once and evaluated often.

    program = compiled("self.replicas <= self.max", variables={"self": types.of(schema)})
    program.value({"self": {...}})

The engine is imported when the first expression is compiled: a server whose CRDs have no rules never loads it. What
does not compile is refused with the compiler's own words (`BadExpression`); what cannot be worked out, such as a member
that is missing, raises `Failed` with the words kube-apiserver uses. Costs are not counted: there is no budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kedge.embedded.custom import library
from kedge.embedded.custom.expressions import Examined, examine
from kedge.embedded.custom.types import CelType

if TYPE_CHECKING:
    from cel_expr_python import cel

_TYPED = {"bool": "BOOL", "bytes": "BYTES", "double": "DOUBLE", "int": "INT", "string": "STRING"}
_NO_OVERLOAD = "no such overload"
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'NOT_FOUND: Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r".*Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
    (
        re.compile(r".*(No matching overloads found|Applying SELECT to non-message|Invalid container type).*"),
        _NO_OVERLOAD,
    ),
    (re.compile(r".*: divide by zero.*"), "division by zero"),
    (re.compile(r".*: modulus by zero.*"), "modulus by zero"),
    (re.compile(r"^[A-Z_]+: (.*)$", re.DOTALL), r"\1"),
)


class BadExpression(ValueError):
    """An expression that does not compile, with the places and reasons."""


class Failed(Exception):
    """An expression that cannot be worked out for these values."""


class Program:
    """One expression, ready to be evaluated."""

    def __init__(self, expression: cel.Expression, examined: Examined) -> None:
        self._expression = expression
        self.type = examined.type
        self.uses = examined.uses
        self.reads = examined.reads

    def value(self, data: Mapping[str, Any]) -> Any:
        """What it comes to."""
        try:
            found = self._expression.eval(data=data)
        except RuntimeError as error:
            raise Failed(_worded(str(error))) from None
        plain = found.value()
        if type(plain) is not bool and found.type().name() == "ERROR":
            raise Failed(_worded(str(plain)))
        return plain


def compiled(source: str, variables: Mapping[str, CelType], *, binds: bool = False) -> Program:
    """The program of an expression. Refuses what does not compile, or asks for what the schema does not have.

    `binds` lets it use `cel.bind`, which rules in Kubernetes cannot.
    """
    env = _environment(tuple((name, _declared(found)) for name, found in variables.items()), binds)
    try:
        expression = env.compile(source)
    except RuntimeError as error:
        raise BadExpression(_compiler_words(str(error))) from None
    examined = examine(expression.serialize(), variables)
    if examined.problems:
        raise BadExpression("\n".join(_located(source, at, why) for at, why in sorted(examined.problems)))
    if examined.rewritten is not None:
        expression = env.deserialize(examined.rewritten)
    return Program(expression, examined)


@lru_cache(maxsize=256)
def _environment(variables: tuple[tuple[str, str], ...], binds: bool) -> cel.Env:
    from cel_expr_python import cel  # noqa: PLC0415 - heavy, and most servers never need it
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # noqa: PLC0415

    declared = {name: _type(found) for name, found in variables}
    known = [ext_strings.ExtStrings(2), ext_optional.ExtOptional(), *([ext_bindings.ExtBindings()] if binds else ())]
    return cel.NewEnv(variables=declared, extensions=[*known, cel.CelExtension("kubernetes", _functions())])


def _functions() -> list[cel.FunctionDecl]:
    from cel_expr_python import cel  # noqa: PLC0415

    overloads: dict[str, list[cel.Overload]] = {}
    for index, (name, is_method, parameters, result, act) in enumerate(library.rows()):
        taken = [_type(one.upper()) for one in parameters]
        overload = cel.Overload(f"kubernetes_{index}", _type(result.upper()), taken, is_method, _plainly(act))
        overloads.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, found) for name, found in overloads.items()]


def _plainly(act: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose errors are values to the engine only if they are ValueErrors."""

    def safe(*arguments: Any) -> Any:
        try:
            return act(*arguments)
        except (TypeError, KeyError, ArithmeticError):
            raise ValueError(_NO_OVERLOAD) from None

    return safe


def _type(name: str) -> cel.Type:
    from cel_expr_python import cel  # noqa: PLC0415

    found: cel.Type = getattr(cel.Type, name)
    return found


def _declared(found: CelType) -> str:
    """What the compiler is told of a variable; what it cannot know of objects, `examine` adds."""
    if found.name in ("list", "map"):
        return found.name.upper()
    return _TYPED.get(found.name, "DYN")


def _worded(text: str) -> str:
    for pattern, words in _WORDS:
        if pattern.match(text):
            return pattern.sub(words, text, count=1)
    return text


def _compiler_words(text: str) -> str:
    return text.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")


def _located(source: str, at: int, why: str) -> str:
    """A problem as the compiler shows one: the line it is in, and a pointer to the place."""
    before = source[:at]
    line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1)
    shown = source.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {why}\n | {shown}\n | {'.' * column}^"
