"""The definitions of built-in kinds: they are there, lead somewhere, and are what a real server publishes."""

import asyncio
import hashlib
import json
import shutil
from typing import Any

import pytest

from controlplane.gotool import go_environment
from kedge.api.openapi.builtin import DEFINITIONS, schema_of
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.kind import Kind
from openapi import gotypes, writing
from support.recording.api import RealApi


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.resource.kind)
def test_every_built_in_kind_has_a_schema(kind: Kind) -> None:
    schema = schema_of(kind.resource.group, kind.resource.version, kind.resource.kind)
    assert "metadata" in schema.properties
    assert schema.name.endswith(f".{kind.resource.version}.{kind.resource.kind}")


def test_a_kind_that_is_not_built_in_has_none() -> None:
    with pytest.raises(LookupError):
        schema_of("example.com", "v1", "Widget")


def test_the_same_kind_has_the_same_schema() -> None:
    assert schema_of("apps", "v1", "Deployment") is schema_of("apps", "v1", "Deployment")


def test_every_reference_leads_to_a_definition() -> None:
    for name in DEFINITIONS:
        assert set(_references(DEFINITIONS[name])) <= set(DEFINITIONS)


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in _references(value)]
    return [name for item in node for name in _references(item)] if isinstance(node, list) else []


def test_lists_of_named_things_say_by_what() -> None:
    spec = schema_of("apps", "v1", "Deployment").properties["spec"].properties["template"].properties["spec"]
    containers = spec.properties["containers"]
    assert (containers.merge_key, containers.merge_strategy) == ("name", ("merge",))
    assert (containers.list_type, containers.list_keys) == ("map", ("name",))


def test_the_definitions_are_what_a_real_server_publishes(bare_api: RealApi) -> None:
    def published() -> str:
        text = writing.text(asyncio.run(writing.published(bare_api.cluster)), _NoFacts())
        return _digest(writing.without_facts(text))

    ours = _digest(writing.without_facts(writing.PATH.read_text()))
    assert ours == bare_api.told("the digest of what is published", published)


def test_the_definitions_say_what_go_says(bare_api: RealApi) -> None:
    def published() -> str:
        if shutil.which("go", path=go_environment().get("PATH")) is None:
            pytest.skip("there is no Go here, whose types say it")
        facts = gotypes.Source(gotypes.sources())
        return _digest(writing.text(asyncio.run(writing.published(bare_api.cluster)), facts))

    ours = _digest(writing.PATH.read_text())
    assert ours == bare_api.told("the digest of what is published, with what Go says", published)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class _NoFacts:
    def members(self, definition: str) -> "_Plain":
        return _Plain()


class _Plain(dict[str, gotypes.Fact]):
    def __missing__(self, member: str) -> gotypes.Fact:
        return gotypes.Fact("", pointer=False, always=False)
