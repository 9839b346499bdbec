"""All CRDs together: stable, described, and in step with the types they come from."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest
import yaml
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from api.cases import walk
from api.editions import EDITIONS, Edition
from kedge.api.crds import (
    KINDS,
    crds,
    karmada_crds,
    kruise_crds,
    oam_crds,
    print_yaml,
    zone_crds,
)
from kedge.api.dialect import Dialect
from kedge.api.markers import Edition as Said
from kedge.api.markers import said_of
from kedge.api.schema import unwrap

every_dialect = pytest.mark.parametrize("dialect", Dialect)
LONGEST_FOR_KUBECTL_APPLY = 262_144


def print_anew(dialect: Dialect) -> str:
    stream = io.StringIO()
    print_yaml(crds(dialect), stream)
    return stream.getvalue()


printed = cache(print_anew)


@every_dialect
def test_what_is_printed_is_what_there_is(dialect: Dialect) -> None:
    assert tuple(yaml.safe_load_all(printed(dialect))) == crds(dialect)


@every_dialect
def test_printing_twice_gives_the_same_text(dialect: Dialect) -> None:
    assert print_anew(dialect) == printed(dialect)


def test_the_seed_is_the_default_dialect() -> None:
    assert crds() == crds(Dialect.seed)
    assert crds() != crds(Dialect.kubefleet)


def test_a_document_begins_with_what_it_is() -> None:
    for document in printed(Dialect.seed).split("---\n")[1:]:
        assert document.startswith(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: "
        )


def test_no_part_refers_to_another() -> None:
    assert "&id" not in printed(Dialect.seed)


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_the_text_does_not_depend_on_how_python_hashes(seed: str) -> None:
    code = "import sys; from kedge.api.crds import *; print_yaml(crds(Dialect.seed), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": seed},
    )
    assert done.stdout == printed(Dialect.seed)


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_every_field_is_described(edition: Edition) -> None:
    assert edition.root["description"]
    bare = [
        path for path, node in walk(edition.root) if not path.endswith(("[]", "{}")) and not node.get("description")
    ]
    assert bare == []


def test_the_kinds_of_rollout_groups_are_printed_apart() -> None:
    stream = io.StringIO()
    print_yaml(zone_crds(), stream)
    assert tuple(yaml.safe_load_all(stream.getvalue())) == zone_crds()
    names = [crd["metadata"]["name"] for crd in zone_crds()]
    assert names == [
        "replicatemplates.rollout-operator.grafana.com",
        "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
    ]
    assert not {crd["metadata"]["name"] for crd in crds()} & set(names)


def test_every_field_of_a_kind_that_is_printed_apart_is_described() -> None:
    for crd in (*zone_crds(), *kruise_crds()):
        root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert root["description"]
        described = {path for path, node in walk(root) if node.get("description") or path.endswith(("[]", "{}"))}
        assert {path for path, _ in walk(root)} == described


def test_a_clone_set_is_shown_as_open_kruise_shows_it() -> None:
    (crd,) = kruise_crds()
    version = crd["spec"]["versions"][0]
    shown = [column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority")]
    assert crd["metadata"]["name"] == "clonesets.apps.kruise.io"
    assert crd["spec"]["names"]["shortNames"] == ["clone"]
    assert shown == ["DESIRED", "UPDATED", "UPDATED_READY", "READY", "TOTAL", "AGE"]
    assert set(version["subresources"]) == {"status", "scale"}


def test_the_kinds_of_rollouts_in_batches_are_printed_apart() -> None:
    stream = io.StringIO()
    print_yaml(oam_crds(), stream)
    assert tuple(yaml.safe_load_all(stream.getvalue())) == oam_crds()
    assert [crd["metadata"]["name"] for crd in oam_crds()] == [
        "applications.core.oam.dev",
        "applicationrevisions.core.oam.dev",
        "components.core.oam.dev",
        "applicationconfigurations.core.oam.dev",
        "rollouttraits.standard.oam.dev",
        "rollouts.standard.oam.dev",
        "approllouts.core.oam.dev",
        "applicationdeployments.core.oam.dev",
    ]


def test_the_kinds_of_karmada_are_printed_apart() -> None:
    stream = io.StringIO()
    print_yaml(karmada_crds(), stream)
    assert tuple(yaml.safe_load_all(stream.getvalue())) == karmada_crds()
    assert [crd["metadata"]["name"] for crd in karmada_crds()] == [
        "clusters.cluster.karmada.io",
        "propagationpolicies.policy.karmada.io",
        "clusterpropagationpolicies.policy.karmada.io",
        "overridepolicies.policy.karmada.io",
        "clusteroverridepolicies.policy.karmada.io",
        "resourcebindings.work.karmada.io",
        "clusterresourcebindings.work.karmada.io",
        "works.work.karmada.io",
        "resourcebindings.karmada.io",
    ]


@pytest.mark.parametrize("crd", [*oam_crds(), *karmada_crds()], ids=lambda crd: str(crd["metadata"]["name"]))
def test_every_field_of_a_kind_that_has_no_dialects_is_described(crd: dict[str, Any]) -> None:
    assert len(json.dumps(crd)) < LONGEST_FOR_KUBECTL_APPLY
    for version in crd["spec"]["versions"]:
        nodes = list(walk(version["schema"]["openAPIV3Schema"]))
        assert [path for path, node in nodes if not node.get("description") and not path.endswith(("[]", "{}"))] == []


@every_dialect
def test_every_crd_is_small_enough_for_kubectl_apply(dialect: Dialect) -> None:
    for crd in crds(dialect):
        assert len(json.dumps(crd)) < LONGEST_FOR_KUBECTL_APPLY


def types_below(kind: type[Struct]) -> Iterator[type[Struct]]:
    """A kind and every type inside it that has a schema."""
    yield kind
    for field in fields(kind):
        for inner in inner_types(field.type):
            if field.name != "metadata":
                yield from types_below(inner)


def inner_types(annotation: Any) -> Iterator[type[Struct]]:
    bare, _ = unwrap(annotation)
    if isinstance(bare, type) and issubclass(bare, Struct):
        yield bare
    for argument in get_args(bare):
        if argument is not ...:
            yield from inner_types(argument)


def defaulted_fields() -> Iterator[tuple[str, FieldInfo, Any, Any]]:
    seen = {inner for kind in KINDS if issubclass(kind, Struct) for inner in types_below(kind)}
    for kind in sorted(seen, key=lambda kind: kind.__name__):
        for field in fields(kind):
            ours, theirs = (
                said_of(Said("v1beta1", dialect), unwrap(field.type)[1]).get("default", NODEFAULT)
                for dialect in Dialect
            )
            if ours is not NODEFAULT:
                yield f"{kind.__name__}.{field.name}", field, ours, theirs


def test_what_a_server_always_fills_in_is_the_default_in_python_too() -> None:
    for name, field, ours, theirs in defaulted_fields():
        if ours == theirs:
            assert field.default == ours, name


def test_where_the_dialects_fill_in_different_things_python_fills_in_nothing() -> None:
    differing = {name: field.default for name, field, ours, theirs in defaulted_fields() if ours != theirs}
    assert differing == {"RunSpec.state": None}
