"""Gate: the way of one request through admission.

    gate = admission_gate(admission, info)      # None if no webhook is asked: then a write goes its way
    obj = await gate.mutate("CREATE", obj, None, accept)
    await gate.validate("CREATE", obj, None)

Knows the request: who asks, for which resource, with which options. `kind` is that of the objects, where they are not
of the request's kind: a Scale, an Eviction.
"""

from __future__ import annotations

import msgspec

from kedge.api.resource import Resource
from kedge.embedded.admission.attributes import Attributes, Operation, attributes
from kedge.embedded.admission.dispatch import Accept, Admission
from kedge.embedded.options import DeleteOptions
from kedge.embedded.request_info import RequestInfo
from kedge.kube.codec import Untyped

_META = "meta.k8s.io/v1"
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}
_SHOWN_OPTIONS = ("fieldManager", "fieldValidation")


class Gate:
    """The admission of one request."""

    def __init__(self, admission: Admission, info: RequestInfo, kind: Resource | None = None) -> None:
        self._admission = admission
        self._info = info
        self._kind = kind

    async def mutate(self, operation: Operation, obj: Untyped, old: Untyped | None, accept: Accept) -> Untyped:
        """The object as mutating webhooks want it; `accept` decodes what they make of it."""
        found = await self._admission.mutate(self._asked(operation, obj, old), accept, self._warn)
        assert found is not None, "what is given an object gives one"
        return found

    async def validate(self, operation: Operation, obj: Untyped, old: Untyped | None) -> None:
        """Refuse what a validating webhook refuses."""
        await self._admission.validate(self._asked(operation, obj, old), self._warn)

    async def delete(self, old: Untyped, options: DeleteOptions) -> None:
        """Refuse a deletion that a webhook refuses. Mutating webhooks are asked, but can change nothing."""
        asked = attributes(self._info, "DELETE", _delete_options(options), old=old)
        await self._admission.mutate(asked, lambda obj: obj, self._warn)
        await self._admission.validate(asked, self._warn)

    def _asked(self, operation: Operation, obj: Untyped, old: Untyped | None) -> Attributes:
        options = _write_options(self._info, operation)
        return attributes(self._info, operation, options, obj=obj, old=old, kind=self._kind)

    def _warn(self, text: str) -> None:
        if text not in self._info.warnings:
            self._info.warnings.append(text)


def admission_gate(admission: Admission, info: RequestInfo, kind: Resource | None = None) -> Gate | None:
    """The gate of a request; None if no webhook is asked about it."""
    return Gate(admission, info, kind) if info.asks_webhooks and admission.webhooks else None


def _write_options(info: RequestInfo, operation: Operation) -> Untyped:
    query = dict(info.request.query)
    given = {name: query[name] for name in _SHOWN_OPTIONS if query.get(name)}
    dry_run = {"dryRun": [query["dryRun"]]} if query.get("dryRun") else {}
    return {"kind": _OPTIONS[operation], "apiVersion": _META, **dry_run, **given}


def _delete_options(options: DeleteOptions) -> Untyped:
    given = {key: value for key, value in msgspec.to_builtins(options).items() if value is not None}
    preconditions = {key: value for key, value in given.pop("preconditions", {}).items() if value is not None}
    return {
        "kind": "DeleteOptions",
        "apiVersion": _META,
        **given,
        **({"preconditions": preconditions} if preconditions else {}),
    }
