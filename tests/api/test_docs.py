"""The sentences below a type's fields."""

from __future__ import annotations

import pytest
from msgspec import Struct

from kedge.api.schema import field_docs, first_paragraph


class Base(Struct):
    """A base."""

    kept: int = 0
    """From the base."""
    changed: int = 0
    """Said by the base."""


class Derived(Base):
    """Derived."""

    changed: int = 1
    """Said again."""
    silent: int = 0


def test_docs_of_base_classes_count_unless_said_again() -> None:
    assert field_docs(Derived) == {"kept": "From the base.", "changed": "Said again."}


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, ""), ("", ""), ("One.", "One."), ("One\n    line.\n\n    Two.", "One line.")],
)
def test_the_first_paragraph_is_taken_on_one_line(text: str | None, expected: str) -> None:
    assert first_paragraph(text) == expected
