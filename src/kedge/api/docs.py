"""Docs: the sentences that stand below a type's fields in its source.

Promises the same text wherever the source is installed. Refuses (OSError) where it is not, rather than
generating CRDs without descriptions.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct


def first_paragraph(text: str | None) -> str:
    """A docstring's opening, on one line; empty if there is none."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()) if text else ""


def field_docs(kind: type) -> Mapping[str, str]:
    """Attribute name → what the string below it says, those of base classes included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Struct) and base is not Struct:
            found |= _module_docs(base.__module__).get(base.__name__, {})
    return found


@cache
def _module_docs(module: str) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_attribute_docs(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _attribute_docs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, first_paragraph(text)
