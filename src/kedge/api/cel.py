"""CEL: expressions that users write, compiled once and evaluated often, with Kubernetes' own functions in them.

    program = compiled("self.status.ready == self.spec.wanted", {"self": "DYN"})
    program.value({"self": {...}})

The engine is imported when the first expression is compiled: who has no rules never loads it. What does not compile is
refused with the compiler's own words (`BadExpression`); what cannot be worked out, such as a member that is missing,
raises `Failed` with the words kube-apiserver uses.

The engine itself counts no costs, but an expression that goes over more than 10,000 items fails, and Kubernetes' own
functions have a budget for each evaluation. That is enough for rules that only those write who may change an API; for
expressions of anybody else there is `cel_metered`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kedge.api import cel_library
from kedge.api.cel_budget import Budget, Failed, TooCostly

if TYPE_CHECKING:
    from cel_expr_python import cel

_NO_OVERLOAD = "no such overload"
_paying: list[Budget] = [Budget()]  # of the evaluation that runs: there is one at a time
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


class Program:
    """One expression, ready to be evaluated."""

    def __init__(self, expression: cel.Expression) -> None:
        self._expression = expression

    @property
    def type(self) -> str:
        """What it comes to, by the name of the CEL type: BOOL, or DYN if that is not known before."""
        return str(self._expression.return_type().name())

    def value(self, data: Mapping[str, Any]) -> Any:
        """What it comes to."""
        _paying[:] = [Budget()]
        try:
            found = self._expression.eval(data=data)
        except RuntimeError as error:
            raise Failed(_worded(str(error))) from None
        plain = found.value()
        if type(plain) is not bool and found.type().name() == "ERROR":
            raise Failed(_worded(str(plain)))
        return plain


def compiled(source: str, variables: Mapping[str, str]) -> Program:
    """The program of an expression over variables, each with the name of its CEL type."""
    return Program(compile_in(environment(tuple(variables.items())), source))


def compile_in(env: cel.Env, source: str) -> cel.Expression:
    """The expression as the engine has it."""
    try:
        return env.compile(source)
    except RuntimeError as error:
        raise BadExpression(_compiler_words(str(error))) from None


@lru_cache(maxsize=256)
def environment(variables: tuple[tuple[str, str], ...], *, binds: bool = False) -> cel.Env:
    """What expressions are compiled in. `binds` lets them use `cel.bind`, which rules in Kubernetes cannot."""
    from cel_expr_python import cel  # noqa: PLC0415 - heavy, and most processes never need it
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # noqa: PLC0415

    declared = {name: _type(found) for name, found in variables}
    known = [ext_strings.ExtStrings(2), ext_optional.ExtOptional(), *([ext_bindings.ExtBindings()] if binds else ())]
    return cel.NewEnv(variables=declared, extensions=[*known, cel.CelExtension("kubernetes", _functions())])


def _functions() -> list[cel.FunctionDecl]:
    from cel_expr_python import cel  # noqa: PLC0415

    overloads: dict[str, list[cel.Overload]] = {}
    for index, (name, is_method, parameters, result, act) in enumerate(cel_library.rows()):
        taken = [_type(one.upper()) for one in parameters]
        overload = cel.Overload(f"kubernetes_{index}", _type(result.upper()), taken, is_method, _plainly(act))
        overloads.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, found) for name, found in overloads.items()]


def _plainly(act: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose errors are values to the engine only if they are ValueErrors."""

    def safe(*arguments: Any) -> Any:
        try:
            return act(_paying[0], *arguments)
        except (Failed, TooCostly) as error:
            raise ValueError(str(error)) from None
        except (TypeError, KeyError, ArithmeticError):
            raise ValueError(_NO_OVERLOAD) from None

    return safe


def _type(name: str) -> cel.Type:
    from cel_expr_python import cel  # noqa: PLC0415

    found: cel.Type = getattr(cel.Type, name)
    return found


def _worded(text: str) -> str:
    for pattern, words in _WORDS:
        if pattern.match(text):
            return pattern.sub(words, text, count=1)
    return text


def _compiler_words(text: str) -> str:
    return text.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
