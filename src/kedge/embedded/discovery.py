"""Discovery: what a server serves, told to clients.

Pure: from the kinds of a registry to the documents at /api, /apis, /apis/GROUP and /apis/GROUP/VERSION, in the form
every client knows, and /api and /apis in the aggregated one (`apidiscovery.k8s.io/v2`), which tells all at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from kedge.embedded.kind import Kind
from kedge.embedded.naming import version_order
from kedge.kube.transport import JSON, Request, Response

Doc: TypeAlias = Mapping[str, Any]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS_OF: Mapping[str, tuple[str, ...]] = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "finalize": ("update",),
    "binding": ("create",),
    "eviction": ("create",),
}
_KIND_OF: Mapping[str, tuple[str, str, str]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}


class Discovery:
    """The discovery documents of some kinds, each made when first needed."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._groups = _by_group(kinds)
        self._made: dict[tuple[str, bool], Response | None] = {}

    def response(self, request: Request) -> Response | None:
        """The response to a GET; None for other paths."""
        place = request.path.strip("/")
        aggregated = place in ("api", "apis") and _wants_aggregated(request.accept)
        key = (place, aggregated)
        if key not in self._made:
            found = self._aggregated(place) if aggregated else self._plain(place)
            self._made[key] = None if found is None else _answer(found, AGGREGATED if aggregated else JSON)
        return self._made[key]

    def _plain(self, place: str) -> Doc | None:
        match place.split("/"):
            case ["api"]:
                return {"kind": "APIVersions", "versions": list(self._groups[""]), "serverAddressByClientCIDRs": []}
            case ["apis"]:
                groups = [_group(name, versions) for name, versions in self._groups.items() if name]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", name] if name and name in self._groups:
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, self._groups[name])}
            case ["api", version] if version in self._groups[""]:
                return _resources("", version, self._groups[""][version])
            case ["apis", name, version] if name and version in self._groups.get(name, {}):
                return _resources(name, version, self._groups[name][version])
        return None

    def _aggregated(self, place: str) -> Doc:
        asked = [""] if place == "api" else [name for name in self._groups if name]
        groups = [_all_of(name, self._groups[name]) for name in asked]
        about = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
        return {**about, "metadata": {}, "items": groups}


def _answer(document: Doc, media: str) -> Response:
    body = msgspec.json.encode(document)
    name = hashlib.blake2b(body, digest_size=32).hexdigest().upper()  # for clients that keep what they were told
    return Response(200, body, {"content-type": media, "etag": f'"{name}"', "vary": "Accept"})


def _wants_aggregated(accept: str) -> bool:
    first = accept.partition(",")[0].replace(" ", "")
    return "as=APIGroupDiscoveryList" in first and "v=v2;" in f"{first};"


def _by_group(kinds: Iterable[Kind]) -> dict[str, dict[str, list[Kind]]]:
    """The kinds by group and version: built-in groups first, the newest version first, kinds by their names."""
    groups: dict[str, dict[str, list[Kind]]] = {"": {}}
    for kind in sorted(kinds, key=lambda kind: kind.resource.plural):
        groups.setdefault(kind.resource.group, {}).setdefault(kind.resource.version, []).append(kind)
    return {
        name: {version: versions[version] for version in sorted(versions, key=version_order)}
        for name, versions in sorted(groups.items(), key=lambda item: (_is_custom(item[0]), item[0]))
    }


def _is_custom(group: str) -> bool:
    # Clients that meet a name in two groups take the first.
    return "." in group and not group.endswith(".k8s.io")


def _group(name: str, versions: Iterable[str]) -> Doc:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(group: str, version: str, kinds: Sequence[Kind]) -> Doc:
    where = f"{group}/{version}" if group else version
    entries = [entry for kind in kinds for entry in (_resource(kind), *map(_part(kind), kind.subresources))]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": where, "resources": entries}


def _resource(kind: Kind) -> Doc:
    resource = kind.resource
    return {
        "name": resource.plural,
        "singularName": kind.kind_names.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": kind.verbs,
        **_more_names(kind),
    }


def _part(kind: Kind) -> Any:
    def entry(name: str) -> Doc:
        group, version, of_kind = _KIND_OF.get(name, ("", "", kind.resource.kind))
        other = {"group": group, "version": version} if group else {}
        return {
            "name": f"{kind.resource.plural}/{name}",
            "singularName": "",
            "namespaced": kind.resource.namespaced,
            **other,
            "kind": of_kind,
            "verbs": _VERBS_OF[name],
        }

    return entry


def _all_of(name: str, versions: Mapping[str, Sequence[Kind]]) -> Doc:
    told = [
        {"version": version, "resources": [_entry(kind) for kind in kinds], "freshness": "Current"}
        for version, kinds in versions.items()
    ]
    return {"metadata": {"name": name} if name else {}, "versions": told}


def _entry(kind: Kind) -> Doc:
    entry: dict[str, Any] = {
        "resource": kind.resource.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.resource.kind},
        "scope": "Namespaced" if kind.resource.namespaced else "Cluster",
        "singularResource": kind.kind_names.singular,
        "verbs": kind.verbs,
        **_more_names(kind),
    }
    if parts := [_subentry(kind, name) for name in kind.subresources]:
        entry["subresources"] = parts
    return entry


def _subentry(kind: Kind, name: str) -> Doc:
    group, version, of_kind = _KIND_OF.get(name, ("", "", kind.resource.kind))
    response = {"group": group, "version": version if group else "", "kind": of_kind}
    return {"subresource": name, "responseKind": response, "verbs": _VERBS_OF[name]}


def _more_names(kind: Kind) -> Doc:
    named = (("shortNames", kind.kind_names.short), ("categories", kind.kind_names.categories))
    return {key: value for key, value in named if value}
