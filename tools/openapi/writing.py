"""Writing: from what a server publishes to the file that is kept.

Keeps what the embedded server reads (shapes, defaults, lists' keys, merge strategies) and what a client needs to find
its way (group, version and kind); drops prose and whatever no kept kind refers to. One definition per line, sorted,
so that a change of version can be reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from controlplane.cluster import Cluster
from kedge.embedded.builtin.kinds import BUILT_IN
from openapi.gotypes import Fact

PATH = Path(__file__).parents[2] / "src/kedge/api/openapi/definitions.json"

# Kinds that are sent or answered without being kept.
_BESIDE = """
v1 Binding | v1 Eviction policy | v1 Scale autoscaling | v1 TokenRequest authentication.k8s.io
v1 TokenReview authentication.k8s.io | v1 SelfSubjectReview authentication.k8s.io
v1 SubjectAccessReview authorization.k8s.io | v1 LocalSubjectAccessReview authorization.k8s.io
v1 SelfSubjectAccessReview authorization.k8s.io | v1 SelfSubjectRulesReview authorization.k8s.io
"""
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_ALSO = (f"{_META}.DeleteOptions", f"{_META}.ListMeta", f"{_META}.Patch", f"{_META}.Status")
_REFERENCE = "#/components/schemas/"
_KEPT = (
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "format",
    "items",
    "nullable",
    "oneOf",
    "properties",
    "required",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
)

Node = dict[str, Any]
Identity = tuple[str, str, str]  # group, version, kind


class Facts(Protocol):
    """What Go says of the members of a definition."""

    def members(self, definition: str) -> Mapping[str, Fact]: ...


async def published(cluster: Cluster) -> Mapping[str, Node]:
    """Every definition a server publishes in the groups we keep something of."""
    found: dict[str, Node] = {}
    for group, version in sorted({(group, version) for group, version, _ in wanted()}):
        path = f"/openapi/v3/apis/{group}/{version}" if group else f"/openapi/v3/api/{version}"
        answer = await cluster.request("GET", path)
        found |= answer.json()["components"]["schemas"]
    return found


def wanted() -> tuple[Identity, ...]:
    """The kinds to keep."""
    kept = [(kind.resource.group, kind.resource.version, kind.resource.kind) for kind in BUILT_IN]
    return (*kept, *map(_beside, _BESIDE.replace("\n", "|").strip("|").split("|")))


def text(definitions: Mapping[str, Node], facts: Facts) -> str:
    """The file."""
    kept = {name: _stripped(definitions[name], root=True) for name in _reachable(definitions)}
    lines = [f"{json.dumps(name)}:{_line(_with_facts(name, kept[name], facts))}" for name in sorted(kept)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def without_facts(written: str) -> Mapping[str, Node]:
    """What a file says that came from the server alone."""
    found: dict[str, Node] = json.loads(written)
    return {name: _plain(node) for name, node in found.items()}


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items() if not key.startswith("x-go-")}
    return [_plain(item) for item in node] if isinstance(node, list) else node


def _beside(words: str) -> Identity:
    version, kind, *group = words.split()
    return "".join(group), version, kind


def _reachable(definitions: Mapping[str, Node]) -> set[str]:
    names = set(wanted())
    todo = [name for name, node in definitions.items() if names & set(_identities(node))] + list(_ALSO)
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _references(definitions[name])
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(ref := node.get("$ref"), str):
            yield ref.removeprefix(_REFERENCE)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _identities(node: Node) -> Iterable[Identity]:
    return [(one["group"], one["version"], one["kind"]) for one in node.get("x-kubernetes-group-version-kind", ())]


def _stripped(node: Node, *, root: bool = False) -> Node:
    kept: Node = {}
    for key in _KEPT:
        if key not in node:
            continue
        match key, node[key]:
            case "properties", members:
                kept[key] = {name: _stripped(member) for name, member in members.items()}
            case (("items" | "additionalProperties"), dict() as inner):
                kept[key] = _stripped(inner)
            case (("allOf" | "oneOf" | "anyOf"), parts):
                kept[key] = [_stripped(part) for part in parts]
            case "x-kubernetes-group-version-kind", identities:
                # Options and statuses are of every group there is: that says nothing, at length.
                kept |= {key: identities} if root and len(identities) == 1 else {}
            case _, value:
                kept[key] = value
    return kept


def _with_facts(name: str, node: Node, facts: Facts) -> Node:
    known = facts.members(name) if "properties" in node else {}
    members = {member: {**raw, **_said(raw, known[member])} for member, raw in node.get("properties", {}).items()}
    return {**node, "properties": members} if members else node


def _said(raw: Node, fact: Fact) -> Node:
    said: Node = {}
    if fact.type != _shown(raw):
        said["x-go-type"] = fact.type
    if fact.pointer:
        said["x-go-pointer"] = True
    if fact.always:
        said["x-go-always"] = True
    if fact.via:
        said["x-go-via"] = fact.via
    return said


def _shown(raw: Node) -> str:
    """The Go type that a shape suggests; a reader works it out the same way."""
    for wrapped in raw.get("allOf", ()):
        return _shown(wrapped)
    if "$ref" in raw:
        return ".".join(raw["$ref"].rsplit(".", 2)[1:])
    match raw.get("type"), raw.get("format"):
        case "array", _:
            return f"[]{_shown(raw['items'])}"
        case "object", _ if isinstance(raw.get("additionalProperties"), dict):
            return f"map[string]{_shown(raw['additionalProperties'])}"
        case "string", "byte":
            return "[]uint8"
        case "integer", form:
            return form or "int"
        case "boolean", _:
            return "bool"
        case "number", _:
            return "float64"
    return str(raw.get("type", ""))


def _line(node: Node) -> str:
    return json.dumps(node, separators=(",", ":"), sort_keys=True)
