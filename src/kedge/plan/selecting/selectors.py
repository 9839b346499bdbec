"""Selectors: what the resource selectors of a placement mean on this hub, or what is wrong with them.

A ClusterResourcePlacement selects cluster-wide objects, and namespaces with what is in them; objects in a namespace by
themselves only beside a namespace with selectionScope NamespaceWithResourceSelectors, and only in that one. A
ResourcePlacement selects objects of its own namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api.fleet import RESERVED_PREFIXES, is_followed, is_reserved
from kedge.api.placement import ResourceSelector, SelectionScope, StatusReportingScope
from kedge.api.resource import Resource
from kedge.api.selector import InvalidSelector
from kedge.api.twins import Placement
from kedge.plan.selecting.candidates import Candidate
from kedge.plan.selecting.kinds import ENDPOINTS, NAMESPACE, SERVICE, Catalogue, Kind, is_of_the_hub

LONGEST_NAME: Final = 63  # of a label's value: snapshots and bindings carry the placement's name as one

Token: TypeAlias = tuple[str, ...]
"""Names objects, one or several, whose change may matter to a placement."""


class Pick(Struct, frozen=True):
    """One selector that means something: objects of a kind, in one namespace if that is namespaced."""

    where: str
    selector: ResourceSelector
    resource: Resource
    inside: str | None = None

    @property
    def with_contents(self) -> bool:
        """Whether a namespace is meant with all that is in it."""
        scope = self.selector.selection_scope
        return _key(self.selector) == NAMESPACE and scope == SelectionScope.namespace_with_resources

    @property
    def with_selected(self) -> bool:
        """Whether a namespace is meant with those objects in it that the other selectors select."""
        scope = self.selector.selection_scope
        return _key(self.selector) == NAMESPACE and scope == SelectionScope.namespace_with_resource_selectors

    def matches(self, found: Candidate) -> bool:
        """Whether this object is meant."""
        if self.selector.name:
            return found.metadata.name == self.selector.name
        return self.selector.label_selector is None or self.selector.label_selector.matches(found.metadata.labels)


class Meaning(Struct, frozen=True):
    """What a placement's selectors mean, and what is wrong with those that mean nothing."""

    picks: tuple[Pick, ...] = ()
    problems: tuple[str, ...] = ()

    def resources(self, catalogue: Catalogue) -> tuple[Resource, ...]:
        """Every kind that has to be looked at to tell what is selected."""
        kinds = [pick.resource for pick in self.picks]
        if any(pick.with_contents for pick in self.picks):
            kinds += [kind.resource for kind in catalogue.of_namespaces]
        service = catalogue.preferred(SERVICE)
        if service and any((kind.group, kind.kind) == ENDPOINTS for kind in kinds):
            kinds.append(service.resource)  # endpoints of a service are its controller's, not the user's
        return tuple(dict.fromkeys(kinds))

    def tokens(self) -> tuple[Token, ...]:
        """Which objects matter."""
        return tuple(dict.fromkeys(token for pick in self.picks for token in _tokens(pick)))


def meaning(placement: Placement, catalogue: Catalogue) -> Meaning:
    """What the selectors of this placement mean on a hub that serves these kinds."""
    wrong = [problem for problem in (name_problem(placement), place_problem(placement)) if problem]
    only = _only_namespace(placement)
    picks: list[Pick] = []
    for number, selector in enumerate(placement.spec.resource_selectors):
        found = _pick(f"spec.resourceSelectors[{number}]", selector, placement, only, catalogue)
        if isinstance(found, Pick):
            picks.append(found)
        else:
            wrong.append(found)
    return Meaning(tuple(picks), tuple(wrong))


def name_problem(placement: Placement) -> str:
    """What is wrong with a placement's name, if anything: what belongs to it must be able to name it in a label."""
    name = placement.metadata.name
    if len(name) <= LONGEST_NAME:
        return ""
    return (
        f"metadata.name has {len(name)} characters, and what belongs to a placement carries its name in a label of at "
        f"most {LONGEST_NAME}: make a placement with a shorter name"
    )


def strays(placement: Placement) -> str:
    """Whether a placement that shows its status in its namespace names another than it placed, which would be another
    placement; what is to be said then.
    """
    new = home_of(placement)
    was = [one.name for one in placement.status.selected_resources if (one.group, one.kind) == NAMESPACE]
    if not new or not was or new in was:
        return ""
    return (
        f"the namespace of a placement with statusReportingScope NamespaceAccessible cannot change from {was[0]} to "
        f"{new}: select {was[0]} again, or make another placement"
    )


def home_of(placement: Placement) -> str:
    """The namespace in which a placement is to show its status, if it names one."""
    if placement.spec.status_reporting_scope != StatusReportingScope.namespace_accessible:
        return ""
    return next((one.name for one in placement.spec.resource_selectors if _key(one) == NAMESPACE and one.name), "")


