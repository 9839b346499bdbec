"""Markers: what a type says of its own CRD, beside the field it is about.

    heartbeat_period_seconds: Annotated[int, Schema(minimum=1, maximum=600, default=60, format="int32")] = 60

A field may carry several `Schema`s. One with `versions` or `dialect` speaks only there, and what it says replaces what
those before it said, word by word; None takes a word back. Markers are inert: msgspec does not enforce them when
reading, because an object the server has accepted must stay readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from kedge.api.dialect import Dialect


class Edition(Struct, frozen=True):
    """One version of a CRD in one dialect."""

    version: str
    dialect: Dialect


class Rule(Struct, frozen=True):
    """A CEL expression that must hold, and what to tell the user when it does not.

    A rule that mentions `oldSelf` holds for updates only.
    """

    cel: str
    message: str


Count: TypeAlias = int | UnsetType | None
Text: TypeAlias = str | UnsetType | None
Flag: TypeAlias = bool | UnsetType | None


class Schema(Struct, frozen=True, kw_only=True):
    """What must hold of a value, beyond its type."""

    minimum: Count = UNSET
    maximum: Count = UNSET
    min_length: Count = UNSET
    max_length: Count = UNSET
    min_items: Count = UNSET
    max_items: Count = UNSET
    min_properties: Count = UNSET
    max_properties: Count = UNSET
    pattern: Text = UNSET
    format: Text = UNSET
    enum: tuple[str, ...] | UnsetType | None = UNSET
    """For a version that knows fewer values than the Python type does."""
    default: Any = UNSET
    nullable: Flag = UNSET
    rules: tuple[Rule, ...] | UnsetType | None = UNSET
    list_type: Literal["atomic", "set", "map"] | UnsetType | None = UNSET
    list_map_keys: tuple[str, ...] | UnsetType | None = UNSET
    map_type: Literal["atomic", "granular"] | UnsetType | None = UNSET
    preserve_unknown_fields: Flag = UNSET
    embedded_resource: Flag = UNSET
    required: Flag = UNSET
    """Unless said, a field is required if its Python attribute has no default."""
    absent: Flag = UNSET
    """The field does not exist here."""

    versions: tuple[str, ...] = ()
    """The versions this is said of; empty means all."""
    dialect: Dialect | None = None
    """The dialect this is said of; None means both."""

    def speaks_of(self, edition: Edition) -> bool:
        """Whether this holds in that edition."""
        return (not self.versions or edition.version in self.versions) and self.dialect in (None, edition.dialect)


def said_of(edition: Edition, markers: Iterable[Schema]) -> Mapping[str, Any]:
    """What the markers say together in an edition: word → value. Later ones win."""
    words: dict[str, Any] = {}
    for marker in markers:
        if marker.speaks_of(edition):
            words |= {word: value for word, value in asdict(marker).items() if value is not UNSET}
    return {word: value for word, value in words.items() if value is not None and word not in ("versions", "dialect")}


class Column(Struct, frozen=True):
    """A column of `kubectl get`. `wide` ones show with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    versions: tuple[str, ...] = ()
    dialect: Dialect | None = None

    def shows_in(self, edition: Edition) -> bool:
        """Whether this column exists in that edition."""
        return (not self.versions or edition.version in self.versions) and self.dialect in (None, edition.dialect)


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Version(Struct, frozen=True):
    """A version of a kind. Exactly one of a kind's versions is stored."""

    name: str
    storage: bool = False
    served: bool = True
    deprecation_warning: str | None = None


class Scale(Struct, frozen=True):
    """Where the scale subresource finds its numbers."""

    spec_replicas: str
    status_replicas: str
    selector: str | None = None


class Definition(Struct, frozen=True, kw_only=True):
    """What a kind's CRD holds beside its schema: the class attribute `definition` of a kind."""

    versions: tuple[Version, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    status: bool = False
    """Status is written through a subresource of its own."""
    scale: Scale | None = None
    schema: tuple[Schema, ...] = ()
    """Said of the object as a whole."""


def condition_column(
    name: str,
    condition: str,
    field: str = "status",
    *,
    wide: bool = False,
    versions: tuple[str, ...] = (),
    dialect: Dialect | None = None,
) -> Column:
    """A column that shows one field of one condition."""
    path = f'.status.conditions[?(@.type=="{condition}")].{field}'
    return Column(name, path, wide=wide, versions=versions, dialect=dialect)
