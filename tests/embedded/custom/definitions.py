"""CRDs that kube-apiserver refuses, each for a reason of its own, and how to make such ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.embedded.custom.served_versions import ServedVersion
from kedge.embedded.kind import Kind

Object = dict[str, Any]

GROUP = "crd.kedge.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECT: Object = {"type": "object"}
TEXT: Object = {"type": "string"}
KEYED: Object = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "size": {"type": "integer"}}},
}


def definition(schema: Object | None = None, /, *, versions: list[Object] | None = None, **more: Any) -> Object:
    """A CRD of Widgets with this schema; `more` goes into its only version."""
    plain = OBJECT if schema is None else schema
    only = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": plain}, **more}
    spec = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [only] if versions is None else versions,
    }
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": f"widgets.{GROUP}"}, "spec": spec}


def version(name: str, schema: Object | None = None, /, **more: Any) -> Object:
    """A version that is served and not stored, unless `more` says so."""
    plain = OBJECT if schema is None else schema
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": plain}, **more}


def holding(**members: Object) -> Object:
    """The schema of an object with these members in its spec."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": members}}}


def changed(crd: Object, /, **spec: Any) -> Object:
    return {**crd, "spec": {**crd["spec"], **spec}}


def named(**names: Any) -> Object:
    crd = definition()
    return changed(crd, names={**crd["spec"]["names"], **names})


def ruled(rule: str, /, **more: Any) -> Object:
    """A CRD with one rule on its spec."""
    members: dict[str, Object] = {
        "size": {"type": "integer"},
        "share": {"type": "number"},
        "name": {"type": "string", "maxLength": 20},
        "since": {"type": "string", "format": "date-time"},
        "labels": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 9}},
        "parts": {
            "type": "array",
            "maxItems": 5,
            "items": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}},
        },
    }
    schema = holding(**members)
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": rule, **more}]
    return definition(schema)


def scaled(**scale: str) -> Object:
    return definition(subresources={"scale": scale})


def printed(**column: Any) -> Object:
    return definition(additionalPrinterColumns=[column])


def selected(*paths: str) -> Object:
    schema = holding(color=TEXT, size={"type": "integer"}, parts={"type": "array", "items": TEXT})
    return definition(schema, selectableFields=[{"jsonPath": path} for path in paths])


