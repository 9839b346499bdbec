"""The rows of the contract: generated CRDs, told in the words of kubefleet-fields.tsv.

Its notation: `*` before a type means required; `[]` is an item of a list, `{}` a value of a map; a label selector is
one row, not its parts; so is a condition in a list of conditions; `object*` is a whole object of any kind. A row of
several versions stands for one in each.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CONTRACT = Path(__file__).with_name("kubefleet-fields.tsv")

Node = dict[str, Any]


class KindRow(NamedTuple):
    """One version of one kind."""

    group: str
    kind: str
    plural: str
    short: str
    categories: str
    scope: str
    version: str
    served: str
    storage: str
    deprecated: str
    subresources: str
    columns: str


class FieldRow(NamedTuple):
    """One field in one version of one kind."""

    kind: str
    version: str
    path: str
    type: str
    constraints: str


def contract() -> tuple[set[KindRow], set[FieldRow]]:
    """Every row of the contract."""
    lines = [line.split("\t") for line in CONTRACT.read_text().splitlines() if not line.startswith("#")]
    kinds = {KindRow(*line) for line in lines if len(line) == 12}
    fields = {
        FieldRow(kind, version, path, type_, constraints)
        for kind, versions, path, type_, constraints in (line for line in lines if len(line) == 5)
        for version in versions.split(",")
    }
    return kinds, fields


def kind_rows(crd: Node) -> Iterator[KindRow]:
    """A CRD's rows of the first part."""
    spec, names = crd["spec"], crd["spec"]["names"]
    for version in spec["versions"]:
        yield KindRow(
            group=spec["group"],
            kind=names["kind"],
            plural=names["plural"],
            short=",".join(names.get("shortNames", ())),
            categories=",".join(names.get("categories", ())),
            scope=spec["scope"],
            version=version["name"],
            served="served" if version["served"] else "",
            storage="storage" if version["storage"] else "",
            deprecated="deprecated" if version.get("deprecated") else "",
            subresources=",".join(version.get("subresources", {})),
            columns="; ".join(_column(column) for column in version.get("additionalPrinterColumns", ())),
        )


def _column(column: Node) -> str:
    priority = f" p{column['priority']}" if column.get("priority") else ""
    return f"{column['name']}={column['jsonPath']}{priority}"


def field_rows(crd: Node) -> Iterator[FieldRow]:
    """A CRD's rows of the second part."""
    kind = crd["spec"]["names"]["kind"]
    for version in crd["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        if "x-kubernetes-validations" in root:
            yield FieldRow(kind, version["name"], ".", "object", constraints(root))
        for path, node, required in nodes(root):
            yield FieldRow(kind, version["name"], path, ("*" if required else "") + type_of(node), constraints(node))


def nodes(node: Node, path: str = "") -> Iterator[tuple[str, Node, bool]]:
    """Every node below one that has a row of its own: its path, itself, and whether it is required."""
    if type_of(node) == "LabelSelector" or path.endswith("conditions[]"):
        return
    for below, child, required in children(node, path):
        yield below, child, required
        yield from nodes(child, below)


def children(node: Node, path: str = "") -> Iterator[tuple[str, Node, bool]]:
    """What is directly below a node."""
    for name, child in node.get("properties", {}).items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            yield f"{path}.{name}".lstrip("."), child, name in node.get("required", ())
    if "items" in node:
        yield f"{path}[]", node["items"], False
    if isinstance(node.get("additionalProperties"), dict):
        yield f"{path}{{}}", node["additionalProperties"], False


def type_of(node: Node) -> str:
    """A node's type, as the contract calls it."""
    if set(node.get("properties", ())) == {"matchExpressions", "matchLabels"}:
        return "LabelSelector"
    whole = "*" if node.get("x-kubernetes-embedded-resource") else ""
    return str(node.get("type", "int-or-string")) + whole


_WORDS = {
    "default": "default",
    "enum": "enum",
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "minLength",
    "maxLength": "maxLength",
    "minItems": "minItems",
    "maxItems": "maxItems",
    "minProperties": "minProperties",
    "maxProperties": "maxProperties",
    "pattern": "pattern",
    "format": "format",
    "x-kubernetes-list-type": "list-type",
    "x-kubernetes-list-map-keys": "list-map-keys",
    "x-kubernetes-map-type": "map-type",
}


def constraints(node: Node) -> str:
    """What a node says beyond its type, as the contract writes it."""
    said = [f"{word}={node[key]!r}" for key, word in _WORDS.items() if key in node]
    rules = node.get("x-kubernetes-validations", ())
    return " ".join([*said, *([f"rules={len(rules)}"] if rules else [])])
