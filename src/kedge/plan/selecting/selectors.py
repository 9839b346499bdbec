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
from kedge.api.placement_kinds import Placement
from kedge.api.resource import Resource
from kedge.api.selector import InvalidSelector
from kedge.plan.selecting.candidates import Candidate
from kedge.plan.selecting.kinds import ENDPOINTS, NAMESPACE, SERVICE, Catalogue, Kind, is_hub_only

MAX_NAME: Final = 63  # of a label's value: snapshots and bindings carry the placement's name as one

IndexKey: TypeAlias = tuple[str, ...]
"""Stands for one or several objects: the key of an index from objects to the placements that may select them."""


class ResolvedSelector(Struct, frozen=True):
    """A valid selector: objects of a kind, in one namespace if the kind is namespaced."""

    field: str
    selector: ResourceSelector
    resource: Resource
    namespace: str | None = None

    @property
    def includes_contents(self) -> bool:
        """Whether it selects a namespace with everything in it."""
        scope = self.selector.selection_scope
        return _key(self.selector) == NAMESPACE and scope == SelectionScope.namespace_with_resources

    @property
    def limits_contents(self) -> bool:
        """Whether it selects a namespace with only those objects in it that other selectors select."""
        scope = self.selector.selection_scope
        return _key(self.selector) == NAMESPACE and scope == SelectionScope.namespace_with_resource_selectors

    def matches(self, found: Candidate) -> bool:
        """Whether it selects this object."""
        if self.selector.name:
            return found.metadata.name == self.selector.name
        return self.selector.label_selector is None or self.selector.label_selector.matches(found.metadata.labels)


class ResolvedSelectors(Struct, frozen=True):
    """The valid selectors of a placement, and what is wrong with the others."""

    selectors: tuple[ResolvedSelector, ...] = ()
    problems: tuple[str, ...] = ()

    def resources(self, catalogue: Catalogue) -> tuple[Resource, ...]:
        """Every kind that has to be listed to know what is selected."""
        kinds = [resolved.resource for resolved in self.selectors]
        if any(resolved.includes_contents for resolved in self.selectors):
            kinds += [kind.resource for kind in catalogue.placeable_namespaced]
        service = catalogue.preferred(SERVICE)
        if service and any((kind.group, kind.kind) == ENDPOINTS for kind in kinds):
            kinds.append(service.resource)  # endpoints of a service are its controller's, not the user's
        return tuple(dict.fromkeys(kinds))

    def index_keys(self) -> tuple[IndexKey, ...]:
        """The keys of the objects that may be selected."""
        return tuple(dict.fromkeys(key for resolved in self.selectors for key in _index_keys(resolved)))


def resolve_selectors(placement: Placement, catalogue: Catalogue) -> ResolvedSelectors:
    """The selectors of this placement on a hub that serves these kinds."""
    wrong = [problem for problem in (name_problem(placement), namespace_problem(placement)) if problem]
    only = _single_namespace(placement)
    selectors: list[ResolvedSelector] = []
    for number, selector in enumerate(placement.spec.resource_selectors):
        found = _resolve(f"spec.resourceSelectors[{number}]", selector, placement, only, catalogue)
        if isinstance(found, ResolvedSelector):
            selectors.append(found)
        else:
            wrong.append(found)
    return ResolvedSelectors(tuple(selectors), tuple(wrong))


def name_problem(placement: Placement) -> str:
    """What is wrong with a placement's name, if anything: its snapshots and bindings name it in a label."""
    name = placement.metadata.name
    if len(name) <= MAX_NAME:
        return ""
    return (
        f"metadata.name has {len(name)} characters, and what belongs to a placement carries its name in a label of at "
        f"most {MAX_NAME}: make a placement with a shorter name"
    )


def status_namespace_problem(placement: Placement) -> str:
    """What is wrong if a placement with statusReportingScope NamespaceAccessible changes its namespace; empty if it
    does not.
    """
    new = status_namespace(placement)
    was = [one.name for one in placement.status.selected_resources if (one.group, one.kind) == NAMESPACE]
    if not new or not was or new in was:
        return ""
    return (
        f"the namespace of a placement with statusReportingScope NamespaceAccessible cannot change from {was[0]} to "
        f"{new}: select {was[0]} again, or make another placement"
    )


def status_namespace(placement: Placement) -> str:
    """The namespace in which a placement reports its status; empty if there is none."""
    if placement.spec.status_reporting_scope != StatusReportingScope.namespace_accessible:
        return ""
    return next((one.name for one in placement.spec.resource_selectors if _key(one) == NAMESPACE and one.name), "")


def index_keys_of(resource: Resource, found: Candidate) -> Iterable[IndexKey]:
    """Every key that stands for this object."""
    group, kind, namespace = resource.group, resource.kind, found.metadata.namespace or ""
    yield "one", group, kind, namespace, found.metadata.name
    yield "all", group, kind, namespace
    if namespace:
        yield "in", namespace
        yield ("anywhere",)


def _index_keys(resolved: ResolvedSelector) -> Iterable[IndexKey]:
    group, kind, namespace = resolved.resource.group, resolved.resource.kind, resolved.namespace or ""
    name = resolved.selector.name
    yield ("one", group, kind, namespace, name) if name else ("all", group, kind, namespace)
    if resolved.includes_contents:
        yield ("in", name) if name else ("anywhere",)
    if (group, kind) == ENDPOINTS:
        yield "all", *SERVICE, namespace


def _resolve(
    field: str, selector: ResourceSelector, placement: Placement, only: str | None, catalogue: Catalogue
) -> ResolvedSelector | str:
    """One selector, or what is wrong with it."""
    kind = catalogue.find(selector.group, selector.version, selector.kind)
    if kind is None:
        return f"{field} selects {_named(selector)}, {_not_served(selector, catalogue)}"
    problem = _kind_problem(kind, placement, only) or _fields_problem(selector) or _selected_namespace_problem(selector)
    if problem:
        return f"{field} {problem}"
    namespace = placement.metadata.namespace if placement.resource.namespaced else only
    return ResolvedSelector(field, selector, kind.resource, namespace if kind.resource.namespaced else None)


def _not_served(selector: ResourceSelector, catalogue: Catalogue) -> str:
    version = f"{selector.group}/{selector.version}"
    if version in catalogue.unavailable:
        return f"but the server behind {version} does not answer: see to its APIService on the hub"
    if versions := catalogue.versions(selector.group, selector.kind):
        return f"which the hub serves as {', '.join(versions)}: correct version"
    return "which the hub does not serve: install its CustomResourceDefinition, or correct group, version or kind"


def _kind_problem(kind: Kind, placement: Placement, only: str | None) -> str:
    name = kind.resource.kind
    if is_hub_only(kind.resource):
        return f"selects {name}, a kind that belongs to the hub and is never placed: remove it"
    if not kind.watchable:
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


def _fields_problem(selector: ResourceSelector) -> str:
    if selector.name and selector.label_selector is not None:
        return "gives both name and labelSelector: remove one of them"
    try:
        if selector.label_selector is not None:
            selector.label_selector.matches({})
    except InvalidSelector as error:
        return f"has a labelSelector that means nothing: {error}"
    return ""


def _selected_namespace_problem(selector: ResourceSelector) -> str:
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


def namespace_problem(placement: Placement) -> str:
    """Why a placement in this namespace is not followed; empty if it is."""
    namespace = placement.metadata.namespace
    if is_followed(placement):
        return ""
    return (
        f"metadata.namespace is {namespace}, which is reserved: what is in namespaces that begin with "
        f"{' or '.join(RESERVED_PREFIXES)} is never placed"
    )


def _single_namespace(placement: Placement) -> str | None:
    """The namespace in which a ClusterResourcePlacement selectors single objects, if it does."""
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
