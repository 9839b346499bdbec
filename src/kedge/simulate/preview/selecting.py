"""Selecting: which placements select what changes, on a hub that serves what an embedded one does, and custom kinds."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.twins import CLUSTER, NAMESPACED
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.kube.codec import Untyped
from kedge.plan.selecting.candidates import candidate
from kedge.plan.selecting.custom import custom_kinds
from kedge.plan.selecting.kinds import Catalogue, Kind
from kedge.plan.selecting.selectors import Meaning, meaning, tokens_of
from kedge.simulate.preview.picture import group_in


def catalogue_of(definitions: Iterable[Untyped]) -> Catalogue:
    """What is served: the kinds built in, and these."""
    built_in = [Kind(one.resource, followed=not one.is_review) for one in BUILT_IN]
    custom = [kind for one in definitions for kind in custom_kinds(msgspec.convert(one, CustomResourceDefinition))]
    return Catalogue([*built_in, *custom])


def meaning_of(placement: Untyped, catalogue: Catalogue) -> Meaning:
    """What a placement's selectors mean; nothing, if it cannot be read."""
    twins = NAMESPACED if placement["metadata"].get("namespace") else CLUSTER
    try:
        return meaning(msgspec.convert(placement, twins.placement), catalogue)
    except msgspec.ValidationError:
        return Meaning()


def selecting(placements: Iterable[Untyped], changed: Iterable[Untyped], catalogue: Catalogue) -> list[Untyped]:
    """Those of the placements that select, or may select, something that changes."""
    tokens = {token for one in changed for token in _tokens(one, catalogue)}
    return [one for one in placements if tokens & set(meaning_of(one, catalogue).tokens())]


def _tokens(obj: Untyped, catalogue: Catalogue) -> Iterable[tuple[str, ...]]:
    kind = catalogue.find(group_in(obj), str(obj["apiVersion"]).rpartition("/")[2], obj["kind"])
    return () if kind is None else tokens_of(kind.resource, candidate(kind.resource, obj))
