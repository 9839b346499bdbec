"""Rights: exactly what each role may do, where, and why. `kedge install` prints these, and nothing is run with more.

A hub reads everything, since anything may be selected, and writes the fleet's own objects, members' namespaces and what
lets their agents in. RBAC lets nobody grant what it has not got, so the hub holds what it grants.
An operator acts on pods and StatefulSets of the namespaces it manages, and on what is its own there; one that rolls out
in batches also on the other workloads, and on what scales them and leads traffic to them.
On its member an agent writes whatever is placed there; it may not act as others, and grants no more than it holds,
unless told otherwise. On the hub it has its own namespace, which the hub gives it when it joins (`plan.membership`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.apps import ControllerRevision, DaemonSet, Deployment, StatefulSet
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.karmada.bindings import ClusterResourceBinding as KarmadaClusterBinding
from kedge.api.karmada.bindings import ResourceBinding as KarmadaBinding
from kedge.api.karmada.clusters import Cluster as KarmadaCluster
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work as KarmadaWork
from kedge.api.kruise import CloneSet
from kedge.api.metric_template import MetricTemplate
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.rollouts import ApplicationDeployment, AppRollout, Rollout, RolloutTrait
from kedge.api.placement import ClusterResourcePlacementStatus
from kedge.api.placement_kinds import PLACEMENT_KINDS
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork, Work
from kedge.api.zones import ReplicaTemplate, ZoneAwarePodDisruptionBudget
from kedge.plan.aligning.workload_kinds import WORKLOAD_KINDS
from kedge.plan.batching.autoscalers import HPA, SCALED_OBJECT
from kedge.plan.membership import AGENT_RULES, READ
from kedge.plan.traffic.providers import PROVIDERS

LEADING: Final = (
    PolicyRule(api_groups=("coordination.k8s.io",), resources=("leases",), verbs=("get", "create", "patch")),
)
"""To take turns with other processes of the same role; in its own namespace."""

_ABOUT_THE_SERVER: Final = PolicyRule(
    non_resource_urls=("/version", "/readyz", "/api", "/api/*", "/apis", "/apis/*"), verbs=("get",)
)


def _may(kinds: Iterable[Resource], *verbs: str, subresource: str = "") -> PolicyRule:
    """Verbs on kinds of one group, or on a subresource of each."""
    groups = tuple(dict.fromkeys(kind.group for kind in kinds))
    suffix = f"/{subresource}" if subresource else ""
    return PolicyRule(api_groups=groups, resources=tuple(f"{kind.plural}{suffix}" for kind in kinds), verbs=verbs)


_PLACEMENTS: Final = tuple(placement_kinds.placement.resource for placement_kinds in PLACEMENT_KINDS)
_POLICIES: Final = tuple(placement_kinds.policy_snapshot.resource for placement_kinds in PLACEMENT_KINDS)
_SNAPSHOTS: Final = tuple(placement_kinds.resource_snapshot.resource for placement_kinds in PLACEMENT_KINDS)
_BINDINGS: Final = tuple(placement_kinds.binding.resource for placement_kinds in PLACEMENT_KINDS)
_RUNS: Final = tuple(placement_kinds.run.resource for placement_kinds in PLACEMENT_KINDS)
_APPROVALS: Final = tuple(placement_kinds.approval.resource for placement_kinds in PLACEMENT_KINDS)

HUB: Final = (
    _ABOUT_THE_SERVER,
    PolicyRule(api_groups=("*",), resources=("*",), verbs=READ),  # whatever a placement may select
    *AGENT_RULES,  # it can grant no more than it holds
    _may([MemberCluster.resource, InternalMemberCluster.resource], "patch"),
    _may([MemberCluster.resource], "patch", subresource="status"),
    _may([InternalMemberCluster.resource], "create"),
    _may([Work.resource], "create", "delete"),
    _may([*_POLICIES, *_SNAPSHOTS, *_BINDINGS], "create", "patch", "delete"),
    _may([*_POLICIES, *_BINDINGS, *_PLACEMENTS, *_RUNS, *_APPROVALS], "patch", subresource="status"),
    _may([*_PLACEMENTS, *_RUNS], "patch"),  # their finalizers
    _may(_PLACEMENTS, "update", subresource="finalizers"),  # asked for where owners must be allowed to block
    _may(_RUNS, "create"),  # one that rolls another back
    _may(_APPROVALS, "create", "delete"),
    _may([ClusterResourcePlacementStatus.resource], "create", "patch"),
    PolicyRule(api_groups=("",), resources=("namespaces",), verbs=("create", "patch", "delete")),
    PolicyRule(api_groups=(RBAC,), resources=("roles", "rolebindings"), verbs=("create", "patch")),
)
"""Everywhere on the hub."""

_KARMADA_BINDINGS: Final = (KarmadaBinding.resource, KarmadaClusterBinding.resource)
_KARMADA_POLICIES: Final = (PropagationPolicy.resource, ClusterPropagationPolicy.resource)

KARMADA_HUB: Final = (
    _ABOUT_THE_SERVER,
    PolicyRule(api_groups=("*",), resources=("*",), verbs=READ),  # whatever a policy may mean
    _may(_KARMADA_BINDINGS, "create", "patch"),
    _may(_KARMADA_BINDINGS, "patch", subresource="status"),
    _may([ProposedBinding.resource], "patch", subresource="status"),
    _may(_KARMADA_POLICIES, "patch", subresource="status"),
    _may([KarmadaWork.resource], "create", "patch", "delete"),
    _may([KarmadaCluster.resource], "patch"),  # their finalizers
    _may([KarmadaCluster.resource], "patch", subresource="status"),
    *(_may([kind], "patch", subresource="status") for kind in WORKLOAD_KINDS),  # the pods of all clusters, counted
    PolicyRule(api_groups=("",), resources=("namespaces",), verbs=("create", "delete")),
    PolicyRule(api_groups=("",), resources=("events",), verbs=("create", "patch")),
)
"""Everywhere on a hub of Karmada's kinds."""

