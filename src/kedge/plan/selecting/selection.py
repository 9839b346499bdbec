"""Selection: which objects of the hub a placement selects, in the order in which a snapshot holds them.

    selection = select_objects(resolve_selectors(placement, catalogue), catalogue, view)

The same hub gives the same selection. If something cannot be seen, nothing is selected, and `problem` or `pending` says
what: an object that is not seen must not be taken for deleted. Objects that are being deleted are not selected, nor is
anything in a namespace that is being deleted. Kinds that others need come first, as in KubeFleet (kubefleet.md §4.1);
members have an apply order of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.resource import Resource
from kedge.plan.digest import digest
from kedge.plan.identifiers import identifier_of
from kedge.plan.selecting.candidates import Candidate
from kedge.plan.selecting.kinds import ENDPOINTS, SERVICE, Catalogue
from kedge.plan.selecting.selectors import ResolvedSelector, ResolvedSelectors
from kedge.plan.text import object_name

MAX_NAMED = 3
"""How many objects a problem names; there may be thousands."""


class HubView(Protocol):
    """The objects of the hub, as far as they can be seen."""

    def problem(self, resource: Resource) -> str:
        """Why objects of this kind cannot be seen; empty if they can."""
        ...

    def is_ready(self, resource: Resource) -> bool:
        """Whether all objects of this kind have been listed."""
        ...

    def all(self, resource: Resource, namespace: str | None = None) -> Iterable[Candidate]:
        """The objects of this kind; in one namespace, if one is given."""
        ...

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Candidate | None: ...


class SelectedObject(Struct, frozen=True, gc=False):
    """One selected object, as it was seen."""

    resource: Resource
    namespace: str | None
    name: str
    uid: str
    digest: str

    @property
    def identifier(self) -> ResourceIdentifier:
        """How statuses name it."""
        kind = self.resource
        return ResourceIdentifier(
            group=kind.group, version=kind.version, kind=kind.kind, name=self.name, namespace=self.namespace
        )

    def __str__(self) -> str:
        return object_name(self.resource.kind, self.namespace, self.name)


class Selection(Struct, frozen=True, dict=True):
    """What a placement selects, in the order of a snapshot.

    `problem`: what a user has to correct before anything can be selected. `pending`: what is not known yet.
    `unmatched`: the fields of the selectors that select nothing.
    """

    objects: tuple[SelectedObject, ...] = ()
    problem: str = ""
    pending: str = ""
    unmatched: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether `objects` is what there is to place."""
        return not self.problem and not self.pending

    @property
    def warning(self) -> str:
        """That some selectors select nothing: not an error, but probably not wanted."""
        if not self.unmatched:
            return ""
        more = f" and {len(self.unmatched) - MAX_NAMED} more" if len(self.unmatched) > MAX_NAMED else ""
        verb, it = ("selects", "it") if len(self.unmatched) == 1 else ("select", "them")
        named = f"{', '.join(self.unmatched[:MAX_NAMED])}{more}"
        return f"{named} {verb} nothing on the hub: correct {it}, or make what is meant"

    @cached_property
    def digest(self) -> str:
        """The digest of what is selected, with its content."""
        return contents_digest((found.identifier, found.digest) for found in self.objects)


