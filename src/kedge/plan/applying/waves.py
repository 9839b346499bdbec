"""Waves: in which order the objects of a Work are written, so that what others need is there first.

Inside a wave the order is free. A wave waits until those before it were written, not until they work (kubefleet.md
§4.5).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from kedge.plan.applying.manifests import Placed

_WAVES: Final[tuple[tuple[str, ...], ...]] = (
    ("namespaces", "priorityclasses"),
    (
        "networkpolicies",
        "resourcequotas",
        "limitranges",
        "podsecuritypolicies",
        "poddisruptionbudgets",
        "serviceaccounts",
        "secrets",
        "configmaps",
        "storageclasses",
        "persistentvolumes",
        "persistentvolumeclaims",
        "customresourcedefinitions",
        "ingressclasses",
    ),
    ("clusterroles", "roles"),
    ("clusterrolebindings", "rolebindings"),
    (
        "services",
        "daemonsets",
        "pods",
        "replicationcontrollers",
        "replicasets",
        "deployments",
        "horizontalpodautoscalers",
        "statefulsets",
        "jobs",
        "cronjobs",
        "ingresses",
    ),
    ("apiservices", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
)
LAST: Final = 999
_WAVE_OF: Final = {plural: wave for wave, plurals in enumerate(_WAVES) for plural in plurals}


def wave_of(plural: str) -> int:
    """The wave of a kind, by the plural its API calls it by; what nobody knows comes last."""
    return _WAVE_OF.get(plural, LAST)


def in_waves(objects: Iterable[Placed]) -> list[tuple[Placed, ...]]:
    """The objects, wave by wave; in a wave, in the order of the Work."""
    ordered = sorted(objects, key=_wave)
    return [tuple(wave) for _, wave in groupby(ordered, key=_wave)]


def _wave(placed: Placed) -> int:
    return wave_of(placed.resource.plural)
