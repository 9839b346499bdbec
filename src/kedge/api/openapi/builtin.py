"""Built-in: the schemas of the kinds every Kubernetes API has, as kube-apiserver v1.36 publishes them.

    schema_of("apps", "v1", "Deployment").at("spec")

Shared by every server of the process. The definitions are read when this is imported, and each is decoded when first
used. They come from a real server, by `python -m openapi`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from kedge.api.openapi.model import Raw, Schema

_FILE = Path(__file__).with_name("definitions.json")
_ELSEWHERE = {
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "meta.k8s.io": "io.k8s.apimachinery.pkg.apis.meta",
}


class _Definitions(Mapping[str, Raw]):
    """Definitions by name, each decoded when first asked for."""

    def __init__(self, text: bytes) -> None:
        self._texts = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        self._decoded: dict[str, Raw] = {}

    def __getitem__(self, name: str) -> Raw:
        if name not in self._decoded:
            self._decoded[name] = msgspec.json.decode(self._texts[name])
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


# At import, not at first use: that may be inside an event loop, where reading a file has no place.
DEFINITIONS: Mapping[str, Raw] = _Definitions(_FILE.read_bytes())


@cache
def schema_of(group: str, version: str, kind: str) -> Schema:
    """The schema of a built-in kind; LookupError if there is none."""
    return named(f"{_package(group)}.{version}.{kind}")


@cache
def named(name: str) -> Schema:
    """The schema of a definition, by its full name."""
    return Schema({"$ref": f"#/components/schemas/{name}"}, DEFINITIONS)


def _package(group: str) -> str:
    return _ELSEWHERE.get(group) or f"io.k8s.api.{group.partition('.')[0] or 'core'}"