KARMADA_AGENT: Final = (
    _may([KarmadaWork.resource], *READ, "patch"),  # their finalizers: an admission policy refuses the rest
    _may([KarmadaWork.resource], "patch", subresource="status"),
    PolicyRule(api_groups=("coordination.k8s.io",), resources=("leases",), verbs=("create", "patch")),
)
"""In its member's own namespace on such a hub: its agent reads Works, reports, and says that it lives."""

REPORT_BACK: Final = (PolicyRule(api_groups=("*",), resources=("*/status",), verbs=("patch",)),)
"""For a hub that writes members' statuses back to the objects they were placed from (reportBackStrategy)."""

MEMBER: Final = (
    _ABOUT_THE_SERVER,
    PolicyRule(
        api_groups=("*",),
        resources=("*",),
        verbs=(*READ, "create", "update", "patch", "delete", "deletecollection"),
    ),
)
"""Everywhere on the member: what is placed there may be anything."""

MEMBER_ITSELF: Final = (
    _ABOUT_THE_SERVER,
    _may([AppliedWork.resource], *READ, "create", "patch", "delete"),
    _may([AppliedWork.resource], "patch", subresource="status"),
    _may([AppliedWork.resource], "update", subresource="finalizers"),  # asked for where owners must be allowed to block
    PolicyRule(api_groups=("",), resources=("nodes", "pods"), verbs=READ),
    PolicyRule(api_groups=("",), resources=("events",), verbs=("list", "watch")),  # why pods are not created
)
"""Everywhere on a member that is told what may be placed there: what its agent does for itself."""

KARMADA_MEMBER_ITSELF: Final = (_ABOUT_THE_SERVER,)
"""The same on a member of a hub of Karmada's kinds: beside what may be placed, its agent looks at nothing."""

NEW_NAMESPACES: Final = (PolicyRule(api_groups=("",), resources=("namespaces",), verbs=("create",)),)
"""For an agent of such a hub that may place in any namespace: it creates those that the member has not."""

_WRITE: Final = ("create", "patch", "delete")
_FOLLOW: Final = ("list", "watch")
_NAMESPACES: Final = "namespaces"


class Placing(Struct, frozen=True):
    """What an agent may do with what is placed: everywhere, and in each of some namespaces."""

    everywhere: tuple[PolicyRule, ...]
    in_each: tuple[PolicyRule, ...] = ()


def placing(kinds: Iterable[str], namespaces: Sequence[str]) -> Placing:
    """What it takes to place these kinds (`configmaps`, `deployments.apps`; none: all) in these namespaces (none: all).

    What is read is read everywhere: a watch of one kind is one for all namespaces. Of the Namespaces themselves only
    these may be changed; any may be created, since RBAC knows no names where something is created.
    """
    found = tuple(dict.fromkeys(kinds)) or ("*.*",)
    if not namespaces:
        return Placing(_on(found, (*READ, *_WRITE)))
    inside = tuple(kind for kind in found if kind != _NAMESPACES)
    own = (
        PolicyRule(api_groups=("",), resources=(_NAMESPACES,), verbs=("create",)),
        PolicyRule(
            api_groups=("",), resources=(_NAMESPACES,), resource_names=tuple(namespaces), verbs=("patch", "delete")
        ),
    )
    return Placing((*_on(found, READ), *(own if inside != found else ())), _on(inside, _WRITE))


def _on(kinds: Iterable[str], verbs: tuple[str, ...]) -> tuple[PolicyRule, ...]:
    """Verbs on kinds, a rule for each of their groups."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        plural, _, group = kind.partition(".")
        groups.setdefault(group, []).append(plural)
    return tuple(
        PolicyRule(api_groups=(group,), resources=tuple(plurals), verbs=verbs) for group, plurals in groups.items()
    )


def renewing(secret: str) -> tuple[PolicyRule, ...]:
    """For an agent that keeps its token for the hub in a Secret; in its own namespace."""
    return (PolicyRule(api_groups=("",), resources=("secrets",), resource_names=(secret,), verbs=("patch",)),)


OPERATOR: Final = (
    PolicyRule(api_groups=("",), resources=("pods",), verbs=("list", "get", "watch", "delete", "patch")),
    PolicyRule(api_groups=("apps",), resources=("statefulsets",), verbs=("list", "get", "watch", "patch")),
    PolicyRule(api_groups=("apps",), resources=("statefulsets/status",), verbs=("update",)),
    PolicyRule(api_groups=("",), resources=("configmaps",), verbs=("get", "update", "create")),  # the zone tracker
    _may([ZoneAwarePodDisruptionBudget.resource], "get", "list", "watch"),
    PolicyRule(
        api_groups=(ReplicaTemplate.resource.group,),
        resources=("replicatemplates/scale", "replicatemplates/status"),
        verbs=("get", "patch"),
    ),
)
"""In each namespace that an operator manages: exactly what Grafana's rollout-operator is given."""

OPERATOR_EVENTS: Final = (PolicyRule(api_groups=("",), resources=("events",), verbs=("create", "patch")),)
"""For an operator that reports its steps as Events, which the peer does not. Without it, only they are missing."""

_OF_COMPONENTS: Final = (RolloutTrait.resource, Rollout.resource)
_OF_APPLICATIONS: Final = (AppRollout.resource, ApplicationDeployment.resource)
ROLLOUTS: Final = (*_OF_COMPONENTS, *_OF_APPLICATIONS)
"""The kinds of rollouts in batches that an operator acts on."""

_APPLICATIONS: Final = (
    _may([Application.resource], *READ, "patch"),
    _may([Component.resource], *_FOLLOW),
    _may([ApplicationRevision.resource], *READ, "create"),
    _may([ApplicationConfiguration.resource], *_FOLLOW, *_WRITE),
    _may([AppRollout.resource], "create", "delete"),
    _may([one.resource for one in (Application, Component, ApplicationConfiguration)], "patch", subresource="status"),
    # The next two are asked for where owners are checked: who names one must be allowed to delete what it owns, and who
    # has one wait must be allowed to hold it. A rollout owns the Application that it brings in.
    _may([Application.resource], "delete"),
    _may([Application.resource, Component.resource], "update", subresource="finalizers"),
    _may(_OF_COMPONENTS, "create", "delete"),
    _may([HPA], "get", "create", "delete"),
    PolicyRule(api_groups=("",), resources=("services",), verbs=("get", "create", "patch", "delete")),
)
"""For Applications and Components. Whoever uses traits of other kinds allows those as well."""

