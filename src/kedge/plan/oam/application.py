"""Application: the components, their traits and the ApplicationConfiguration that one Application asks for.

Pure: the same Application gives the same objects. Refuses (`OamRefused`) in words what cannot be read or conflicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, to_builtins

from kedge.api.oam.applications import Application, ApplicationComponent, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.keys import (
    APP_REVISION_LABEL,
    APPCONFIG_ROLLOUT,
    CREATING,
    NAME_LABEL,
    ROLLING_COMPONENTS,
    ROLLOUT_TEMPLATE,
)
from kedge.api.oam.rollout_status import RollingState
from kedge.api.oam.rollouts import AppRollout
from kedge.plan.fields import Object, at, text
from kedge.plan.oam import traits as traiting
from kedge.plan.oam.component_types import objects_of
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import revision_number

_PLAN: Final = "spec.rolloutPlan"


class RenderedComponent(Struct, frozen=True):
    """One component of an Application, as objects."""

    name: str
    workload: Object
    traits: tuple[Object, ...] = ()
    """Its traits, and objects beside its workload."""
    revision: str = ""
    """What its revision is to be called; numbered if empty."""

    def component(self, namespace: str) -> Object:
        """As a Component."""
        resource = Component.resource
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {"workload": self.workload},
        }


class RevisedComponent(Struct, frozen=True):
    """One component of an ApplicationRevision."""

    name: str
    revision: str
    """The component revision's name."""
    component: Object
    """The Component."""
    traits: tuple[Object, ...] = ()


def is_template(application: Application) -> bool:
    """Whether a rollout brings this Application in, and its controller leaves it alone."""
    return application.metadata.annotations.get(ROLLOUT_TEMPLATE) == "true"


def render(application: Application) -> tuple[RenderedComponent, ...]:
    """The components of an Application."""
    given = application.spec.components
    if not given:
        raise OamRefused("the Application has no components")
    if twice := [name for name, number in Counter(one.name for one in given).items() if number > 1]:
        raise OamRefused(f"two components have the name {twice[0]}: each needs a name of its own")
    rolled = rolled_by_plan(application)
    return tuple(_rendered(one, _PLAN if one.name in rolled else "") for one in given)


def rolled_by_plan(application: Application) -> tuple[str, ...]:
    """The components that the rollout plan of the Application itself rolls out: the first one."""
    if application.spec.rollout_plan is None:
        return ()
    return tuple(one.name for one in application.spec.components[:1])


def _rendered(component: ApplicationComponent, rolled_by: str) -> RenderedComponent:
    found = objects_of(component)
    traits = tuple(traiting.trait_object(component.name, trait) for trait in component.traits)
    if problem := traiting.conflict(component.name, traits, rolled_by=rolled_by):
        raise OamRefused(problem)
    return RenderedComponent(component.name, found.workload, (*traits, *found.others), component.external_revision)


def configuration(
    application: Application, revision: str, components: Iterable[tuple[RenderedComponent, str]]
) -> Object:
    """The ApplicationConfiguration of a revision of an Application; each component comes with its revision's name.

    It is called as the revision, so that each state has one of its own.
    """
    meta, resource = application.metadata, ApplicationConfiguration.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": revision,
            "namespace": meta.namespace,
            "labels": {NAME_LABEL: meta.name, APP_REVISION_LABEL: revision},
        },
        "spec": {"components": [_configured(one, name) for one, name in components]},
    }


def _configured(component: RenderedComponent, revision: str) -> Object:
    traits = [{"trait": trait} for trait in component.traits]
    return {"componentName": component.name, "revisionName": revision} | ({"traits": traits} if traits else {})


def configuration_annotations(application: Application, *, upgrades: bool, rolling: Iterable[str]) -> Mapping[str, str]:
    """The annotations of a new ApplicationConfiguration. `upgrades`: whether there was one before."""
    found = {
        APPCONFIG_ROLLOUT: "true" if upgrades else "",
        CREATING: application.metadata.annotations.get(CREATING, ""),
        ROLLING_COMPONENTS: ",".join(rolling),
    }
    return {key: value for key, value in found.items() if value}


def rolling_now(application: Application, revision: str = "", rollouts: Iterable[AppRollout] = ()) -> tuple[str, ...]:
    """The components that something beside their traits rolls out now.

    Those that the Application's own plan or an annotation names, and those of AppRollouts which are still to bring them
    to this revision. While a rollout brings the Application in and names none, the first one.
    """
    given = application.metadata.annotations
    asked = (name for one in rollouts for name in rolled_by(application, revision, one))
    named = (*rolled_by_plan(application), *names_in(given.get(ROLLING_COMPONENTS, "")), *asked)
    if not named and given.get(CREATING) == "true":
        named = tuple(one.name for one in application.spec.components[:1])
    return tuple(dict.fromkeys(named))


def rolled_by(application: Application, revision: str, rollout: AppRollout) -> tuple[str, ...]:
    """The components of this revision that an AppRollout is to bring in, or has yet to be told of.

    One that has succeeded with this revision is done. All components, if it names none: it is not guessed which.
    """
    spec, status = rollout.spec, rollout.status
    if revision_number(spec.target_app_revision_name, application.metadata.name) is None:
        return ()
    is_done = status.rolling_state is RollingState.succeeded and status.last_target_app_revision == revision
    if is_done and spec.target_app_revision_name == revision:
        return ()
    names = tuple(one.name for one in application.spec.components)
    return tuple(name for name in spec.component_list if name in names) or names


def names_in(listed: str) -> tuple[str, ...]:
    """The names in a list that is separated by commas."""
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def rolling_components(configuration: ApplicationConfiguration) -> frozenset[str]:
    """The components of a configuration whose workloads are only written frozen, since something rolls them out.

    Those with a rollout among their traits, and those that an annotation names.
    """
    named = names_in(configuration.metadata.annotations.get(ROLLING_COMPONENTS, ""))
    with_traits = (
        one.component_name
        for one in configuration.spec.components
        if any(traiting.is_rollout(each.trait) for each in one.traits)
    )
    return frozenset((*named, *with_traits))


# Revisions


def application_revision(
    application: Application,
    revision: str,
    components: Iterable[RenderedComponent],
    configured: Object,
    owner: Mapping[str, Any],
) -> Object:
    """The ApplicationRevision that keeps the Application without its rollout plan, and what was made of it."""
    meta = application.metadata
    spec: dict[str, Any] = to_builtins(application.spec)
    spec.pop("rolloutPlan", None)
    kept = {
        "apiVersion": Application.resource.api_version,
        "kind": Application.resource.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "spec": spec,
    }
    return {
        "metadata": {
            "name": revision,
            "namespace": meta.namespace,
            "labels": {NAME_LABEL: meta.name},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "application": kept,
            "components": [{"raw": one.component(meta.namespace or "")} for one in components],
            "applicationConfiguration": configured,
        },
    }


def components_of(revision: ApplicationRevision) -> tuple[RevisedComponent, ...]:
    """The components of an ApplicationRevision, with the names of their revisions."""
    kept = {text(one.raw, "metadata", "name"): one.raw for one in revision.spec.components}
    configured = at(revision.spec.application_configuration, "spec", "components")
    return tuple(
        RevisedComponent(name, text(one, "revisionName"), kept[name], _traits_in(one))
        for one in (configured if isinstance(configured, list) else [])
        if (name := text(one, "componentName")) in kept
    )


def _traits_in(configured: Object) -> tuple[Object, ...]:
    found = at(configured, "traits")
    return tuple(one["trait"] for one in found if isinstance(at(one, "trait"), Mapping)) if found else ()
