"""Revised workloads: the workload that one component revision (a ControllerRevision) asks a rollout for. Pure.

    found = revised_workload(revision, component="web", application="shop")    # OamRefused if it cannot be rolled out

Whoever may create a ControllerRevision may not reach further than its namespace: the workload is of the same namespace
and of a kind that runs pods, whatever the revision says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kedge.api.apps import ControllerRevision
from kedge.api.oam.keys import COMPONENT_LABEL, NAME_LABEL, SKIP_GC
from kedge.plan.fields import Object, name_of, patched, text
from kedge.plan.oam.emission import belongs_to
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import component_in
from kedge.plan.oam.workloads import handler_of, is_in_place, revision_of, workload_of


def revised_workload(
    revision: ControllerRevision,
    *,
    component: str = "",
    application: str = "",
    app_revision: str = "",
    owners: Sequence[Mapping[str, Any]] = (),
) -> Object:
    """The workload of a revision as a rollout brings it in: named, labelled, with owners, and not frozen.

    Refuses a revision that keeps no Component, keeps another component than this, or a workload that has no pods.
    """
    found = component_in(revision)
    of, name = text(found, "metadata", "name"), revision.metadata.name
    if component and of != component:
        raise OamRefused(f"the ControllerRevision {name} is a revision of the component {of}, not of {component}")
    body = workload_of(found, revision=name, application=application, app_revision=app_revision)
    if handler_of(body) is None:
        raise OamRefused(f"the workload kind `{text(body, 'kind')}` of the ControllerRevision {name} is not supported")
    owned = {"ownerReferences": list(owners)} if owners else {}
    return patched(body, {"metadata": {"annotations": {SKIP_GC: "true"}, **owned}})


def owner_problem(live: Object | None, manifest: Object) -> str:
    """Why a live workload of this name is not the one that the revision asks for; empty if it is, or there is none."""
    if live is None:
        return ""
    application, component = application_in(manifest), component_of(manifest)
    if not belongs_to(live, application, component):
        owner = text(live, "metadata", "labels", NAME_LABEL)
        whose = f"belongs to the Application {owner}" if owner else "was made by somebody else"
        return f"{name_of(live)} exists already and {whose}: delete it, or give the component another name"
    if not is_in_place(manifest) and revision_of(live) != revision_of(manifest):
        what = revision_of(live) or "no revision"
        return f"{name_of(live)} exists already and is of {what}, not of {revision_of(manifest)}: delete it"
    return ""


def application_in(manifest: Object) -> str:
    """The Application that a workload is of: as its rollout says, or else its revision. Empty if neither does."""
    return text(manifest, "metadata", "labels", NAME_LABEL)


def component_of(manifest: Object) -> str:
    """The component that a workload is of."""
    return text(manifest, "metadata", "labels", COMPONENT_LABEL)
