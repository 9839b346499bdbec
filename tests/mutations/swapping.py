"""Swapping: a mutant takes the place of the code that is running, without importing anything anew.

The module is run once more, changed, beside the one that everybody has imported; then the function that everybody holds
gets the code of the changed one. A constant is exchanged in every module that holds it, and the tables that other
modules have made of it are made again.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from mutations.mutants import TOP, Mutant, source_of


def swap_in(mutant: Mutant) -> None:
    """From now on, this process runs the mutant."""
    old = sys.modules[mutant.module]
    changed = mutant.applied_to(source_of(mutant.module))
    new = _run(old, changed)
    if mutant.function == TOP:
        names = constants(mutant, changed)
        again = [*_made_of(mutant.module, names)]
        for name in names:
            for holder in _holders(mutant.module, name):
                setattr(holder, name, new[name])
        for user, statement in again:
            exec(compile(ast.Module([statement], []), str(user.__file__), "exec"), vars(user))
        return
    target, source = _found(vars(old), mutant.function), _found(new, mutant.function)
    target.__code__, target.__defaults__ = source.__code__, source.__defaults__
    target.__kwdefaults__ = source.__kwdefaults__


def _run(module: ModuleType, source: bytes) -> dict[str, Any]:
    names = {"__name__", "__file__", "__package__", "__spec__", "__builtins__"}
    fresh = {name: value for name, value in vars(module).items() if name in names}
    exec(compile(source, str(module.__file__), "exec", dont_inherit=True), fresh)
    return fresh


def _found(names: Any, path: str) -> FunctionType:
    """The function behind properties, class methods and caches."""
    for part in path.split("."):
        held = names[part]
        names = getattr(held, "__dict__", {})
    if clear := getattr(held, "cache_clear", None):
        clear()
    for way in ("fget", "func", "__func__", "__wrapped__"):
        held = getattr(held, way, held)
    if not isinstance(held, FunctionType):
        raise SystemExit(f"{path} is {held!r}, in whose place no mutant can be put")
    return held


def users_of(mutant: Mutant) -> set[str]:
    """The modules in which a constant shows: those that have it, and those that have made something of it."""
    names = constants(mutant, mutant.applied_to(source_of(mutant.module)))
    holders = {each.__name__ for name in names for each in _holders(mutant.module, name)}
    return holders | {user.__name__ for user, _ in _made_of(mutant.module, names)}


def _made_of(module: str, names: set[str]) -> Iterator[tuple[ModuleType, ast.stmt]]:
    """The constants of other modules that are made of these: `LIMITS = {**data.LIMITS}`."""
    owner = sys.modules[module]
    for user in list(sys.modules.values()):
        if user is owner or not str(getattr(user, "__name__", "")).startswith("kedge."):
            continue
        held = {name for name in names if vars(user).get(name, sys) is vars(owner)[name]}
        parts = {f"{alias}.{name}" for alias, value in vars(user).items() if value is owner for name in names}
        for statement in ast.parse(source_of(user.__name__)).body if held or parts else ():
            used = {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, ast.Name | ast.Attribute)}
            if isinstance(statement, ast.Assign | ast.AnnAssign) and used & (held | parts):
                yield user, statement


def _holders(module: str, name: str) -> list[ModuleType]:
    """The modules that have this constant of a module: its own, and those that import it by name."""
    value = vars(sys.modules[module])[name]
    return [each for each in list(sys.modules.values()) if getattr(each, "__dict__", {}).get(name, sys) is value]


def constants(mutant: Mutant, source: bytes) -> set[str]:
    """The constants that differ: the one that is changed, and those of its module that are made from it."""
    found: set[str] = set()
    for statement in ast.parse(source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names = {node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)}
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        begins = _offset(source, statement.lineno, statement.col_offset)
        ends = _offset(source, statement.end_lineno or 0, statement.end_col_offset or 0)
        if names and (begins <= mutant.start < ends or used & found):
            found |= names
    return found


def _offset(source: bytes, line: int, column: int) -> int:
    return sum(map(len, source.splitlines(keepends=True)[: line - 1])) + column
