"""Every kind with every field, as Kubernetes keeps it for its own tests, reads the same from protobuf as from JSON."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controlplane.gotool import go_environment
from embedded.protobuf.sending import decode_object
from kedge.api.openapi.builtin import DEFINITIONS, named, schema_of
from kedge.embedded.protobuf.messages import MESSAGES
from kedge.embedded.schema.builtin_decoding import decode_struct
from openapi import gotypes
from openapi.writing import wanted
from wiretypes import protos, writing

KEPT = {"k8s.io/api": "testdata/HEAD", "k8s.io/apiextensions-apiserver": "pkg/apis/testdata/HEAD"}
WITHOUT_SAMPLE = ("APIService",)
KINDS = sorted({one for one in wanted() if one[2] not in WITHOUT_SAMPLE})


@pytest.fixture(scope="module")
def folders() -> Mapping[str, Path]:
    if shutil.which("go", path=go_environment().get("PATH")) is None:
        pytest.skip("there is no Go here, whose modules have the samples")
    return gotypes.sources()


@pytest.mark.real
@pytest.mark.parametrize(("group", "version", "kind"), KINDS)
def test_a_whole_object_reads_as_its_json(folders: Mapping[str, Path], group: str, version: str, kind: str) -> None:
    sample = _sample(folders, f"{group or 'core'}.{version}.{kind}")
    schema = schema_of(group, version, kind)
    as_json: Any = msgspec.json.decode(sample.with_suffix(".json").read_bytes())
    assert decode_struct(schema, decode_object(sample.read_bytes())).obj == decode_struct(schema, as_json).obj


def _sample(folders: Mapping[str, Path], name: str) -> Path:
    (found,) = (file for module, within in KEPT.items() if (file := folders[module] / within / f"{name}.pb").exists())
    return found


@pytest.mark.real
def test_the_messages_are_what_go_has(folders: Mapping[str, Path]) -> None:
    assert writing.PATH.read_text() == writing.text(protos.read_all(folders), gotypes.Source(folders))


def test_every_field_is_a_member_of_its_definition() -> None:
    for message in sorted(MESSAGES.keys() & set(DEFINITIONS)):
        members = named(message).properties
        if members:
            assert set(_names(message)) | {"apiVersion", "kind"} >= set(members), message
            assert set(_names(message)) <= set(members), message


def _names(message: str) -> list[str]:
    """What JSON calls the fields of a message, and of those that stand among them."""
    names: list[str] = []
    for told in MESSAGES[message].values():
        name, _, written = told.partition(" ")
        inner = written if "." in written else f"{message.rpartition('.')[0]}.{written}"
        names += [name] if name else _names(inner)
    return names


def test_every_type_is_a_scalar_or_a_message() -> None:
    for message, fields in MESSAGES.items():
        for told in fields.values():
            written = told.rpartition(" ")[2].removeprefix("[]").removeprefix("{}")
            full = written if "." in written else f"{message.rpartition('.')[0]}.{written}"
            assert written in protos.SCALARS or full in MESSAGES, f"{message}: {told}"