def manifests_digest(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The digest of the selection that these manifests come from."""
    return contents_digest((identifier_of(manifest), digest(manifest)) for manifest in manifests)


def contents_digest(contents: Iterable[tuple[ResourceIdentifier, str]]) -> str:
    """The digest of a list of objects, each with the digest of its content."""
    return digest([[each.group, each.version, each.kind, each.namespace, each.name, seen] for each, seen in contents])


def select_objects(
    resolved: ResolvedSelectors, catalogue: Catalogue, view: HubView, dialect: Dialect = Dialect.seed
) -> Selection:
    """What is selected on this hub."""
    problems = [*resolved.problems, *_unreadable_kinds(resolved, catalogue, view)]
    if problems:
        return Selection(problem="; ".join(problems))
    if waits := [kind for kind in resolved.resources(catalogue) if not view.is_ready(kind)]:
        return Selection(pending=f"the hub has not told yet of all {', '.join(map(str, waits[:MAX_NAMED]))}")
    selected = [
        (selector, found) for selector in resolved.selectors for found in _selected_by(selector, catalogue, view)
    ]
    selection = _combined(
        sorted(selected, key=lambda each: snapshot_order(each[1].resource, each[1].namespace, each[1].name))
    )
    matched = {selector.field for selector, _ in selected}
    unmatched = [selector for selector in resolved.selectors if selector.field not in matched]
    if dialect is Dialect.kubefleet and (
        lacking := next((selector for selector in unmatched if selector.limits_contents), None)
    ):
        return Selection(problem=_no_namespace(lacking))
    return replace(selection, unmatched=tuple(selector.field for selector in unmatched))


def _no_namespace(selector: ResolvedSelector) -> str:
    """In KubeFleet's words, which its tests look for, and what to do."""
    return (
        "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected: "
        f"{selector.field} names {selector.selector.name}; make that namespace on the hub, or correct the name"
    )


def _unreadable_kinds(resolved: ResolvedSelectors, catalogue: Catalogue, view: HubView) -> Iterator[str]:
    """The problems of kinds that matter here and cannot be read."""
    for kind in resolved.resources(catalogue):
        if problem := view.problem(kind):
            yield f"objects of kind {kind} cannot be read on the hub: {problem}"
    if catalogue.unavailable and any(selector.includes_contents for selector in resolved.selectors):
        names = ", ".join(catalogue.unavailable)
        yield f"the servers behind {names} do not answer, so that nobody knows all that is in a namespace of the hub"


def _selected_by(selector: ResolvedSelector, catalogue: Catalogue, view: HubView) -> Iterator[SelectedObject]:
    """What one selector selects."""
    for found in _matching(selector, view):
        if not _may_be_placed(selector.resource, found, catalogue, view):
            continue
        yield _selected_object(selector.resource, found)
        if selector.includes_contents:
            yield from _contents(found.metadata.name, catalogue, view)


def _matching(selector: ResolvedSelector, view: HubView) -> Iterable[Candidate]:
    if selector.selector.name:
        found = view.get(selector.resource, selector.selector.name, selector.namespace)
        return () if found is None else (found,)
    return [found for found in view.all(selector.resource, selector.namespace) if selector.matches(found)]


def _contents(namespace: str, catalogue: Catalogue, view: HubView) -> Iterator[SelectedObject]:
    """Everything in a namespace that is placed with it."""
    for kind in catalogue.placeable_namespaced:
        for found in view.all(kind.resource, namespace):
            if _may_be_placed(kind.resource, found, catalogue, view):
                yield _selected_object(kind.resource, found)


def _may_be_placed(resource: Resource, found: Candidate, catalogue: Catalogue, view: HubView) -> bool:
    if not found.may_be_placed or (resource.group, resource.kind) in catalogue.excluded:
        return False
    meta = found.metadata
    if (resource.group, resource.kind) == ENDPOINTS and (service := catalogue.preferred(SERVICE)):
        return view.get(service.resource, meta.name, meta.namespace) is None
    return True


def _selected_object(resource: Resource, found: Candidate) -> SelectedObject:
    meta = found.metadata
    return SelectedObject(resource, meta.namespace if resource.namespaced else None, meta.name, meta.uid, found.digest)


def _combined(selected: list[tuple[ResolvedSelector, SelectedObject]]) -> Selection:
    """What all selectors select together. That two of them select the same object is an error."""
    by_object: dict[tuple[str, str, str | None, str], tuple[ResolvedSelector, SelectedObject]] = {}
    twice: list[str] = []
    for selector, found in selected:
        key = (found.resource.group, found.resource.kind, found.namespace, found.name)
        first, _ = by_object.setdefault(key, (selector, found))
        if first is not selector:
            twice.append(f"{first.field} and {selector.field} both select {found}")
    if twice:
        more = f", and {len(twice) - MAX_NAMED} more" if len(twice) > MAX_NAMED else ""
        return Selection(
            problem=f"{', '.join(twice[:MAX_NAMED])}{more}: an object may be selected once; change one of them"
        )
    return Selection(objects=tuple(found for _, found in by_object.values()))


# Order


_FIRST: Final = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANK: Final = {kind: rank for rank, kind in enumerate(_FIRST)}


def snapshot_order(resource: Resource, namespace: str | None, name: str) -> tuple[int, str, str, str, str]:
    """What to sort an object by."""
    return _RANK.get(resource.kind, len(_FIRST)), resource.kind, namespace or "", name, resource.group
