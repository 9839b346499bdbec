"""Mutants: every small change of a module that its tests should notice, generated from its syntax.

A mutant replaces one piece of the source: a comparison by the one beside it, `and` by `or`, a condition by True or
False, a number by the next, a result by an empty one, a statement by nothing. What only people or the type checker read
is left alone: annotations, docstrings, prose (also all of an f-string), assertions, decorators; and the fields of
classes.

Its name says where it is and what it changes, without a line number: `module:function: before -> after`. So it stays
the same while the code around it changes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

SOURCE = Path(__file__).parents[2] / "src"

_COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
_ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.Mult(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_EMPTY = {"bool": ("True", "False"), "str": ('""',), "int": ("0",), "tuple": ("()",)}
_CODE = re.compile(r"[A-Za-z][\w./:-]*")
_LONGEST = 90
TOP = "<module>"


class Mutant(Struct, frozen=True):
    """One change: what stands between two offsets of the module's source is replaced."""

    module: str
    function: str
    """The outermost function or method it is in; `<module>` outside of all."""
    start: int
    end: int
    after: str
    change: str
    """What it changes, in words of the source: a number with the expression around it."""
    number: int = 1
    """Of those that change the same, which."""

    @property
    def name(self) -> str:
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.module}:{self.function}: {self.change}{again}"

    def applied_to(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        old, new = (text.decode().splitlines(keepends=True) for text in (source, self.applied_to(source)))
        file = str(path_of(self.module).relative_to(SOURCE.parent))
        return "".join(unified_diff(old, new, file, file, n=2))


def path_of(module: str) -> Path:
    place = SOURCE.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def source_of(module: str) -> bytes:
    """As it was when it was first asked for: a run goes on with that if the file changes meanwhile."""
    return path_of(module).read_bytes()


def modules_in(package: str) -> list[str]:
    """The modules of a package, or the module of this name."""
    if path_of(package).name != "__init__.py":
        return [package]
    files = sorted(path_of(package).parent.rglob("*.py"))
    return [".".join(each.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for each in files]


def mutants_of(module: str, source: bytes | None = None) -> tuple[Mutant, ...]:
    """All mutants of a module, in the order of its source."""
    text = source_of(module) if source is None else source
    found = _Finding(module, text)
    found.visit(ast.parse(text))
    numbers: Counter[str] = Counter()
    made = []
    for mutant in sorted(found.mutants, key=lambda each: (each.start, each.end)):
        numbers[mutant.name] += 1
        made.append(replace(mutant, number=numbers[mutant.name]))
    return tuple(made)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


class _Finding(ast.NodeVisitor):
    """Walks a module and notes what can be changed where."""

    def __init__(self, module: str, source: bytes) -> None:
        self.mutants: list[Mutant] = []
        self._module = module
        self._source = source
        self._lines = [0, *(at + 1 for at, byte in enumerate(source) if byte == ord("\n"))]
        self._around: list[ast.AST] = []
        self._classes: list[str] = []
        self._function = ""
        self._empty: tuple[str, ...] = ("None",)

    # Where it is

    def visit(self, node: ast.AST) -> None:
        self._around.append(node)
        super().visit(node)
        self._around.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes.append(node.name)
        self._each([each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)])
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, empty = self._function, self._empty
        self._function = outer or ".".join((*self._classes, node.name))
        self._empty = _empty_of(node.returns)
        self._each([*node.args.defaults, *(each for each in node.args.kw_defaults if each), *node.body])
        self._function, self._empty = outer, empty

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def _each(self, nodes: Sequence[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    # What is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Prose."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """An invariant for readers and the type checker."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        self._replace(node, "pass")
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass")
        if changed := _ARITHMETIC.get(type(node.op)):
            self._replace(node, ast.unparse(ast.AugAssign(node.target, changed, node.value)))
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if ast.unparse(node.targets[0]) == "__all__":
            return
        if all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets):
            self._replace(node, "pass")
        self.visit(node.value)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        if not isinstance(node.value, ast.Constant):
            for empty in self._empty:
                self._replace(node.value, empty)
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self._decided(node.test, "True", "False")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._decided(node.test, "True", "False")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._decided(node.test, "False")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._decided(test, "True")
        self.generic_visit(node)

    def _decided(self, test: ast.expr, *answers: str) -> None:
        if not isinstance(test, ast.Constant):
            for answer in answers:
                self._replace(test, answer)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            if changed := _COMPARISONS.get(type(operator)):
                operators = [*node.ops[:place], changed, *node.ops[place + 1 :]]
                self._replace(node, ast.unparse(ast.Compare(node.left, operators, node.comparators)))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, f"({ast.unparse(ast.BoolOp(changed, node.values))})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._replace(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if changed := _ARITHMETIC.get(type(node.op)):
            self._replace(node, f"({ast.unparse(ast.BinOp(node.left, changed, node.right))})")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _CALLS:
            self._replace(node, ast.unparse(ast.Call(ast.Name(_CALLS[name]), node.args, node.keywords)))
        if name == "sorted":
            self._replace(node, f"{ast.unparse(node)}[::-1]")
        if name == "zip":
            self._each(node.args)  # `strict` asserts
        elif name not in ("cast", "TypeVar"):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool():
                self._replace(node, str(not node.value))
            case int():
                self._replace(node, str(node.value + 1))
                if node.value:
                    self._replace(node, str(node.value - 1))
            case str() if _CODE.fullmatch(node.value):
                self._replace(node, repr(f"{node.value}_"))

    def _replace(self, node: ast.expr | ast.stmt, after: str) -> None:
        start, end = self._range(node)
        shown = self._range(self._shown_with(node))
        old = self._source[shown[0] : shown[1]]
        new = self._source[shown[0] : start] + after.encode() + self._source[end : shown[1]]
        if old != new:
            change = f"{_short(old.decode())} -> {_short(new.decode())}"
            self.mutants.append(Mutant(self._module, self._function or TOP, start, end, after, change))

    def _shown_with(self, node: ast.expr | ast.stmt) -> ast.AST:
        """What shows the reader which one is meant: of a number, the expression it is in."""
        around = self._around[-2] if isinstance(node, ast.Constant) and not isinstance(node.value, str) else node
        is_short = (
            isinstance(around, ast.expr | ast.keyword | ast.Assign | ast.AnnAssign)
            and len(ast.unparse(around)) <= _LONGEST
        )
        return around if is_short else node

    def _range(self, node: Any) -> tuple[int, int]:
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return self._lines[line - 1] + column


def _empty_of(returns: ast.expr | None) -> tuple[str, ...]:
    """What stands for nothing in a function that returns this."""
    return _EMPTY.get(ast.unparse(returns).split("[")[0], ("None",)) if returns is not None else ("None",)
