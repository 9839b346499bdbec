"""Kinds: what is served because of a CRD, in each of its versions."""

import subprocess
import sys

import msgspec
import pytest

from embedded.custom.definitions import TEXT, Object, changed, definition, holding, named, served_by, version
from kedge.embedded.custom.crd import prepared_for_update, problems, warnings, with_defaults
from kedge.embedded.custom.crd_status import establish
from kedge.embedded.custom.served_versions import ServedVersion, served_kinds
from kedge.embedded.kind import Kind, ScalePaths

OLD = holding(shared=TEXT, old=TEXT, mode={"type": "string", "default": "old"})
NEW = holding(shared=TEXT, new=TEXT, mode={"type": "string", "default": "new"})
BOTH = with_defaults(
    definition(
        versions=[version("v1", OLD, storage=True, deprecated=True), version("v2", NEW), version("v1beta1", OLD)]
    )
)


def kind_of(crd: Object, name: str = "v1") -> Kind:
    return next(one for one in served_kinds(with_defaults(crd)) if one.resource.version == name)


def served(crd: Object, name: str = "v1") -> ServedVersion:
    return served_by(kind_of(crd, name))


def obj(name: str, **spec: str) -> Object:
    return {"apiVersion": f"crd.kedge.dev/{name}", "kind": "Widget", "metadata": {"name": "x"}, "spec": spec}


def test_each_served_version_is_a_kind() -> None:
    crd = definition(versions=[version("v1", storage=True), version("v2", served=False), version("v3")])
    assert [one.resource.version for one in served_kinds(with_defaults(crd))] == ["v1", "v3"]


def test_a_kind_has_the_names_and_scope_of_its_definition() -> None:
    kind = kind_of(changed(named(shortNames=["w"], categories=["all"]), scope="Cluster"))
    assert (kind.resource.kind, kind.resource.plural, kind.resource.namespaced) == ("Widget", "widgets", False)
    assert (kind.kind_names.singular, kind.kind_names.short, kind.kind_names.categories) == ("widget", ("w",), ("all",))


def test_a_kind_has_a_status_of_its_own_only_if_it_says_so() -> None:
    assert not kind_of(definition()).status
    assert kind_of(definition(subresources={"status": {}})).status


def test_a_kind_can_be_scaled_where_it_says() -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.sel"}
    assert kind_of(definition(subresources={"scale": paths})).scale == ScalePaths(
        "spec.size", "status.size", "status.sel"
    )
    assert kind_of(definition()).scale is None


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (3, None),
        (-1, "Invalid value: -1: should be a non-negative integer"),
        (2**31, "Invalid value: 2147483648: should be less than or equal to 2147483647"),
        ("x", "Invalid value: 0: .spec.size accessor error: x is of the type string, expected int64"),
    ],
)
def test_what_is_scaled_must_be_a_number_of_replicas(size: object, said: str | None) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    lax = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found = served(definition(lax, subresources={"scale": paths})).custom.problems(
        {**obj("v1"), "spec": {"size": size}}
    )
    assert [(one.field, one.message) for one in found] == ([(".spec.size", said)] if said else [])


def test_selectable_fields_can_be_selected_by() -> None:
    crd = definition(holding(color=TEXT), selectableFields=[{"jsonPath": ".spec.color"}])
    assert kind_of(crd).fields == {"spec.color": ""}


def test_an_object_of_another_version_is_kept_without_what_the_stored_one_does_not_know() -> None:
    kept = served(BOTH, "v2").to_stored(obj("v2", shared="a", new="b", mode="c"))
    assert kept == obj("v1", shared="a", mode="c")


def test_an_object_is_shown_without_what_the_asked_version_does_not_know() -> None:
    shown = served(BOTH, "v2").to_served(obj("v1", shared="a", old="b"), 0)
    assert shown == obj("v2", shared="a", mode="old")


def test_the_stored_version_is_shown_as_it_is_kept() -> None:
    kept = obj("v1", shared="a", old="b", mode="c")
    assert served(BOTH, "v1").to_served(kept, 0) is kept
    assert served(BOTH, "v1").to_stored(kept) is kept


