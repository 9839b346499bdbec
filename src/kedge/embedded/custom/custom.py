"""Custom: how objects of one version of a custom kind are completed, checked and converted.

    custom = Custom(schema, scale=…)
    custom.complete(obj)                    # defaults, after pruning
    custom.problems(obj, old)               # causes, in kube-apiserver's order; `old` for an update
    custom.status_problems(obj, old)        # of a write to /status

Pure, made once per schema and shared by every server of the process (`kinds`). Metadata is judged elsewhere, by the
rules of all kinds; what was found there decides whether rules can still be asked, so it is passed in as `already`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kedge.api.openapi.model import Schema
from kedge.embedded.custom import causes, defaults, embedding, lists, rules
from kedge.embedded.custom.correlation import NOTHING
from kedge.embedded.custom.validating import Shape
from kedge.embedded.kind import Scale
from kedge.embedded.naming import is_finalizer
from kedge.embedded.rules import Untyped
from kedge.embedded.schema import pruning
from kedge.kube.errors import Cause

_MOST_REPLICAS = 2**31 - 1
_GO_TYPES = {bool: "bool", dict: "map[string]interface {}", float: "float64", list: "[]interface {}", str: "string"}


class Custom:
    """One version of one custom kind."""

    def __init__(self, schema: Schema, *, scale: Scale | None = None) -> None:
        self.schema = schema
        self._scale = scale
        self._shape = Shape(schema)
        status = schema.properties.get("status")
        self._status = Shape(status) if status is not None else None

    def complete(self, obj: Untyped, known: Untyped | None = None) -> Untyped:
        """The object with what its schema fills in; the same one if nothing was missing.

        `known` is one that is complete, whose members need no second look where the object has the very same.
        """
        found: Untyped = defaults.completed(self.schema, obj, known)
        return found

    def pruned(self, obj: Untyped) -> Untyped:
        """The object without what its schema does not name."""
        found: Untyped = pruning.pruned(self.schema, obj).obj
        return found

    def problems(self, obj: Untyped, old: Untyped | None = None, *, already: Sequence[Cause] = ()) -> list[Cause]:
        """What is wrong with an object beside its metadata; what was so before and has not changed is let pass."""
        was = NOTHING if old is None else old
        found = self._shape.problems(obj, was)
        found += [*self._scale_problems(obj, "wanted"), *self._scale_problems(obj, "there")]
        found += embedding.problems(self.schema, obj)
        found += self._duplicates(obj, old)
        return [*found, *self._rule_problems(obj, was, [*already, *found])]

    def status_problems(self, obj: Untyped, old: Untyped, *, already: Sequence[Cause] = ()) -> list[Cause]:
        """What is wrong with an object after a write to its status."""
        found: list[Cause] = []
        if "status" in obj and self._status is not None:
            found = self._status.problems(obj["status"], old.get("status", NOTHING), field="status")
        found += self._scale_problems(obj, "there")
        found += self._duplicates(obj, old)
        return [*found, *self._rule_problems(obj, old, [*already, *found])]

    def warnings(self, obj: Untyped, old: Untyped | None = None) -> Iterator[str]:
        """What the writer of an object should know: new finalizers that may be anybody's."""
        known = (old or {"metadata": {}})["metadata"].get("finalizers", ())
        for name in sorted({*obj["metadata"].get("finalizers", ())} - {*known}):
            if not is_finalizer(name):
                how = " including a path (/)" if "." in name else ""
                said = (
                    f"prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer"
                )
                yield f'metadata.finalizers: "{name}": {said} writers'

    def _duplicates(self, obj: Untyped, old: Untyped | None) -> list[Cause]:
        found = list(lists.duplicates(self.schema, obj))
        if found and old is not None and any(lists.duplicates(self.schema, old)):
            return []
        return found

    def _rule_problems(self, obj: Untyped, old: Any, found: Sequence[Cause]) -> list[Cause]:
        if not self.schema.once(rules.has_rules):
            return []
        if any(map(causes.is_blocking, found)):
            return [causes.invalid("", None, causes.UNCHECKED)]
        return rules.problems(self.schema, obj, old)

    def _scale_problems(self, obj: Untyped, part: str) -> Iterator[Cause]:
        if self._scale is None:
            return
        path = self._scale.wanted if part == "wanted" else self._scale.there
        value = _at(obj, path)
        if value is None:
            return
        if type(value) is not int:
            shown = value if isinstance(value, str) else causes.compact(value)
            kind = _GO_TYPES.get(type(value), "nil")
            why = f".{path} accessor error: {shown} is of the type {kind}, expected int64"
            yield causes.invalid(f".{path}", 0, why)
        elif value < 0:
            yield causes.invalid(f".{path}", value, "should be a non-negative integer")
        elif value > _MOST_REPLICAS:
            yield causes.invalid(f".{path}", value, f"should be less than or equal to {_MOST_REPLICAS}")


def _at(obj: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj
