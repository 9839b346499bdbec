"""Quotas: a namespace may have only so many objects of a kind (`count/deployments.apps: "2"`).

That is all of a ResourceQuota that is looked at: what pods ask for is not added up, and its status is nobody's.
"""

from __future__ import annotations

from kedge.api.numbers import Quantity
from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.statuses import forbidden
from kedge.embedded.store import Store, part

_QUOTAS = Kind(Resource("", "v1", "ResourceQuota", "resourcequotas"))


def refuse_one_more(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a new object where there may be no more of its kind."""
    word = f"count/{kind.resource.plural}" + (f".{kind.resource.group}" if kind.resource.group else "")
    for quota in store.all(_QUOTAS).at(store.number).within(f"{namespace}/"):
        limit = part(part(quota.decode(), "spec"), "hard").get(word)
        used = store.all(kind).at(store.number).count(f"{namespace}/") if limit is not None else 0
        if limit is not None and Quantity.parse(limit) < Quantity.parse(used + 1):
            why = f"exceeded quota: {quota.name}, requested: {word}=1, used: {word}={used}, limited: {word}={limit}"
            raise forbidden(kind.resource, name, why)