BATCHES: Final = (
    *(_may(kinds, *READ, "patch") for kinds in (_OF_COMPONENTS, _OF_APPLICATIONS)),
    *(_may(kinds, "patch", subresource="status") for kinds in (_OF_COMPONENTS, _OF_APPLICATIONS)),
    _may([Deployment.resource, DaemonSet.resource], *READ, "create", "patch", "delete"),
    _may([StatefulSet.resource], "create", "delete"),
    _may([CloneSet.resource], *READ, "create", "patch", "delete"),
    _may([ControllerRevision.resource], *READ, "create"),  # the states of components, and of what changes in place
    _may([HPA], *_FOLLOW, "patch"),
    _may([SCALED_OBJECT], *_FOLLOW, "patch"),
    *(
        PolicyRule(api_groups=(one.kind.group,), resources=(one.kind.plural,), verbs=("get", "patch"))
        for one in PROVIDERS.values()
    ),
    _may([MetricTemplate.resource], "get"),
    *_APPLICATIONS,
)
"""For an operator that rolls out in batches, in each namespace it manages. Pods and StatefulSets are in `OPERATOR`.

Secrets that MetricTemplates name are not here: nobody should read all of them for that (`metric_secrets`).
"""


def metric_secrets(names: Sequence[str]) -> tuple[PolicyRule, ...]:
    """For an operator that asks a Prometheus with the credentials of these Secrets."""
    if not names:
        return ()
    return (PolicyRule(api_groups=("",), resources=("secrets",), resource_names=tuple(names), verbs=("get",)),)


BESIDE: Final = (
    _ABOUT_THE_SERVER,
    _may([KarmadaBinding.resource, KarmadaWork.resource], *READ),
    _may([KarmadaBinding.resource], "patch", subresource="status"),  # what it waits for
    _may([KarmadaCluster.resource], *READ),
    _may([OverridePolicy.resource], *READ, "create", "patch", "delete"),
    _may([PropagationPolicy.resource, ClusterPropagationPolicy.resource], *READ, "patch"),  # their suspension
    _may([Deployment.resource], "get"),
    PolicyRule(api_groups=("",), resources=("events",), verbs=("create", "patch")),
)
"""Everywhere on a Karmada, for `kedge align` beside it. It writes no Work, and no workload."""

READ_DEPLOYMENTS: Final = (
    PolicyRule(api_groups=("apps",), resources=("deployments", "replicasets"), verbs=("list", "get")),
)
"""For a no-downscale webhook that guards Deployments and ReplicaSets too: it reads their labels."""

WEBHOOK_CONFIGURATIONS: Final = (
    _may([ValidatingWebhookConfiguration.resource, MutatingWebhookConfiguration.resource], "list", "patch", "watch"),
)
"""Everywhere, for an operator that gives its authority to webhook configurations."""


def certificate_secret(name: str) -> tuple[PolicyRule, ...]:
    """For an operator that keeps its certificate in a Secret; in its own namespace."""
    return (
        PolicyRule(api_groups=("",), resources=("secrets",), verbs=("create",)),
        PolicyRule(api_groups=("",), resources=("secrets",), resource_names=(name,), verbs=("update", "get")),
    )


def mirroring(kinds: Iterable[str]) -> tuple[PolicyRule, ...]:
    """For StatefulSets that mirror replicas from these kinds (`deployments.apps`)."""
    parts = [(*kind.partition("."), part) for kind in kinds for part in ("scale", "status")]
    return _on([f"{plural}/{part}.{group}" for plural, _, group, part in parts], ("get", "patch"))


GRANT_ANY: Final = (
    PolicyRule(
        api_groups=(RBAC,),
        resources=("roles", "clusterroles"),
        verbs=("escalate", "bind"),
    ),
)
"""For a member on which Roles are placed that allow more than its agent may do."""
