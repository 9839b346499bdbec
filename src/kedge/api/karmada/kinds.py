"""Kinds: all kinds of Karmada that Kedge defines where there is no Karmada."""

from __future__ import annotations

from typing import Final

from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work

KARMADA_KINDS: Final = (
    Cluster,
    PropagationPolicy,
    ClusterPropagationPolicy,
    OverridePolicy,
    ClusterOverridePolicy,
    ResourceBinding,
    ClusterResourceBinding,
    Work,
    ProposedBinding,
)