def tokens_of(resource: Resource, found: Candidate) -> Iterable[Token]:
    """Every token that names this object."""
    group, kind, namespace = resource.group, resource.kind, found.metadata.namespace or ""
    yield "one", group, kind, namespace, found.metadata.name
    yield "all", group, kind, namespace
    if namespace:
        yield "in", namespace
        yield ("anywhere",)


def _tokens(pick: Pick) -> Iterable[Token]:
    group, kind, namespace = pick.resource.group, pick.resource.kind, pick.inside or ""
    name = pick.selector.name
    yield ("one", group, kind, namespace, name) if name else ("all", group, kind, namespace)
    if pick.with_contents:
        yield ("in", name) if name else ("anywhere",)
    if (group, kind) == ENDPOINTS:
        yield "all", *SERVICE, namespace


def _pick(
    where: str, selector: ResourceSelector, placement: Placement, only: str | None, catalogue: Catalogue
) -> Pick | str:
    """What one selector means, or what is wrong with it."""
    kind = catalogue.find(selector.group, selector.version, selector.kind)
    if kind is None:
        return f"{where} selects {_named(selector)}, {_not_served(selector, catalogue)}"
    problem = _kind_problem(kind, placement, only) or _form_problem(selector) or _namespace_problem(selector)
    if problem:
        return f"{where} {problem}"
    inside = placement.metadata.namespace if placement.resource.namespaced else only
    return Pick(where, selector, kind.resource, inside if kind.resource.namespaced else None)


def _not_served(selector: ResourceSelector, catalogue: Catalogue) -> str:
    silent = f"{selector.group}/{selector.version}"
    if silent in catalogue.silent:
        return f"but the server behind {silent} does not answer: see to its APIService on the hub"
    if versions := catalogue.versions(selector.group, selector.kind):
        return f"which the hub serves as {', '.join(versions)}: correct version"
    return "which the hub does not serve: install its CustomResourceDefinition, or correct group, version or kind"


def _kind_problem(kind: Kind, placement: Placement, only: str | None) -> str:
    name = kind.resource.kind
    if is_of_the_hub(kind.resource):
        return f"selects {name}, a kind that belongs to the hub and is never placed: remove it"
    if not kind.followed:
        return f"selects {name}, which the hub can neither list nor watch: remove it"
    if placement.resource.namespaced and not kind.resource.namespaced:
        return (
            f"selects {name}, which is cluster-wide, but a ResourcePlacement places objects of its own namespace "
            f"{placement.metadata.namespace}: use a ClusterResourcePlacement"
        )
    if kind.resource.namespaced and not placement.resource.namespaced and only is None:
        return (
            f"selects {name}, which is in namespaces, but a ClusterResourcePlacement places cluster-wide objects: "
            "select its Namespace (with selectionScope NamespaceWithResourceSelectors to place only some of what is in "
            "it), or use a ResourcePlacement"
        )
    return ""


def _form_problem(selector: ResourceSelector) -> str:
    if selector.name and selector.label_selector is not None:
        return "gives both name and labelSelector: remove one of them"
    try:
        if selector.label_selector is not None:
            selector.label_selector.matches({})
    except InvalidSelector as error:
        return f"has a labelSelector that means nothing: {error}"
    return ""


def _namespace_problem(selector: ResourceSelector) -> str:
    if _key(selector) != NAMESPACE:
        return ""
    if selector.selection_scope == SelectionScope.namespace_with_resource_selectors and not selector.name:
        return "has selectionScope NamespaceWithResourceSelectors, which is for one namespace: give its name"
    if selector.name and is_reserved(selector.name):
        return (
            f"selects namespace {selector.name}, which is reserved and never placed, like default and all that begin "
            f"with {' or '.join(RESERVED_PREFIXES)}: choose another"
        )
    return ""


def place_problem(placement: Placement) -> str:
    """Why nothing is placed from where a placement is."""
    namespace = placement.metadata.namespace
    if is_followed(placement):
        return ""
    return (
        f"metadata.namespace is {namespace}, which is reserved: what is in namespaces that begin with "
        f"{' or '.join(RESERVED_PREFIXES)} is never placed"
    )


def _only_namespace(placement: Placement) -> str | None:
    """The namespace in which a ClusterResourcePlacement picks single objects, if it does."""
    scope = SelectionScope.namespace_with_resource_selectors
    named = (
        selector.name
        for selector in placement.spec.resource_selectors
        if _key(selector) == NAMESPACE and selector.selection_scope == scope and selector.name
    )
    return next(named, None)


def _key(selector: ResourceSelector) -> tuple[str, str]:
    return selector.group, selector.kind


def _named(selector: ResourceSelector) -> str:
    version = f"{selector.group}/{selector.version}" if selector.group else selector.version
    return f"{selector.kind} of {version}"
