"""The apiextensions group, as far as Kedge reads it: what a CRD is called, and whether it is served yet.

To write one, see `kedge.api.crds`.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource


class CustomResourceDefinitionNames(Value, frozen=True, gc=False):
    """What a kind is called."""

    kind: str = ""
    plural: str = ""


class CustomResourceDefinitionVersion(Value, frozen=True, gc=False):
    """One version of a kind, without its schema."""

    name: str
    served: bool = False
    storage: bool = False


class CustomResourceDefinitionSpec(Value, frozen=True, gc=False):
    """What a CRD defines, without schemas."""

    group: str = ""
    scope: str = ""
    names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    versions: tuple[CustomResourceDefinitionVersion, ...] | None = None


class CustomResourceDefinitionStatus(Value, frozen=True, gc=False):
    """Whether a CRD is served. Go programs write empty lists here as null."""

    conditions: tuple[Observed, ...] | None = None
    stored_versions: tuple[str, ...] | None = None


class CustomResourceDefinition(Value, frozen=True, gc=False):
    """A kind that is not built in."""

    resource: ClassVar[Resource] = Resource(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    )
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
