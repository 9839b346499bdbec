"""Label selectors: which objects are meant, by their labels.

As in Kubernetes: no selector (None) selects nothing, an empty one everything, and all parts of one must hold. An
invalid selector is an error whatever the labels are, so that it is found on the first look and not on some later one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from msgspec import field

from kedge.api.markers import Schema
from kedge.api.meta import Value

_NAME = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class InvalidSelector(ValueError):
    """A label selector that means nothing."""


class Operator(StrEnum):
    """How a label is held against values."""

    in_ = "In"
    not_in = "NotIn"
    exists = "Exists"
    does_not_exist = "DoesNotExist"


class LabelSelectorRequirement(Value, frozen=True, gc=False):
    """One thing that must hold of a label."""

    key: str
    """The label's key."""
    operator: str
    """How the label is held against the values: In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[str, ...], Schema(list_type="atomic")] = ()
    """The values of In and NotIn; the other operators take none."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether this holds of these labels. An object without the label satisfies NotIn."""
        match self.checked_operator():
            case Operator.in_:
                return labels.get(self.key) in self.values
            case Operator.not_in:
                return labels.get(self.key) not in self.values
            case Operator.exists:
                return self.key in labels
            case Operator.does_not_exist:
                return self.key not in labels

    def checked_operator(self) -> Operator:
        """The operator, if the whole requirement is valid; else InvalidSelector."""
        if self.operator not in tuple(Operator):
            raise InvalidSelector(f"operator {self.operator!r} is none of {', '.join(Operator)}")
        operator = Operator(self.operator)
        needs_values = operator in (Operator.in_, Operator.not_in)
        if needs_values != bool(self.values):
            raise InvalidSelector(
                f"operator {operator} on {self.key!r} takes {'some' if needs_values else 'no'} values"
            )
        check_key(self.key)
        for value in self.values:
            check_value(value)
        return operator


class LabelSelector(Value, frozen=True, gc=False):
    """Which objects are meant, by their labels. Empty means all of them."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels an object must carry with exactly these values."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Schema(list_type="atomic")] = ()
    """What else must hold of an object's labels."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether everything holds of these labels. Raises InvalidSelector if it means nothing."""
        parts = [requirement.matches(labels) for requirement in self.match_expressions]
        for key, value in self.match_labels.items():
            check_key(key)
            check_value(value)
            parts.append(labels.get(key) == value)
        return all(parts)


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector that may be absent selects these labels. An absent one selects nothing."""
    return selector is not None and selector.matches(labels)


@lru_cache(maxsize=4096)
def check_key(key: str) -> None:
    """Refuse what cannot be the key of a label."""
    prefix, slash, name = key.rpartition("/")
    good_prefix = not slash or (len(prefix) <= 253 and _PREFIX.fullmatch(prefix))
    if not (good_prefix and _NAME.fullmatch(name)):
        raise InvalidSelector(
            f"{key!r} cannot be a label's key: up to 63 letters, digits, '-', '_' or '.', a DNS name before a '/'"
        )


@lru_cache(maxsize=4096)
def check_value(value: str) -> None:
    """Refuse what cannot be the value of a label."""
    if value and not _NAME.fullmatch(value):
        raise InvalidSelector(f"{value!r} cannot be a label's value: up to 63 letters, digits, '-', '_' or '.'")
