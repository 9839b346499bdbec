"""Desired works: the Works that a binding needs, and how the existing ones differ from them.

    desired = desired_works(binding, resources, abandons=False, report_back=None)
    changes = compare_works(binding, desired, works_of_it, works_of_these_names, other_bindings)

A Work names its binding in labels. The binding is in another namespace, so there is no owner reference (kubefleet.md
§4.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, to_builtins

from kedge.api.fleet import (
    CLUSTER_OVERRIDE_HASH,
    ON_DELETE,
    PARENT_BINDING,
    PARENT_NAMESPACE,
    PARENT_PLACEMENT,
    PARENT_SNAPSHOT_INDEX,
    PARENT_SNAPSHOT_NAME,
    RESOURCE_OVERRIDE_HASH,
    member_namespace,
    work_name,
)
from kedge.api.placement_kinds import Binding
from kedge.api.rollout import (
    ApplyStrategy,
    PropagationPolicy,
    ReportBackStrategy,
)
from kedge.api.work import Work
from kedge.plan.digest import digest
from kedge.plan.fields import replacement
from kedge.plan.revisions import parent
from kedge.plan.working.work_contents import RevisionContents, RevisionPart, compacted_digest

NO_OVERRIDES: Final = digest(())


class DesiredWork(Struct, frozen=True):
    """A Work as it should be."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    part: RevisionPart
    apply_strategy: ApplyStrategy | None
    report_back: ReportBackStrategy | None

    def body(self) -> dict[str, Any]:
        """The whole Work, to be created."""
        meta = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
        }
        workload = {"manifests": self.part.manifests} if self.part.manifests is not None else {}
        return {"metadata": meta, "spec": {"workload": workload, **self._strategies()}}

    def _strategies(self) -> dict[str, Any]:
        how = {"applyStrategy": self.apply_strategy, "reportBackStrategy": self.report_back}
        return {name: to_builtins(value) for name, value in how.items() if value is not None}


class WorkChanges(Struct, frozen=True):
    """The changes that make the existing Works the desired ones."""

    create: tuple[DesiredWork, ...] = ()
    patch: tuple[tuple[Work, Mapping[str, Any]], ...] = ()
    delete: tuple[Work, ...] = ()
    same: tuple[Work, ...] = ()
    blocked: str = ""
    """Why a desired Work can be neither created nor changed now."""

    @property
    def changes_manifests(self) -> bool:
        """Whether the member gets something new to apply."""
        return bool(self.create or self.delete) or any("spec" in body for _, body in self.patch)


def desired_works(
    binding: Binding, resources: RevisionContents, *, abandons: bool, report_back: ReportBackStrategy | None
) -> tuple[DesiredWork, ...]:
    """The Works of a binding with this revision: one for each part."""
    placement, namespace = parent(binding.metadata), binding.metadata.namespace
    labels = {
        PARENT_PLACEMENT: placement,
        PARENT_BINDING: binding.metadata.name,
        PARENT_SNAPSHOT_INDEX: resources.index,
    }
    annotations = {
        PARENT_SNAPSHOT_NAME: resources.name,
        RESOURCE_OVERRIDE_HASH: NO_OVERRIDES,
        CLUSTER_OVERRIDE_HASH: NO_OVERRIDES,
    }
    return tuple(
        DesiredWork(
            name=work_name(placement, namespace, number - 1 if number else None),
            namespace=member_namespace(binding.spec.target_cluster),
            labels=labels | ({PARENT_NAMESPACE: namespace} if namespace else {}),
            annotations=annotations | ({ON_DELETE: PropagationPolicy.abandon.value} if abandons else {}),
            part=part,
            apply_strategy=binding.spec.apply_strategy,
            report_back=report_back,
        )
        for number, part in enumerate(resources.parts)
    )


def compare_works(
    binding: Binding,
    desired: Sequence[DesiredWork],
    own: Sequence[Work],
    named: Mapping[str, Work],
    other_bindings: frozenset[str],
) -> WorkChanges:
    """How the Works differ from the desired ones.

    `own` are the Works labelled as this binding's. `named` are the Works with a desired name, whoever owns them.
    `other_bindings` are the names of other bindings of this placement that still exist.
    """
    blocked = [
        why
        for one in desired
        if one.name in named and (why := _blocking_reason(binding, named[one.name], other_bindings))
    ]
    if blocked:
        return WorkChanges(blocked="; ".join(blocked))
    patches = [(named[one.name], work_patch(one, named[one.name])) for one in desired if one.name in named]
    names = {one.name for one in desired}
    return WorkChanges(
        create=tuple(one for one in desired if one.name not in named),
        patch=tuple((work, body) for work, body in patches if body),
        delete=tuple(work for work in own if work.metadata.name not in names and not is_being_deleted(work)),
        same=tuple(work for work, body in patches if not body),
    )


def work_patch(desired: DesiredWork, work: Work) -> dict[str, Any]:
    """The merge patch that makes a Work the desired one; empty if it is already."""
    spec = {
        **_replacement("applyStrategy", work.spec.apply_strategy, desired.apply_strategy),
        **_replacement("reportBackStrategy", work.spec.report_back_strategy, desired.report_back),
    }
    if compacted_digest(work) != desired.part.digest:
        spec["workload"] = {"manifests": desired.part.manifests}
    annotations = dict(desired.annotations) | ({} if ON_DELETE in desired.annotations else {ON_DELETE: None})
    meta = {
        "labels": _changed_entries(desired.labels, work.metadata.labels),
        "annotations": _changed_entries(annotations, work.metadata.annotations),
    }
    meta = {name: value for name, value in meta.items() if value}
    return ({"metadata": meta} if meta else {}) | ({"spec": spec} if spec else {})


def is_being_deleted(work: Work) -> bool:
    return work.metadata.deletion_timestamp is not None


def _blocking_reason(binding: Binding, work: Work, other_bindings: frozenset[str]) -> str:
    """Why this Work, which has the name of a desired one, cannot be used; empty if it can."""
    meta, place = work.metadata, f"Work {work.metadata.namespace}/{work.metadata.name}"
    if (parent(meta), meta.labels.get(PARENT_NAMESPACE)) != (parent(binding.metadata), binding.metadata.namespace):
        whose = "/".join(filter(None, (meta.labels.get(PARENT_NAMESPACE), parent(meta)))) or "nobody known here"
        return f"{place} belongs to {whose}: rename one of the two placements, or delete the Work"
    if is_being_deleted(work):
        return f"{place} is being deleted, and is made again when it is gone"
    other = meta.labels.get(PARENT_BINDING, "")
    if other != binding.metadata.name and other in other_bindings:
        return f"{place} still belongs to binding {other}, which is to go first"
    return ""


def _replacement(name: str, old: ApplyStrategy | ReportBackStrategy | None, new: Any) -> dict[str, Any]:
    """The part of a merge patch that replaces the old value completely."""
    if old == new:
        return {}
    return {name: None if new is None else replacement(to_builtins(old) if old else {}, to_builtins(new))}


def _changed_entries(desired: Mapping[str, str | None], there: Mapping[str, str]) -> dict[str, str | None]:
    return {key: value for key, value in desired.items() if there.get(key) != value}
