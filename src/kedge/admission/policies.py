"""Policies: what the API server of a hub refuses beyond RBAC. `kedge install hub` prints them.

A hub writes bindings, snapshots and Works. Whoever else can write them can run anything on the fleet. A right in one
namespace alone, which a member's agent and most users have, is not enough: it takes the right to do the same in every
namespace. The hub has it, and so have cluster admins, the garbage collector and the namespace controller, so no policy
names anybody. An agent may change a Work only for its own finalizer.

These are ValidatingAdmissionPolicies, which the API server evaluates itself. An expression that fails refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kedge.api.cluster import InternalMemberCluster
from kedge.api.fleet import RESERVED_PREFIXES, WORK_CLEANUP
from kedge.api.karmada.keys import EXECUTION_FINALIZER
from kedge.api.karmada.works import Work as KarmadaWork
from kedge.api.placement_kinds import NAMESPACED
from kedge.api.resource import Resource
from kedge.api.work import Work

Manifest: TypeAlias = dict[str, Any]

GROUP: Final = "admissionregistration.k8s.io"
HUB_OBJECTS: Final = "kedge-hub-objects"
WORK_CHANGES: Final = "kedge-work-changes"
KARMADA_WORKS: Final = "kedge-karmada-works"
KARMADA_WORK_CHANGES: Final = "kedge-karmada-work-changes"
USER_OBJECTS: Final = "kedge-user-objects"

_EVERYWHERE: Final = {
    "name": "everywhere",
    "expression": (
        "authorizer.group(request.resource.group).resource(request.resource.resource)"
        ".subresource(has(request.subResource) ? request.subResource : '')"
        ".check({'CREATE': 'create', 'UPDATE': 'patch', 'DELETE': 'delete'}[request.operation]).allowed()"
    ),
}
"""Whether the caller may do this in every namespace."""


_HUB_WRITES: Final = (
    "the hub writes this, and nobody else: it takes the right to do so in every namespace, "
    "and a right in this namespace is not enough"
)


def policies() -> list[Manifest]:
    """All of them, each with its binding."""
    made = (_hub_objects(), _work_changes(WORK_CHANGES, Work.resource, WORK_CLEANUP), _user_objects())
    return [manifest for policy in made for manifest in (policy, _binding(policy["metadata"]["name"]))]


def karmada_policies() -> list[Manifest]:
    """Those of a hub of Karmada's kinds, each with its binding. Users may write bindings there, and nobody Works."""
    works = [_rule([KarmadaWork.resource], "CREATE", "DELETE")]
    made = (
        _policy(KARMADA_WORKS, works, "variables.everywhere", _HUB_WRITES, [_EVERYWHERE]),
        _work_changes(KARMADA_WORK_CHANGES, KarmadaWork.resource, EXECUTION_FINALIZER),
    )
    return [manifest for policy in made for manifest in (policy, _binding(policy["metadata"]["name"]))]


def _hub_objects() -> Manifest:
    """Bindings, snapshots, InternalMemberClusters, and that there is a Work."""
    with_status = (NAMESPACED.binding.resource, NAMESPACED.policy_snapshot.resource)
    kinds = (*with_status, NAMESPACED.resource_snapshot.resource)
    rules = [
        _rule(kinds, "CREATE", "UPDATE", "DELETE"),
        _rule(with_status, "UPDATE", subresource="status"),
        _rule([InternalMemberCluster.resource], "CREATE", "UPDATE", "DELETE"),
        _rule([Work.resource], "CREATE", "DELETE"),
    ]
    return _policy(HUB_OBJECTS, rules, "variables.everywhere", _HUB_WRITES, [_EVERYWHERE])


def _work_changes(name: str, kind: Resource, finalizer: str) -> Manifest:
    """What a Work says."""
    message = f"an agent changes no more of a Work than its finalizer {finalizer}, and its status"
    allowed = f"variables.everywhere || ({_but_for(finalizer)})"
    return _policy(name, [_rule([kind], "UPDATE")], allowed, message, [_EVERYWHERE])


def _but_for(finalizer: str) -> str:
    """Whether a Work stays as it is, but for the finalizer its agent holds it by."""
    return " && ".join(
        (
            "object.?spec == oldObject.?spec",
            *(f"object.metadata.?{part} == oldObject.metadata.?{part}" for part in ("labels", "annotations")),
            "object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences",
            " == ".join(
                f"{which}.metadata.?finalizers.orValue([]).filter(one, one != '{finalizer}')"
                for which in ("object", "oldObject")
            ),
        )
    )


def _user_objects() -> Manifest:
    """Placements and what else users write, where nobody acts on them."""
    kinds = (NAMESPACED.placement, NAMESPACED.run, NAMESPACED.strategy, NAMESPACED.approval)
    allowed = " && ".join(f"!request.namespace.startsWith('{prefix}')" for prefix in RESERVED_PREFIXES)
    message = (
        f"nothing is placed from namespaces that begin with {' or '.join(RESERVED_PREFIXES)}: "
        "create it in a namespace of your own"
    )
    return _policy(USER_OBJECTS, [_rule([kind.resource for kind in kinds], "CREATE")], allowed, message)


def _rule(kinds: Iterable[Resource], *operations: str, subresource: str = "") -> Manifest:
    suffix = f"/{subresource}" if subresource else ""
    return {
        "apiGroups": sorted({kind.group for kind in kinds}),
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": [f"{kind.plural}{suffix}" for kind in kinds],
        "scope": "Namespaced",
    }


def _policy(
    name: str,
    rules: Sequence[Manifest],
    allowed: str,
    message: str,
    variables: Sequence[Mapping[str, str]] = (),
) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": list(rules)},
            **({"variables": [dict(one) for one in variables]} if variables else {}),
            "validations": [{"expression": allowed, "message": message, "reason": "Forbidden"}],
        },
    }


def _binding(policy: str) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    }
