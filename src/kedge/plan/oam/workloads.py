"""Workloads: the object that one revision of a component asks for, its name, and its frozen form.

A Deployment that is rolled out in batches is called as its revision, so that each revision is an object of its own; so
is any other kind without a partition. Kinds that hold two revisions at once are changed in place, and called as the
component.

A Deployment's pods have a label with its name, in its selector, too: two Deployments of a component never share pods,
and a Service can tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kedge.api.oam.keys import (
    APP_REVISION_LABEL,
    CLAIM,
    COMPONENT_LABEL,
    FROZEN,
    NAME_LABEL,
    REVISION_LABEL,
    WORKLOAD_LABEL,
)
from kedge.plan.fields import Object, at, group_of, patched, text
from kedge.plan.oam.refused import OamRefused
from kedge.plan.workloads import WorkloadHandler, find_handler
from kedge.plan.workloads.registry import BrokenHandler, installed_handlers

_DEPLOYMENT: Final = ("apps", "Deployment")
_DAEMON_SET: Final = ("apps", "DaemonSet")
_MAPS: Final = (
    ("metadata",),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec",),
    ("spec", "selector"),
    ("spec", "selector", "matchLabels"),
    ("spec", "template"),
    ("spec", "template", "metadata"),
    ("spec", "template", "metadata", "labels"),
)


def is_in_place(workload: Object) -> bool:
    """Whether a rollout in batches changes the object itself, instead of making another one."""
    handler = handler_of(workload)
    if handler is None:
        return False
    return handler.with_partition(0) is not None or (handler.group, handler.kind) == _DAEMON_SET


def is_deployment(workload: Object) -> bool:
    """Whether each revision is an object of its own when it is rolled out."""
    return (group_of(workload), text(workload, "kind")) == _DEPLOYMENT


def handler_of(workload: Object) -> WorkloadHandler | None:
    """What knows its kind; None if nothing does."""
    found = find_handler(group_of(workload), text(workload, "kind"))
    return None if isinstance(found, BrokenHandler) else found


def workload_name(component: str, revision: str, workload: Object, *, rolled: bool) -> str:
    """What the workload of a revision is called. `rolled`: whether it is rolled out in batches."""
    return revision if rolled and not is_in_place(workload) else component


def workload_of(
    component: Object,
    *,
    revision: str,
    application: str = "",
    app_revision: str = "",
    rolled: bool = True,
    name: str = "",
) -> Object:
    """The workload that a revision of a component (a Component, as its ControllerRevision keeps it) asks for.

    It has all labels, and is not frozen. `name` is another name than the one that `workload_name` gives. Of its own
    metadata, labels and annotations count: who owns it and when it may go is not for a template to say.
    """
    given: Object = component["spec"]["workload"]
    _check_form(given, text(component, "metadata", "name"))
    of, namespace = text(component, "metadata", "name"), text(component, "metadata", "namespace")
    if text(given, "metadata", "namespace") not in ("", namespace):
        raise OamRefused(f"component {of}: its workload has another namespace than {namespace}: leave it out")
    called = name or workload_name(of, revision, given, rolled=rolled)
    labels = {**(at(given, "metadata", "labels") or {}), **labels_of(application, of, revision, app_revision)}
    meta: dict[str, Any] = {"name": called, "namespace": namespace, "labels": labels}
    if annotations := _own_annotations(given):
        meta["annotations"] = annotations
    body = {**given, "metadata": meta}
    body.pop("status", None)
    return _with_own_pods(body, called) if is_deployment(given) else body


def _check_form(given: Object, component: str) -> None:
    """Refuses a workload in which something else is where every object has a map."""
    for path in _MAPS:
        found = at(given, *path)
        if found is not None and not isinstance(found, Mapping):
            raise OamRefused(
                f"component {component}: {'.'.join(path)} of its workload must be a map of names and values"
            )


def _own_annotations(given: Object) -> dict[str, Any]:
    """Those of the workload, without the notes that rollouts make on workloads that are live."""
    found: Object = at(given, "metadata", "annotations") or {}
    return {name: value for name, value in found.items() if name not in (CLAIM, FROZEN)}


def labels_of(application: str, component: str, revision: str = "", app_revision: str = "") -> dict[str, str]:
    """The labels of what belongs to a component."""
    labels = {
        NAME_LABEL: application,
        COMPONENT_LABEL: component,
        REVISION_LABEL: revision,
        APP_REVISION_LABEL: app_revision,
    }
    return {key: value for key, value in labels.items() if value}


def frozen(manifest: Object, live: Object | None) -> Object:
    """The form of a workload in which no pod is created or replaced, whatever its template says.

    A new one asks for no pods. One that is there keeps as many as it has, and its strategy is remembered for the end
    of the rollout: the one from before it was frozen first, never a frozen one.
    """
    handler = handler_of(manifest)
    if handler is None:
        raise OamRefused(
            f"a {text(manifest, 'kind')} cannot be rolled out in batches: nothing here knows how to hold it"
        )
    desired = handler.replicas(live).desired if live is not None else 0
    scaled = patched(manifest, handler.scale(desired) or {})
    before = text(live, "metadata", "annotations", FROZEN) or _strategy(handler, manifest)
    noted = patched(scaled, {"metadata": {"annotations": {FROZEN: before}}})
    return patched(noted, handler.freeze(noted))


def revision_of(live: Object | None) -> str:
    """The component revision that a live workload is of; empty if it does not say."""
    return text(live, "metadata", "labels", REVISION_LABEL)


def _strategy(handler: WorkloadHandler, manifest: Object) -> str:
    """As whoever gives the strategy back reads it."""
    return msgspec.json.encode({"strategy": handler.strategy(manifest)}).decode()


def _with_own_pods(deployment: Object, name: str) -> Object:
    own = {WORKLOAD_LABEL: name}
    template = {"metadata": {"labels": own}}
    return patched(deployment, {"spec": {"selector": {"matchLabels": own}, "template": template}})


installed_handlers()  # reads files, which no event loop may wait for: so it is done before one runs