REFUSED: Mapping[str, Object] = {
    # names and the like
    "a name that is not plural and group": {**definition(), "metadata": {"name": "things.crd.kedge.dev"}},
    "no group": changed(definition(), group=""),
    "a group without a dot": {**changed(definition(), group="kedge"), "metadata": {"name": "widgets.kedge"}},
    "a group of Kubernetes' own": {**changed(definition(), group="x.k8s.io"), "metadata": {"name": "widgets.x.k8s.io"}},
    "a group of Kubernetes' own with a bad excuse": {
        **changed(definition(), group="x.k8s.io"),
        "metadata": {"name": "widgets.x.k8s.io", "annotations": {"api-approved.kubernetes.io": "because"}},
    },
    "an unknown scope": changed(definition(), scope="Galaxy"),
    "no scope": {**definition(), "spec": {k: v for k, v in definition()["spec"].items() if k != "scope"}},
    "a plural in capitals": named(plural="Widgets"),
    "a kind that is no label": named(kind="Wid_get"),
    "kind and listKind the same": named(listKind="Widget"),
    "a short name that is no label": named(shortNames=["w", "W"]),
    "a category that is no label": named(categories=["All"]),
    "a singular that is no label": named(singular="Widget"),
    # versions
    "no version": definition(versions=[]),
    "nothing is stored": definition(versions=[version("v1")]),
    "two are stored": definition(versions=[version("v1", storage=True), version("v2", storage=True)]),
    "a version twice": definition(versions=[version("v1", storage=True), version("v1")]),
    "a version that is no label": definition(versions=[version("V1", storage=True)]),
    "a version without a schema": definition(versions=[{"name": "v1", "served": True, "storage": True}]),
    "a warning without deprecation": definition(deprecationWarning="old"),
    "an empty warning": definition(deprecated=True, deprecationWarning=""),
    "versions with different wrongs": definition(
        versions=[version("v1", holding(a={}), storage=True), version("v2", holding(b={}))]
    ),
    "preserveUnknownFields": changed(definition(), preserveUnknownFields=True),
    # structure
    "no type": definition(holding(a={})),
    "no type at the root": definition({"properties": {"a": TEXT}}),
    "no object at the root": definition({"type": "string"}),
    "an unknown type": definition(holding(a={"type": "text"})),
    "the type null": definition(holding(a={"type": "null"})),
    "a list of anything": definition(holding(a={"type": "array"})),
    "items without a type": definition(holding(a={"type": "array", "items": {}})),
    "additionalProperties at the root": definition({"type": "object", "additionalProperties": TEXT}),
    "properties and additionalProperties": definition(
        holding(a={"type": "object", "properties": {"b": TEXT}, "additionalProperties": TEXT})
    ),
    "a nullable root": definition({"type": "object", "nullable": True}),
    "a type in an alternative": definition(holding(a={"type": "string", "anyOf": [{"type": "string"}]})),
    "a default in an alternative": definition(holding(a={"type": "string", "allOf": [{"default": "x"}]})),
    "a description in an alternative": definition(holding(a={"type": "string", "not": {"description": "x"}})),
    "rules in an alternative": definition(
        holding(a={"type": "string", "allOf": [{"x-kubernetes-validations": [{"rule": "self == ''"}]}]})
    ),
    "an alternative about an unknown member": definition(
        {"type": "object", "oneOf": [{"properties": {"spec": {"properties": {"x": {"minLength": 1}}}}}]}
    ),
    "metadata in an alternative": definition({"type": "object", "anyOf": [{"properties": {"metadata": {}}}]}),
    "labels in metadata": definition(
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": OBJECT}}}}
    ),
    "metadata that is no object": definition({"type": "object", "properties": {"metadata": TEXT}}),
    "a kind that is no string": definition({"type": "object", "properties": {"kind": {"type": "integer"}}}),
    "uniqueItems": definition(holding(a={"type": "array", "items": TEXT, "uniqueItems": True})),
    "a pattern that is none": definition(holding(a={"type": "string", "pattern": "("})),
    "an embedded object of unknown shape": definition(
        holding(a={"type": "object", "x-kubernetes-embedded-resource": True})
    ),
    "an embedded string": definition(
        holding(
            a={
                "type": "string",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        )
    ),
    "int-or-string and unknown fields": definition(
        holding(a={"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True})
    ),
    "unknown fields not preserved": definition(
        holding(a={"type": "object", "x-kubernetes-preserve-unknown-fields": False})
    ),
    "enum at the root beside a status": definition({"type": "object", "enum": [{}]}, subresources={"status": {}}),
    # lists
    "a list type without a list": definition(holding(a={"type": "string", "x-kubernetes-list-type": "set"})),
    "an unknown list type": definition(holding(a={"type": "array", "items": TEXT, "x-kubernetes-list-type": "bag"})),
    "an unknown map type": definition(holding(a={"type": "object", "x-kubernetes-map-type": "bag"})),
    "a map type without a map": definition(holding(a={"type": "string", "x-kubernetes-map-type": "atomic"})),
    "keys without a map": definition(
        holding(a={"type": "array", "items": TEXT, "x-kubernetes-list-map-keys": ["name"]})
    ),
    "keys of a set": definition(
        holding(
            a={
                "type": "array",
                "items": TEXT,
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-list-type": "set",
            }
        )
    ),
    "a map without keys": definition(holding(a={"type": "array", "items": OBJECT, "x-kubernetes-list-type": "map"})),
    "a map of strings": definition(holding(a={**KEYED, "items": TEXT})),
    "a key that is no member": definition(holding(a={**KEYED, "x-kubernetes-list-map-keys": ["name", "other"]})),
    "a key twice": definition(holding(a={**KEYED, "x-kubernetes-list-map-keys": ["name", "name"]})),
    "a key that may be missing": definition(holding(a={**KEYED, "items": {**KEYED["items"], "required": []}})),
    "a key that may be null": definition(
        holding(
            a={
                **KEYED,
                "items": {"type": "object", "required": ["name"], "properties": {"name": {**TEXT, "nullable": True}}},
            }
        )
    ),
    "a key that is a list": definition(
        holding(
            a={
                **KEYED,
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "array", "items": TEXT}},
                },
            }
        )
    ),
    "items that may be null": definition(holding(a={**KEYED, "items": {**KEYED["items"], "nullable": True}})),
    "a set of objects": definition(holding(a={"type": "array", "x-kubernetes-list-type": "set", "items": OBJECT})),
    # defaults
    "a default of another type": definition(holding(a={"type": "string", "default": 1})),
    "a default out of bounds": definition(holding(a={"type": "integer", "minimum": 3, "default": 1})),
    "a default with an unknown member": definition(
        holding(a={"type": "object", "properties": {"b": TEXT}, "default": {"c": 1}})
    ),
    "a default that lacks a member": definition(
        holding(a={"type": "object", "required": ["b"], "properties": {"b": TEXT}, "default": {}})
    ),
    "a default that breaks a rule": definition(
        holding(
            a={
                "type": "integer",
                "default": 1,
                "x-kubernetes-validations": [{"rule": "self > 3", "message": "must be big"}],
            }
        )
    ),
    "a default in metadata": definition(
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {**TEXT, "default": "x"}}}},
        }
    ),
    # subresources, columns, selectable fields
    "a scale without paths": scaled(specReplicasPath="", statusReplicasPath=""),
    "a scale elsewhere": scaled(specReplicasPath=".status.size", statusReplicasPath=".spec.size"),
    "a scale without dots": scaled(specReplicasPath="spec.size", statusReplicasPath=".status.size"),
    "a selector elsewhere": scaled(
        specReplicasPath=".spec.size", statusReplicasPath=".status.size", labelSelectorPath=".metadata.x"
    ),
    "a column of an unknown type": printed(name="Size", type="text", jsonPath=".spec.size"),
    "a column of an unknown format": printed(name="Size", type="string", format="x", jsonPath=".spec.size"),
    "a column without a path": printed(name="Size", type="string", jsonPath=""),
    "a column without a name": printed(name="", type="string", jsonPath=".spec"),
    "a column with a bare path": printed(name="Size", type="string", jsonPath="spec"),
    "a selectable field that is not there": selected(".spec.weight"),
    "a selectable list": selected(".spec.parts"),
    "a selectable field twice": selected(".spec.color", ".spec.color"),
    "a selectable field in quotes": selected(".spec['color']"),
    # rules
    "a rule about an unknown member": ruled("self.weight == 1"),
    "a rule about a member of a number": ruled("self.size.x == 1"),
    "a rule about an unknown member of items": ruled("self.parts.all(p, p.size > 1)"),
    "a rule about an unknown member of an item": ruled("self.parts[0].size > 1"),
    "a rule whether an unknown member is there": ruled("has(self.weight)"),
    "a rule about metadata away from the root": ruled("self.metadata.name == 'x'"),
    "a rule about an optional unknown member": ruled("self.?weight.hasValue()"),
    "a rule that compares types": ruled("self.size == 'x'"),
    "a rule that compares number types": ruled("self.size == 1.5"),
    "a rule that orders types": ruled("self.since > 1"),
    "a rule about a value of another type": ruled("self.labels.all(k, self.labels[k] == 1)"),
    "a rule about an old unknown member": ruled("oldSelf.weight == 1"),
    "a rule that does not parse": ruled("self.size +"),
    "a rule with an unknown name": ruled("other == 1"),
    "a rule with an unknown function": ruled("self.name.shout() == 'X'"),
    "a rule that compares with null": ruled("self.name == null"),
    "a rule that denies a number": ruled("!self.size"),
    "a rule that chooses by a text": ruled("self.name ? true : false"),
    "a rule with a mixed list": ruled("[1, 'a'].size() == 2"),
    "a rule with a bad pattern": ruled("self.name.matches('(')"),
    "a rule with a bad moment": ruled("self.since > timestamp('x')"),
    "a rule about an item of another type": ruled("self.size in ['a']"),
    "a rule about a list as a whole": ruled("size(self) == 1"),
    "a rule that is a number": ruled("self.size"),
    "a rule that is anything": ruled("dyn(self.size)"),
    "an empty rule": ruled(" "),
    "a rule of two lines without a message": ruled("self.size == 1 &&\nself.size == 1"),
    "a message of two lines": ruled("self.size == 1", message="a\nb"),
    "a message that says nothing": ruled("self.size == 1", message="  "),
    "a message expression that is a number": ruled("self.size == 1", messageExpression="self.size"),
    "a message expression about an unknown member": ruled("self.size == 1", messageExpression="self.weight"),
    "an empty message expression": ruled("self.size == 1", messageExpression="  "),
    "an unknown reason": ruled("self.size == 1", reason="Because"),
    "a field path that leads nowhere": ruled("self.size == 1", fieldPath=".weight"),
    "an optional old self that is not used": ruled("self.size == 1", optionalOldSelf=True),
    "an old self among items": definition(
        holding(
            a={
                "type": "array",
                "maxItems": 3,
                "items": {"type": "string", "maxLength": 3, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            }
        )
    ),
    "two wrongs at once": changed(definition(holding(a={})), scope="Galaxy"),
}


def served_by(kind: Kind) -> ServedVersion:
    """How a custom kind is served."""
    assert isinstance(kind.custom, ServedVersion), f"{kind.resource} is not defined by a CRD"
    return kind.custom
