"""Rights: exactly what each role may do, where, and why. `kedge install` prints these, and nothing is run with more.

A hub reads everything, since anything may be selected, and writes the fleet's own objects, members' namespaces and what
lets their agents in. RBAC lets nobody grant what it has not got, so the hub holds what it grants, wildcards included.
On its member an agent writes whatever is placed there; it may not act as others, and grants no more than it holds,
unless told otherwise. On the hub it has its own namespace, which the hub gives it when it joins (`plan.membership`).
"""

from __future__ import annotations

from typing import Final

from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule
from kedge.plan.membership import AGENT_RULES

READ: Final = ("get", "list", "watch")

LEADING: Final = (
    PolicyRule(api_groups=("coordination.k8s.io",), resources=("leases",), verbs=("get", "create", "patch")),
)
"""To take turns with other processes of the same role; in its own namespace."""

_ABOUT_THE_SERVER: Final = PolicyRule(
    non_resource_urls=("/version", "/readyz", "/api", "/api/*", "/apis", "/apis/*"), verbs=("get",)
)

HUB: Final = (
    _ABOUT_THE_SERVER,
    PolicyRule(api_groups=("*",), resources=("*",), verbs=READ),  # whatever a placement may select
    *AGENT_RULES,  # its own kinds and events; and it can grant no more than it holds
    PolicyRule(api_groups=("",), resources=("namespaces",), verbs=("create", "patch", "delete")),
    PolicyRule(api_groups=(RBAC,), resources=("roles", "rolebindings"), verbs=("create", "patch")),
)
"""Everywhere on the hub."""

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

GRANT_ANY: Final = (
    PolicyRule(
        api_groups=(RBAC,),
        resources=("roles", "clusterroles"),
        verbs=("escalate", "bind"),
    ),
)
"""For a member on which Roles are placed that allow more than its agent may do."""
