"""Choosing: which objects of the hub a placement selects.

    selection = choose(meaning(placement, catalogue), catalogue, view)

Promises the same selection for the same hub, in the order in which it stands in a snapshot. Where something cannot be
seen, it selects nothing and says what: what is not seen must not be taken for gone. What is on its way out is not
selected, nor, if that is a namespace, what is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.resource import Resource
from kedge.plan.digest import digest
from kedge.plan.selecting.candidates import Candidate
from kedge.plan.selecting.kinds import ENDPOINTS, SERVICE, Catalogue
from kedge.plan.selecting.ordering import place
from kedge.plan.selecting.selectors import Meaning, Pick

TOLD = 3
"""How many objects a problem names; there may be thousands."""


class View(Protocol):
    """What is on the hub."""

    def problem(self, resource: Resource) -> str:
        """Why objects of this kind cannot be seen; empty if they can."""
        ...

    def is_ready(self, resource: Resource) -> bool:
        """Whether all objects of this kind are there to be seen."""
        ...

    def all(self, resource: Resource, namespace: str | None = None) -> Iterable[Candidate]:
        """The objects of this kind; in one namespace, if one is given."""
        ...

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Candidate | None: ...


class Chosen(Struct, frozen=True, gc=False):
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
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.kind} {where}"


class Selection(Struct, frozen=True, dict=True):
    """What a placement selects, in the order of a snapshot.

    `problem`: what somebody has to see to before anything can be selected. `pending`: what is not known yet.
    `idle`: the selectors that select nothing, by where they are.
    """

    chosen: tuple[Chosen, ...] = ()
    problem: str = ""
    pending: str = ""
    idle: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether `chosen` is what there is to place."""
        return not self.problem and not self.pending

    @property
    def remark(self) -> str:
        """What is no mistake, but may be none the user wants: selectors that select nothing."""
        if not self.idle:
            return ""
        more = f" and {len(self.idle) - TOLD} more" if len(self.idle) > TOLD else ""
        verb, it = ("selects", "it") if len(self.idle) == 1 else ("select", "them")
        return f"{', '.join(self.idle[:TOLD])}{more} {verb} nothing on the hub: correct {it}, or make what is meant"

    @property
    def identifiers(self) -> tuple[ResourceIdentifier, ...]:
        """How statuses name what is selected."""
        return tuple(chosen.identifier for chosen in self.chosen)

    @cached_property
    def digest(self) -> str:
        """What tells these resources, as they are, from others."""
        return contents_digest((found.identifier, found.digest) for found in self.chosen)


def manifests_digest(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The digest of the selection that these manifests were made of."""
    return contents_digest((_identifier(manifest), digest(manifest)) for manifest in manifests)


def contents_digest(contents: Iterable[tuple[ResourceIdentifier, str]]) -> str:
    """What tells one list of objects, each with the digest of its content, from another."""
    return digest([[each.group, each.version, each.kind, each.namespace, each.name, seen] for each, seen in contents])


def choose(meant: Meaning, catalogue: Catalogue, view: View, dialect: Dialect = Dialect.seed) -> Selection:
    """What is selected on this hub."""
    problems = [*meant.problems, *_out_of_sight(meant, catalogue, view)]
    if problems:
        return Selection(problem="; ".join(problems))
    if waits := [kind for kind in meant.resources(catalogue) if not view.is_ready(kind)]:
        return Selection(pending=f"the hub has not told yet of all {', '.join(map(str, waits[:TOLD]))}")
    picked = [(pick, found) for pick in meant.picks for found in _picked(pick, catalogue, view)]
    selection = _combined(sorted(picked, key=lambda each: place(each[1].resource, each[1].namespace, each[1].name)))
    busy = {pick.where for pick, _ in picked}
    idle = [pick for pick in meant.picks if pick.where not in busy]
    if dialect is Dialect.kubefleet and (lacking := next((pick for pick in idle if pick.with_selected), None)):
        return Selection(problem=_no_namespace(lacking))
    return replace(selection, idle=tuple(pick.where for pick in idle))


def _no_namespace(pick: Pick) -> str:
    """In KubeFleet's words, which its tests look for, and what to do."""
    return (
        "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected: "
        f"{pick.where} names {pick.selector.name}; make that namespace on the hub, or correct the name"
    )


def _out_of_sight(meant: Meaning, catalogue: Catalogue, view: View) -> Iterator[str]:
    """The kinds that matter here and cannot be seen."""
    for kind in meant.resources(catalogue):
        if problem := view.problem(kind):
            yield f"objects of kind {kind} cannot be read on the hub: {problem}"
    if catalogue.silent and any(pick.with_contents for pick in meant.picks):
        names = ", ".join(catalogue.silent)
        yield f"the servers behind {names} do not answer, so that nobody knows all that is in a namespace of the hub"


def _picked(pick: Pick, catalogue: Catalogue, view: View) -> Iterator[Chosen]:
    """What one selector selects."""
    for found in _matching(pick, view):
        if not _may_go(pick.resource, found, catalogue, view):
            continue
        yield _chosen(pick.resource, found)
        if pick.with_contents:
            yield from _contents(found.metadata.name, catalogue, view)


def _matching(pick: Pick, view: View) -> Iterable[Candidate]:
    if pick.selector.name:
        found = view.get(pick.resource, pick.selector.name, pick.inside)
        return () if found is None else (found,)
    return [found for found in view.all(pick.resource, pick.inside) if pick.matches(found)]


def _contents(namespace: str, catalogue: Catalogue, view: View) -> Iterator[Chosen]:
    """All that goes along with a namespace."""
    for kind in catalogue.of_namespaces:
        for found in view.all(kind.resource, namespace):
            if _may_go(kind.resource, found, catalogue, view):
                yield _chosen(kind.resource, found)


def _may_go(resource: Resource, found: Candidate, catalogue: Catalogue, view: View) -> bool:
    if not found.may_go or (resource.group, resource.kind) in catalogue.left_out:
        return False
    meta = found.metadata
    if (resource.group, resource.kind) == ENDPOINTS and (service := catalogue.preferred(SERVICE)):
        return view.get(service.resource, meta.name, meta.namespace) is None
    return True


def _chosen(resource: Resource, found: Candidate) -> Chosen:
    meta = found.metadata
    return Chosen(resource, meta.namespace if resource.namespaced else None, meta.name, meta.uid, found.digest)


def _combined(picked: list[tuple[Pick, Chosen]]) -> Selection:
    """What all selectors select together. An object that two of them select is a mistake: which was meant?"""
    by_object: dict[tuple[str, str, str | None, str], tuple[Pick, Chosen]] = {}
    twice: list[str] = []
    for pick, found in picked:
        key = (found.resource.group, found.resource.kind, found.namespace, found.name)
        first, _ = by_object.setdefault(key, (pick, found))
        if first is not pick:
            twice.append(f"{first.where} and {pick.where} both select {found}")
    if twice:
        more = f", and {len(twice) - TOLD} more" if len(twice) > TOLD else ""
        return Selection(problem=f"{', '.join(twice[:TOLD])}{more}: an object may be selected once; change one of them")
    return Selection(chosen=tuple(found for _, found in by_object.values()))


def _identifier(manifest: Mapping[str, Any]) -> ResourceIdentifier:
    group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
    meta = manifest.get("metadata") or {}
    return ResourceIdentifier(
        group=group,
        version=version,
        kind=str(manifest.get("kind", "")),
        name=str(meta.get("name", "")),
        namespace=meta.get("namespace"),
    )
