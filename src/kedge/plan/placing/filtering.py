"""Filtering: which clusters a placement may be put on, and what keeps it off the others.

In the order of the peer, which tells the first reason it finds: affinity, eligibility, namespace, taints.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from kedge.api.cluster import MemberCluster
from kedge.api.condition import find_condition
from kedge.api.scheduling import Toleration
from kedge.plan.membership import NAMESPACES_KNOWN
from kedge.plan.placing.affinity import Affinity
from kedge.plan.placing.eligibility import why_ineligible
from kedge.plan.placing.tolerating import told, untolerated


class Filter(Struct, frozen=True):
    """What a cluster must be like to be picked."""

    affinity: Affinity
    tolerations: tuple[Toleration, ...]
    namespace: str | None
    """Where a ResourcePlacement's objects are: the namespace must be there before they can be."""
    now: datetime

    def why_not(self, member: MemberCluster) -> str | None:
        """What keeps the placement off this cluster; None if nothing does."""
        return (
            self.affinity.why_not(member)
            or why_ineligible(member, self.now)
            or self._lacks_namespace(member)
            or self._tainted(member)
        )

    def _lacks_namespace(self, member: MemberCluster) -> str | None:
        if self.namespace is None or find_condition(member.status.conditions, NAMESPACES_KNOWN) is None:
            return None
        if not member.status.namespaces:
            return "cluster has no namespace information available"
        return None if self.namespace in member.status.namespaces else "target namespace does not exist on cluster"

    def _tainted(self, member: MemberCluster) -> str | None:
        taint = untolerated(member.spec.taints, self.tolerations)
        return None if taint is None else f"taint {told(taint)} cannot be tolerated"
