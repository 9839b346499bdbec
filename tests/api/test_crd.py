"""The CustomResourceDefinition around a schema."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from msgspec import field
from msgspec.structs import replace

from kedge.api.crd import Defined, crd
from kedge.api.dialect import Dialect
from kedge.api.markers import AGE, Column, Definition, Rule, Scale, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.schema import SchemaError


class Widget(Value, frozen=True):
    """A thing."""

    resource: ClassVar[Resource] = Resource("example.com", "v1", "Widget", "widgets")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1", storage=True), Version("v1alpha1", served=False, deprecation_warning="use v1")),
        short_names=("wd",),
        categories=("all",),
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
        schema=(Schema(rules=(Rule("true", "never said"),)),),
        columns=(
            Column("Size", ".spec.size", "integer", wide=True),
            condition_column("Ready", "Ready", versions=("v1",)),
            condition_column("Fine", "Fine", dialect=Dialect.kubefleet),
            AGE,
        ),
    )
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class Plain(Value, frozen=True):
    """The least a kind can be."""

    resource: ClassVar[Resource] = Resource("example.com", "v1", "Plain", "plains", namespaced=False)
    definition: ClassVar[Definition] = Definition(versions=(Version("v1", storage=True),))


def version(kind: type[Defined], name: str, dialect: Dialect = Dialect.seed) -> dict[str, Any]:
    found: dict[str, Any] = next(v for v in crd(kind, dialect)["spec"]["versions"] if v["name"] == name)
    return found


def test_a_crd_says_what_its_kind_is_called() -> None:
    made = crd(Widget)
    assert list(made) == ["apiVersion", "kind", "metadata", "spec"]
    assert made["metadata"] == {"name": "widgets.example.com"}
    assert made["spec"]["group"] == "example.com"
    assert made["spec"]["scope"] == "Namespaced"
    assert made["spec"]["names"] == {
        "categories": ["all"],
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "shortNames": ["wd"],
        "singular": "widget",
    }


def test_what_a_kind_does_not_have_is_left_out() -> None:
    made = crd(Plain)
    assert made["spec"]["scope"] == "Cluster"
    assert set(made["spec"]["names"]) == {"kind", "listKind", "plural", "singular"}
    assert set(version(Plain, "v1")) == {"name", "served", "storage", "schema"}


def test_versions_say_whether_they_are_served_and_stored() -> None:
    assert [(v["name"], v["served"], v["storage"]) for v in crd(Widget)["spec"]["versions"]] == [
        ("v1", True, True),
        ("v1alpha1", False, False),
    ]


def test_a_version_may_be_deprecated() -> None:
    old = version(Widget, "v1alpha1")
    assert (old["deprecated"], old["deprecationWarning"]) == (True, "use v1")


def test_subresources() -> None:
    assert version(Widget, "v1")["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def test_columns_have_types_and_priorities() -> None:
    assert version(Widget, "v1")["additionalPrinterColumns"] == [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


@pytest.mark.parametrize(
    ("name", "dialect", "columns"),
    [
        ("v1", Dialect.seed, ["Size", "Ready", "Age"]),
        ("v1", Dialect.kubefleet, ["Size", "Ready", "Fine", "Age"]),
        ("v1alpha1", Dialect.seed, ["Size", "Age"]),
        ("v1alpha1", Dialect.kubefleet, ["Size", "Fine", "Age"]),
    ],
)
def test_a_column_may_show_in_some_editions_only(name: str, dialect: Dialect, columns: list[str]) -> None:
    assert [column["name"] for column in version(Widget, name, dialect)["additionalPrinterColumns"]] == columns


def test_rules_on_the_whole_object_are_in_every_version() -> None:
    for name in ("v1", "v1alpha1"):
        schema = version(Widget, name)["schema"]["openAPIV3Schema"]
        assert schema["x-kubernetes-validations"] == [{"rule": "true", "message": "never said"}]


@pytest.mark.parametrize(
    "versions",
    [
        (Version("v1"),),
        (Version("v1", storage=True), Version("v2", storage=True)),
        (Version("v1"), Version("v2", storage=True)),
    ],
    ids=["none", "two", "not the one the types speak"],
)
def test_exactly_the_version_that_the_types_speak_is_stored(
    versions: tuple[Version, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plain, "definition", replace(Plain.definition, versions=versions))
    with pytest.raises(SchemaError, match="Plain: its types speak v1"):
        crd(Plain)
