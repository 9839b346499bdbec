"""Custom kinds: what a CustomResourceDefinition says the hub serves.

It is known as soon as the definition is established, before the server says so elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.resource import Resource
from kedge.plan.selecting.kinds import Kind


def custom_kinds(crd: CustomResourceDefinition) -> tuple[Kind, ...]:
    """The kind in each version that is served; nothing before the definition is established."""
    if not is_established(crd):
        return ()
    served = by_preference(version.name for version in crd.spec.versions or () if version.served)
    names, namespaced = crd.spec.names, crd.spec.scope == "Namespaced"
    return tuple(
        Kind(Resource(crd.spec.group, version, names.kind, names.plural, namespaced), preferred=number == 0)
        for number, version in enumerate(served)
    )


def is_established(crd: CustomResourceDefinition) -> bool:
    """Whether objects of this kind can be made and read."""
    return any(each.type == "Established" and each.status == "True" for each in crd.status.conditions or ())


def by_preference(versions: Iterable[str]) -> tuple[str, ...]:
    """Versions as Kubernetes prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    return tuple(sorted(versions, key=_preference))


def _preference(version: str) -> tuple[int, int, int, str]:
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not found:
        return 3, 0, 0, version
    major, stage, minor = found.groups()
    return ("", "beta", "alpha").index(stage or ""), -int(major), -int(minor or 0), version
