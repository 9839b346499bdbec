"""Picture: what a hub holds of some placements at one moment: all that a preview starts from.

Written and read as a Kubernetes List, so that what `kubectl get -o yaml` prints will do as well. It may hold Secrets,
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
from kedge.api.resource import Resource
from kedge.api.twins import CLUSTER, NAMESPACED, TWINS, Twins
from kedge.kube.codec import Untyped

TAKEN: Final = "kedge.dev/taken-at"
"""Annotation of a saved picture: when it was taken."""
FLEET_GROUPS: Final = ("placement.kubernetes-fleet.io", "cluster.kubernetes-fleet.io")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class BadPicture(ValueError):
    """A file that is no picture of a fleet; says why."""


class Target(Struct, frozen=True):
    """One placement, by its name, and its namespace if it is a ResourcePlacement."""

    name: str
    namespace: str | None = None

    @property
    def twins(self) -> Twins:
        return NAMESPACED if self.namespace else CLUSTER

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.twins.placement.resource.kind} {self.path}"


class Picture(Struct, frozen=True):
    """The objects of a hub at one moment."""

    taken: datetime
    objects: tuple[Untyped, ...]

    def of(self, resource: Resource) -> Iterator[Untyped]:
        """The objects of one kind, in whatever version."""
        for obj in self.objects:
            if (group_in(obj), obj.get("kind")) == (resource.group, resource.kind):
                yield obj

    def typed(self, kind: type[Any]) -> list[Any]:
        """The same, read; what cannot be read is left out, as a controller leaves it."""
        found = []
        for obj in self.of(kind.resource):
            try:
                found.append(msgspec.convert(obj, kind))
            except msgspec.ValidationError:
                continue
        return found

    @property
    def targets(self) -> tuple[Target, ...]:
        """The placements in it."""
        kinds = (twins.placement.resource for twins in TWINS)
        return tuple(target_of(obj) for kind in kinds for obj in self.of(kind))

    def has(self, target: Target) -> bool:
        return target in self.targets


def target_of(placement: Untyped) -> Target:
    meta = placement["metadata"]
    return Target(meta["name"], meta.get("namespace"))


def belongs_to(target: Target, labels: Mapping[str, str], namespace: str | None = None) -> bool:
    """Whether labels say so: of a Work, which is in a member's namespace, or of what is in the placement's own."""
    where = labels.get(PARENT_NAMESPACE) or namespace
    return labels.get(PARENT_PLACEMENT) == target.name and where == target.namespace


def group_in(obj: Mapping[str, Any]) -> str:
    return str(obj.get("apiVersion", "")).rpartition("/")[0]


def meta_of(obj: Untyped) -> ObjectMeta:
    return msgspec.convert(obj["metadata"], ObjectMeta)


# As text


def written(picture: Picture) -> str:
    """A picture as YAML."""
    metadata = {"annotations": {TAKEN: picture.taken.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}}
    body = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": list(picture.objects)}
    return yaml.dump(body, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, allow_unicode=True)


def read(text: str) -> Picture:
    """A picture from what was saved, or from what kubectl printed. Raises `BadPicture`."""
    documents = documents_in(text)
    objects = tuple(objects_in(documents))
    if not objects:
        raise BadPicture("it holds no objects")
    return Picture(_taken(documents, text), objects)


def documents_in(text: str) -> list[Any]:
    """The documents of a YAML or JSON text. Raises `BadPicture`."""
    try:
        # As JSON has them: a date is text.
        return [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    except yaml.YAMLError as error:
        raise BadPicture(f"it is no YAML: {' '.join(str(error).split())}") from error


def objects_in(documents: Iterable[Any]) -> Iterator[Untyped]:
    """Every object, those of Lists included. Raises `BadPicture`."""
    for document in documents:
        if not isinstance(document, dict):
            raise BadPicture(f"it holds {type(document).__name__} where an object should be: {str(document)[:60]}")
        if str(document.get("kind", "")).endswith("List") and "items" in document:
            yield from objects_in(document["items"] or ())
            continue
        name = document.get("metadata", {}).get("name") if isinstance(document.get("metadata"), dict) else None
        if not document.get("apiVersion") or not document.get("kind") or not isinstance(name, str):
            shown = str(document)[:60]
            raise BadPicture(f"an object in it lacks apiVersion, kind or metadata.name: {shown}")
        yield document


def _taken(documents: list[Any], text: str) -> datetime:
    """When it was taken; of what does not say, the last moment it speaks of."""
    for document in documents:
        said = ((document.get("metadata") or {}).get("annotations") or {}).get(TAKEN) if document else None
        if isinstance(said, str):
            return msgspec.convert(said, datetime)
    moments = [msgspec.convert(found, datetime) for found in _MOMENT.findall(text)]
    if not moments:
        raise BadPicture("nothing in it says when it was taken")
    return max(moments)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """Reads dates as text, as JSON has them."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
