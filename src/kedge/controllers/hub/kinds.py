"""Kinds: which a hub serves, from what its server says and what its CustomResourceDefinitions say."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Final

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.kube.discovery import Discovery
from kedge.plan.selecting.kinds import Catalogue, Kind, kinds_of_crd

_NEEDED_VERBS: Final = ("get", "list", "watch")


def custom_names(crds: Collection[CustomResourceDefinition]) -> frozenset[tuple[str, str]]:
    """Group and plural of the kinds that are defined here."""
    return frozenset((crd.spec.group, crd.spec.names.plural) for crd in crds)


def served_kinds(
    discovery: Discovery,
    crds: Collection[CustomResourceDefinition],
    custom: Set[tuple[str, str]],
    left_out: Collection[tuple[str, str]] = (),
) -> Catalogue:
    """What the server said of its own kinds, and what CRDs say of theirs: they know sooner, also of the end.

    `custom` are the kinds that are, or were, defined by CRDs, and of which those alone are believed; `left_out` are
    kinds that stay on the hub.
    """
    built_in = [
        Kind(served.resource, served.preferred, served.can(*_NEEDED_VERBS))
        for served in discovery.kinds
        if (served.resource.group, served.resource.plural) not in custom
    ]
    return Catalogue(
        [*built_in, *(kind for crd in crds for kind in kinds_of_crd(crd))], discovery.unavailable, left_out
    )
