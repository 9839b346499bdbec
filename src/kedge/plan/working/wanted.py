"""Wanted: the Works a binding asks for, as they should be, and how those there are differ from them.

    wanted = wanted_works(binding, resources, abandons=False, report_back=None)
    changes = compare(binding, wanted, works_of_it, works_of_these_names)

A Work says whose it is by labels; its owner lives elsewhere, so there is no owner reference (kubefleet.md §4.4).
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
from kedge.api.rollout import (
    ApplyStrategy,
    PropagationPolicy,
    ReportBackStrategy,
)
from kedge.api.twins import Binding
from kedge.api.work import Work
from kedge.plan.digest import digest
from kedge.plan.revisions import parent
from kedge.plan.working.kept import digest_of
from kedge.plan.working.parts import Part, Resources

NO_OVERRIDES: Final = digest(())


class Wanted(Struct, frozen=True):
    """A Work as it should be."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    part: Part
    apply_strategy: ApplyStrategy | None
    report_back: ReportBackStrategy | None

    def body(self) -> dict[str, Any]:
        """The whole Work, to be made."""
        meta = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
        }
        workload = {"manifests": self.part.manifests} if self.part.manifests is not None else {}
        return {"metadata": meta, "spec": {"workload": workload, **self._how()}}

    def _how(self) -> dict[str, Any]:
        how = {"applyStrategy": self.apply_strategy, "reportBackStrategy": self.report_back}
        return {name: to_builtins(value) for name, value in how.items() if value is not None}


class Changes(Struct, frozen=True):
    """What makes the Works there are the wanted ones."""

    create: tuple[Wanted, ...] = ()
    patch: tuple[tuple[Work, Mapping[str, Any]], ...] = ()
    delete: tuple[Work, ...] = ()
    same: tuple[Work, ...] = ()
    blocked: str = ""
    """Why a Work that is wanted can be neither made nor changed now."""

    @property
    def moves(self) -> bool:
        """Whether the member will have something new to apply."""
        return bool(self.create or self.delete) or any("spec" in body for _, body in self.patch)


def wanted_works(
    binding: Binding, resources: Resources, *, abandons: bool, report_back: ReportBackStrategy | None
) -> tuple[Wanted, ...]:
    """The Works of a binding that has these resources; one for each part."""
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
        Wanted(
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


def compare(
    binding: Binding, wanted: Sequence[Wanted], own: Sequence[Work], named: Mapping[str, Work], rivals: frozenset[str]
) -> Changes:
    """How the Works differ from the wanted ones.

    `own` are those that say they are this binding's, `named` those that have a wanted name, whosoever they are;
    `rivals` are the names of other bindings of this placement that still exist.
    """
    blocked = [why for one in wanted if one.name in named and (why := _in_the_way(binding, named[one.name], rivals))]
    if blocked:
        return Changes(blocked="; ".join(blocked))
    patches = [(named[one.name], difference_to(one, named[one.name])) for one in wanted if one.name in named]
    names = {one.name for one in wanted}
    return Changes(
        create=tuple(one for one in wanted if one.name not in named),
        patch=tuple((work, body) for work, body in patches if body),
        delete=tuple(work for work in own if work.metadata.name not in names and not is_leaving(work)),
        same=tuple(work for work, body in patches if not body),
    )


def difference_to(wanted: Wanted, work: Work) -> dict[str, Any]:
    """The merge patch that makes a Work the wanted one; empty if it is."""
    spec = {
        **_replacing("applyStrategy", work.spec.apply_strategy, wanted.apply_strategy),
        **_replacing("reportBackStrategy", work.spec.report_back_strategy, wanted.report_back),
    }
    if digest_of(work) != wanted.part.digest:
        spec["workload"] = {"manifests": wanted.part.manifests}
    annotations = dict(wanted.annotations) | ({} if ON_DELETE in wanted.annotations else {ON_DELETE: None})
    meta = {
        "labels": _unlike(wanted.labels, work.metadata.labels),
        "annotations": _unlike(annotations, work.metadata.annotations),
    }
    meta = {name: value for name, value in meta.items() if value}
    return ({"metadata": meta} if meta else {}) | ({"spec": spec} if spec else {})


def is_leaving(work: Work) -> bool:
    return work.metadata.deletion_timestamp is not None


def _in_the_way(binding: Binding, work: Work, rivals: frozenset[str]) -> str:
    """Why this Work, which has the name of one that is wanted, cannot be it; empty if it can."""
    meta, place = work.metadata, f"Work {work.metadata.namespace}/{work.metadata.name}"
    if (parent(meta), meta.labels.get(PARENT_NAMESPACE)) != (parent(binding.metadata), binding.metadata.namespace):
        whose = "/".join(filter(None, (meta.labels.get(PARENT_NAMESPACE), parent(meta)))) or "nobody known here"
        return f"{place} belongs to {whose}: rename one of the two placements, or delete the Work"
    if is_leaving(work):
        return f"{place} is being deleted, and is made again when it is gone"
    other = meta.labels.get(PARENT_BINDING, "")
    if other != binding.metadata.name and other in rivals:
        return f"{place} still belongs to binding {other}, which is to go first"
    return ""


def _replacing(name: str, old: ApplyStrategy | ReportBackStrategy | None, new: Any) -> dict[str, Any]:
    """The part of a merge patch that leaves nothing of the old value."""
    if old == new:
        return {}
    return {name: None if new is None else _instead(to_builtins(old) if old else {}, to_builtins(new))}


def _instead(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    gone = {name: None for name in old if name not in new}
    return gone | {
        name: _instead(old.get(name) or {}, value) if isinstance(value, dict) else value for name, value in new.items()
    }


def _unlike(wanted: Mapping[str, str | None], there: Mapping[str, str]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if there.get(key) != value}
