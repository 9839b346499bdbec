"""Workload kinds: those whose pods are counted over all clusters, and whose rollouts are aligned."""

from __future__ import annotations

from typing import Final

from kedge.api.apps import Deployment, StatefulSet
from kedge.api.kruise import CloneSet

WORKLOAD_KINDS: Final = (Deployment.resource, CloneSet.resource, StatefulSet.resource)
