"""Whatever the types can hold comes back from the wire as it went."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from api.builtin import BUILT_IN
from api.properties import MOMENTS
from kedge.api.crds import KINDS
from kedge.api.schema import unwrap

TEXT = st.text(max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(-(2**63), 2**63 - 1),
    bool: st.booleans(),
    datetime: MOMENTS,
    Any: ANYTHING,
    frozenset((int, str)): st.integers(0, 100) | TEXT,
}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of ours."""
    bare, _ = unwrap(annotation)
    if bare in SIMPLE:
        return SIMPLE[bare]
    if isinstance(bare, type) and issubclass(bare, Struct):
        return st.deferred(lambda: objects(bare))
    if isinstance(bare, type) and issubclass(bare, Enum):
        return st.sampled_from(list(bare))
    arguments = get_args(bare)
    if get_origin(bare) is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    return st.dictionaries(TEXT, values(arguments[1]), max_size=2)


def objects(kind: type[Struct]) -> st.SearchStrategy[Any]:
    """Any object of a kind; fields that may be left out often are."""
    required = {field.name: values(field.type) for field in fields(kind) if not may_be_absent(field)}
    optional = {field.name: values(field.type) for field in fields(kind) if may_be_absent(field)}
    return st.fixed_dictionaries(required, optional=optional).map(lambda content: kind(**content))


def may_be_absent(field: FieldInfo) -> bool:
    return field.default is not NODEFAULT or field.default_factory is not NODEFAULT


@pytest.mark.parametrize("kind", [*KINDS, *BUILT_IN])
def test_every_object_comes_back_as_it_went_also_with_fields_unknown_here(kind: Any) -> None:
    @given(objects(kind))
    def comes_back(value: Any) -> None:
        text = msgspec.json.encode(value)
        assert msgspec.json.decode(text, type=kind) == value
        newer = msgspec.json.decode(text) | {"apiVersion": "v9", "kind": "X", "novelty": {"a": [None, 1.5]}}
        assert msgspec.json.decode(msgspec.json.encode(newer), type=kind) == value

    comes_back()
