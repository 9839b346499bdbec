"""Fleet state: the objects of a hub that a preview starts from, as of one moment.

Written and read as a Kubernetes List, so the output of `kubectl get -o yaml` can be read as well. It may hold Secrets,
as placements do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from kedge.api.fleet import PARENT_NAMESPACE, PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PLACEMENT_KINDS, PlacementKinds
from kedge.api.resource import Resource
from kedge.kube.codec import Untyped
from kedge.plan.text import path_of

TAKEN: Final = "kedge.dev/taken-at"
"""Annotation of a saved file: when the fleet was read."""
FLEET_GROUPS: Final = ("placement.kubernetes-fleet.io", "cluster.kubernetes-fleet.io")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class BadFleetFile(ValueError):
    """A file that holds no fleet; the message says why."""


class Target(Struct, frozen=True):
    """One placement, by its name, and its namespace if it is a ResourcePlacement."""

    name: str
    namespace: str | None = None

    @property
    def kinds(self) -> PlacementKinds:
        return NAMESPACED if self.namespace else CLUSTER

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kinds.placement.resource.kind} {self.path}"


class FleetState(Struct, frozen=True):
    """The objects of a hub at one moment."""

    taken: datetime
    objects: tuple[Untyped, ...]

    def of(self, resource: Resource) -> Iterator[Untyped]:
        """The objects of one kind, in whatever version."""
        for obj in self.objects:
            if (group_of(obj), obj.get("kind")) == (resource.group, resource.kind):
                yield obj

    def typed(self, kind: type[Any]) -> list[Any]:
        """The same, typed. Objects that cannot be read are left out, as in a controller's cache."""
        found = []
        for obj in self.of(kind.resource):
            try:
                found.append(msgspec.convert(obj, kind))
            except msgspec.ValidationError:
                continue
        return found

    @property
    def targets(self) -> tuple[Target, ...]:
        """The placements of the fleet."""
        kinds = (placement_kinds.placement.resource for placement_kinds in PLACEMENT_KINDS)
        return tuple(target_of(obj) for kind in kinds for obj in self.of(kind))

    def has(self, target: Target) -> bool:
        return target in self.targets


def target_of(placement: Untyped) -> Target:
    meta = placement["metadata"]
    return Target(meta["name"], meta.get("namespace"))


def belongs_to(target: Target, labels: Mapping[str, str], namespace: str | None = None) -> bool:
    """Whether these labels belong to the placement: of a Work in a member's namespace, or of an object in its own."""
    where = labels.get(PARENT_NAMESPACE) or namespace
    return labels.get(PARENT_PLACEMENT) == target.name and where == target.namespace


def group_of(obj: Mapping[str, Any]) -> str:
    return str(obj.get("apiVersion", "")).rpartition("/")[0]


def meta_of(obj: Untyped) -> ObjectMeta:
    return msgspec.convert(obj["metadata"], ObjectMeta)


# As text


def to_yaml(fleet: FleetState) -> str:
    """The fleet as YAML."""
    metadata = {"annotations": {TAKEN: fleet.taken.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}}
    body = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": list(fleet.objects)}
    return yaml.dump(body, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, allow_unicode=True)


def from_yaml(text: str) -> FleetState:
    """The fleet from a saved file, or from the output of kubectl. Raises `BadFleetFile`."""
    documents = parse_documents(text)
    objects = tuple(parse_objects(documents))
    if not objects:
        raise BadFleetFile("it holds no objects")
    return FleetState(_taken(documents, text), objects)


def parse_documents(text: str) -> list[Any]:
    """The documents of a YAML or JSON text. Raises `BadFleetFile`."""
    try:
        # As JSON has them: a date is text.
        return [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    except yaml.YAMLError as error:
        raise BadFleetFile(f"it is no YAML: {' '.join(str(error).split())}") from error


def parse_objects(documents: Iterable[Any]) -> Iterator[Untyped]:
    """Every object, those of Lists included. Raises `BadFleetFile`."""
    for document in documents:
        if not isinstance(document, dict):
            raise BadFleetFile(f"it holds {type(document).__name__} where an object should be: {str(document)[:60]}")
        if str(document.get("kind", "")).endswith("List") and "items" in document:
            yield from parse_objects(document["items"] or ())
            continue
        name = document.get("metadata", {}).get("name") if isinstance(document.get("metadata"), dict) else None
        if not document.get("apiVersion") or not document.get("kind") or not isinstance(name, str):
            shown = str(document)[:60]
            raise BadFleetFile(f"an object in it lacks apiVersion, kind or metadata.name: {shown}")
        yield document


def _taken(documents: list[Any], text: str) -> datetime:
    """When the fleet was read. If nothing says so, the latest timestamp in it."""
    for document in documents:
        said = ((document.get("metadata") or {}).get("annotations") or {}).get(TAKEN) if document else None
        if isinstance(said, str):
            return msgspec.convert(said, datetime)
    moments = [msgspec.convert(found, datetime) for found in _MOMENT.findall(text)]
    if not moments:
        raise BadFleetFile("nothing in it says when it was taken")
    return max(moments)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """Reads dates as text, as JSON has them."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