def test_what_was_kept_before_the_schema_changed_is_completed_when_it_is_shown() -> None:
    crd = {**definition(OLD), "metadata": {"name": "widgets.crd.kedge.dev", "resourceVersion": "7"}}
    body = msgspec.json.encode(obj("v1", shared="a"), order="deterministic")
    assert msgspec.json.decode(served(crd).encoded_as_served(body, 6))["spec"] == {"shared": "a", "mode": "old"}
    assert served(crd).encoded_as_served(body, 8) is body


def test_what_was_kept_in_another_version_is_shown_in_the_asked_one() -> None:
    later = definition(versions=[version("v1", OLD), version("v2", NEW, storage=True)])
    assert served(later, "v1").to_served(obj("v1", shared="a", old="b", mode="c"), 0) == obj("v1", shared="a", mode="c")


def test_a_deprecated_version_warns_and_names_a_better_one() -> None:
    assert served(BOTH, "v1").warning == "crd.kedge.dev/v1 Widget is deprecated; use crd.kedge.dev/v2 Widget"
    assert served(BOTH, "v2").warning == ""


def test_a_deprecated_version_without_a_better_one_only_says_so() -> None:
    assert served(definition(deprecated=True)).warning == "crd.kedge.dev/v1 Widget is deprecated"
    assert served(definition(deprecated=True, deprecationWarning="leave")).warning == "leave"


def test_what_is_compiled_is_shared() -> None:
    one, other = served(definition(OLD)), served(changed(definition(OLD), scope="Cluster"))
    assert one.custom is other.custom
    assert one.printed is other.printed


def test_a_definition_remembers_every_version_it_stored() -> None:
    before = establish(prepared_for_update({"status": {}}, BOTH), [], "2025-01-01T00:00:00Z")
    later = changed(BOTH, versions=[version("v1", OLD), version("v2", NEW, storage=True)])
    after = prepared_for_update(before, later)
    assert after["status"]["storedVersions"] == ["v1", "v2"]
    assert problems(after, before) == []
    gone = prepared_for_update(after, changed(BOTH, versions=[version("v2", NEW, storage=True)]))
    assert [cause.field for cause in problems(gone, after)] == ["status.storedVersions[0]"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Cluster"}, "spec.scope"),
        ({"names": {**BOTH["spec"]["names"], "kind": "Gadget"}}, "spec.names.kind"),
    ],
)
def test_what_decides_where_objects_are_kept_cannot_change(change: Object, field: str) -> None:
    before = establish(prepared_for_update({"status": {}}, BOTH), [], "2025-01-01T00:00:00Z")
    found = problems(prepared_for_update(before, changed(BOTH, **change)), before)
    assert [(one.field, one.message.rpartition(": ")[2]) for one in found] == [(field, "field is immutable")]


def test_conversion_by_webhook_is_refused_with_a_reason() -> None:
    crd = prepared_for_update({}, changed(BOTH, conversion={"strategy": "Webhook"}))
    assert [one.field for one in problems(crd)] == ["spec.conversion.strategy"]


def test_the_engine_for_rules_is_loaded_when_a_rule_is_compiled() -> None:
    program = (
        "import sys; from kedge.embedded.custom import cel_rules, crd, served_versions; "
        "loaded = lambda: any('cel_expr' in name for name in sys.modules); "
        "assert not loaded(); cel_rules.compile_expression('1 == 1', {}); assert loaded()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_format_that_means_nothing_is_warned_of_once() -> None:
    odd: Object = {"type": "string", "format": "odd"}
    crd = definition(holding(a=odd, b={"type": "array", "items": odd}, c={"type": "integer", "format": "int32"}))
    assert list(warnings(prepared_for_update({}, crd))) == ['unrecognized format "odd"']
    assert list(warnings(establish(prepared_for_update({}, with_defaults(crd)), [], "2025-01-01T00:00:00Z"))) == []


def test_new_finalizers_of_nobody_in_particular_are_warned_of() -> None:
    custom = served(definition()).custom
    held = {"metadata": {"name": "x", "finalizers": ["mine", "a.b", "kedge.dev/ok"]}}
    said = "to avoid accidental conflicts with other finalizer writers"
    assert list(custom.warnings(held)) == [
        f'metadata.finalizers: "a.b": prefer a domain-qualified finalizer name including a path (/) {said}',
        f'metadata.finalizers: "mine": prefer a domain-qualified finalizer name {said}',
    ]
    assert list(custom.warnings(held, held)) == []
