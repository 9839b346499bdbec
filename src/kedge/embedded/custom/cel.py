"""CEL over values with a schema: what the schema does not have is refused when a rule is compiled.

    program = compiled("self.replicas <= self.max", variables={"self": types.of(schema)})
    program.value({"self": {...}})

The engine knows nothing of schemas; what it cannot tell, `examine` adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.api import cel as engine
from kedge.api.cel import BadExpression
from kedge.api.cel_budget import Failed
from kedge.embedded.custom.expressions import Examined, examine
from kedge.embedded.custom.types import CelType

__all__ = ["BadExpression", "Failed", "Program", "compiled"]

_TYPED = {"bool": "BOOL", "bytes": "BYTES", "double": "DOUBLE", "int": "INT", "string": "STRING"}


class Program:
    """One expression, ready to be evaluated, and what is known of it."""

    def __init__(self, program: engine.Program, examined: Examined) -> None:
        self._program = program
        self.type = examined.type
        self.uses = examined.uses
        self.reads = examined.reads

    def value(self, data: Mapping[str, Any]) -> Any:
        """What it comes to."""
        return self._program.value(data)


def compiled(source: str, variables: Mapping[str, CelType], *, binds: bool = False) -> Program:
    """The program of an expression. Refuses what does not compile, or asks for what the schema does not have.

    `binds` lets it use `cel.bind`, which rules in Kubernetes cannot.
    """
    env = engine.environment(tuple((name, _declared(found)) for name, found in variables.items()), binds=binds)
    expression = engine.compile_in(env, source)
    examined = examine(expression.serialize(), variables)
    if examined.problems:
        raise BadExpression("\n".join(_located(source, at, why) for at, why in sorted(examined.problems)))
    if examined.rewritten is not None:
        expression = env.deserialize(examined.rewritten)
    return Program(engine.Program(expression), examined)


def _declared(found: CelType) -> str:
    """What the compiler is told of a variable; what it cannot know of objects, `examine` adds."""
    if found.name in ("list", "map"):
        return found.name.upper()
    return _TYPED.get(found.name, "DYN")


def _located(source: str, at: int, why: str) -> str:
    """A problem as the compiler shows one: the line it is in, and a pointer to the place."""
    before = source[:at]
    line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1)
    shown = source.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {why}\n | {shown}\n | {'.' * column}^"
