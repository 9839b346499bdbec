"""CRDs: every definition Kedge installs, in a fixed order.

`kedge crds [--dialect seed|kubefleet]` prints those of a fleet for `kubectl apply -f -`, `kedge crds --zones` those of
rollout groups, `kedge crds --batches` those of Applications and their rollouts in batches, and `kedge crds --karmada`
those of bindings whose clusters share one budget of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TextIO

import yaml

from kedge.api.binding import ClusterResourceBinding, ResourceBinding
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.crd import Crd, Defined, crd
from kedge.api.dialect import Dialect
from kedge.api.karmada.kinds import KARMADA_KINDS
from kedge.api.kruise import KRUISE_KINDS
from kedge.api.oam.kinds import OAM_KINDS
from kedge.api.placement import ClusterResourcePlacement, ClusterResourcePlacementStatus, ResourcePlacement
from kedge.api.snapshot import (
    ClusterResourceSnapshot,
    ClusterSchedulingPolicySnapshot,
    ResourceSnapshot,
    SchedulingPolicySnapshot,
)
from kedge.api.staged import (
    ApprovalRequest,
    ClusterApprovalRequest,
    ClusterStagedUpdateRun,
    ClusterStagedUpdateStrategy,
    StagedUpdateRun,
    StagedUpdateStrategy,
)
from kedge.api.work import AppliedWork, Work
from kedge.api.zones import ZONE_KINDS

_ONE_LINE: Final = 2**31 - 1  # as wide as libyaml goes

KINDS: Final[tuple[type[Defined], ...]] = (
    MemberCluster,
    InternalMemberCluster,
    ClusterResourcePlacement,
    ResourcePlacement,
    ClusterResourcePlacementStatus,
    ClusterResourceSnapshot,
    ResourceSnapshot,
    ClusterSchedulingPolicySnapshot,
    SchedulingPolicySnapshot,
    ClusterResourceBinding,
    ResourceBinding,
    Work,
    AppliedWork,
    ClusterStagedUpdateStrategy,
    ClusterStagedUpdateRun,
    ClusterApprovalRequest,
    StagedUpdateStrategy,
    StagedUpdateRun,
    ApprovalRequest,
)


def crds(dialect: Dialect = Dialect.seed) -> tuple[Crd, ...]:
    """Every CustomResourceDefinition of a fleet, in that dialect."""
    return tuple(crd(kind, dialect) for kind in KINDS)


def zone_crds() -> tuple[Crd, ...]:
    """Every CustomResourceDefinition that belongs to rollout groups. They have no dialects."""
    return tuple(crd(kind, Dialect.seed) for kind in ZONE_KINDS)


def kruise_crds() -> tuple[Crd, ...]:
    """The CustomResourceDefinitions of OpenKruise that are simulated; for clusters without OpenKruise."""
    return tuple(crd(kind, Dialect.seed) for kind in KRUISE_KINDS)


def oam_crds() -> tuple[Crd, ...]:
    """Every CustomResourceDefinition of Applications and their rollouts in batches. They have no dialects."""
    return tuple(crd(kind, Dialect.seed) for kind in OAM_KINDS)


def karmada_crds() -> tuple[Crd, ...]:
    """Every CustomResourceDefinition of Karmada that alignment needs; for a hub without Karmada."""
    return tuple(crd(kind, Dialect.seed) for kind in KARMADA_KINDS)


def print_yaml(objects: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """Objects as YAML, one document each. A sentence or a rule stays on one line."""
    yaml.dump_all(objects, stream, _Plain, explicit_start=True, sort_keys=False, width=_ONE_LINE)


class _Plain(yaml.CSafeDumper):
    """Writes equal parts out each time: references between them are hard to read and to diff."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's own name for the argument
        return True
