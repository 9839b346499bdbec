"""Rollout rules: what each kind of rollout may say of its target and source, and how the whole may be changed.

    rollout_problems(rollout)                 # of a rollout by itself
    rollout_update_problems(old, new)         # of a change of one

Whether what a rollout refers to exists is not asked here: the controller waits for it and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollouts import AnyRollout, ApplicationDeployment, AppRollout, Rollout, RolloutTrait
from kedge.plan.batching import part_rules
from kedge.plan.batching.spec_rules import Problem, create_problems, update_problems
from kedge.plan.batching.states import ENDED, has_begun

TARGETS: Final[Mapping[type[AnyRollout], str]] = {
    RolloutTrait: "target_ref",
    Rollout: "target_revision_name",
    AppRollout: "target_app_revision_name",
    ApplicationDeployment: "target_application_name",
}
"""The field of each spec with the target."""
SOURCES: Final[Mapping[type[AnyRollout], tuple[str, ...]]] = {
    RolloutTrait: ("source_ref",),
    Rollout: ("source_revision_name", "component_name"),
    AppRollout: ("source_app_revision_name", "component_list"),
    ApplicationDeployment: ("source_application_name", "component_list"),
}
"""The fields that say what is rolled out beside it."""


def rollout_problems(rollout: AnyRollout) -> list[Problem]:
    """What is wrong with a rollout by itself."""
    namespace = rollout.metadata.namespace or ""
    return [*reference_problems(rollout), *create_problems(rollout.spec.rollout_plan, namespace)]


def reference_problems(rollout: AnyRollout) -> list[Problem]:
    """What is wrong with what it refers to, beside its plan."""
    return list(_reference_problems(rollout, rollout.metadata.namespace or ""))


def rollout_update_problems(old: AnyRollout, new: AnyRollout) -> list[Problem]:
    """Why a rollout may not be changed so. Its status says whether it has begun and ended."""
    kind = type(new)
    moved = _differ(old, new, (TARGETS[kind],))
    ended = old.status.rolling_state in ENDED
    begun = has_begun(old.status)
    beside = _differ(old, new, SOURCES[kind])
    if beside and begun and not moved and not ended:
        return [
            Problem("spec", "the source cannot be changed while the rollout is under way unless the target changes")
        ]
    return update_problems(
        old.spec.rollout_plan,
        new.spec.rollout_plan,
        target_changed=moved or beside,
        ended=ended,
        current_batch=old.status.current_batch,
        begun=begun,
    )


def _differ(old: AnyRollout, new: AnyRollout, fields: tuple[str, ...]) -> bool:
    return any(_said(old, field) != _said(new, field) for field in fields)


def _said(rollout: AnyRollout, field: str) -> Any:
    return getattr(rollout.spec, field)


def _reference_problems(rollout: AnyRollout, namespace: str) -> Iterator[Problem]:
    match rollout:
        case RolloutTrait():
            yield from _trait_problems(rollout, namespace)
        case Rollout():
            yield from _named("spec.targetRevisionName", rollout.spec.target_revision_name, "target revision name")
            yield from _named("spec.componentName", rollout.spec.component_name, "component name")
        case AppRollout():
            name = rollout.spec.target_app_revision_name
            yield from _named("spec.targetAppRevisionName", name, "target app revision name")
            yield from _component_problems(rollout.spec.component_list)
        case ApplicationDeployment():
            name = rollout.spec.target_application_name
            yield from _named("spec.targetApplicationName", name, "target application name")
            yield from _component_problems(rollout.spec.component_list)


def _trait_problems(rollout: RolloutTrait, namespace: str) -> Iterator[Problem]:
    sources = [(f"spec.sourceRef[{index}]", source) for index, source in enumerate(rollout.spec.source_ref)]
    for path, ref in (("spec.targetRef", rollout.spec.target_ref), *sources):
        yield from _workload_problems(path, ref, namespace)


def _workload_problems(path: str, ref: ObjectReference, namespace: str) -> Iterator[Problem]:
    for name, value in (("apiVersion", ref.api_version), ("kind", ref.kind), ("name", ref.name)):
        if not value:
            yield Problem(f"{path}.{name}", "cannot be empty")
    yield from part_rules.reference_problems(path, ref, namespace)


def _named(path: str, name: str, what: str) -> Iterator[Problem]:
    if not name:
        yield Problem(path, f"{what} cannot be empty")


def _component_problems(components: tuple[str, ...]) -> Iterator[Problem]:
    if len(components) > 1:
        yield Problem("spec.componentList", "only one component can be rolled out at a time")
