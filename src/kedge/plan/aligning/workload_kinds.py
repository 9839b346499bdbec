"""Workload kinds: those whose pods are counted over all clusters, and whose rollouts are aligned."""

from __future__ import annotations

from typing import Final

from kedge.api.apps import Deployment, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.plan.fields import Object, text

WORKLOAD_KINDS: Final = (Deployment.resource, CloneSet.resource, StatefulSet.resource)
_NAMES: Final = frozenset((one.api_version, one.kind) for one in WORKLOAD_KINDS)


def is_counted(obj: Object) -> bool:
    """Whether an object is of a kind whose pods are counted over all clusters."""
    return (text(obj, "apiVersion"), text(obj, "kind")) in _NAMES
