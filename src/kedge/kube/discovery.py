"""Discovery: which kinds an API server serves, and what can be done with them.

    served = await discover(client)
    [kind.resource for kind in served.kinds if kind.can("list", "watch")]

Asks for everything at once (`apidiscovery.k8s.io/v2`), or group by group where a server does not support that.
Subresources are left out. A group of an aggregated API server that does not answer now is named in `unavailable`:
its kinds are not known, which does not mean that there are none.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import Struct, field

from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.errors import KubeError, NotFound
from kedge.kube.transport import JSON

AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{JSON}"
_STALE = "Stale"


class ServedKind(Struct, frozen=True):
    """One kind in one version; `preferred` if this is the version of its group to take unless told otherwise."""

    resource: Resource
    verbs: frozenset[str]
    preferred: bool = True

    def can(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


class Discovery(Struct, frozen=True):
    """What a server serves, and the groups that are unavailable."""

    kinds: tuple[ServedKind, ...] = ()
    unavailable: tuple[str, ...] = ()


class _ResponseKind(Struct, frozen=True):
    kind: str = ""


class _Entry(Struct, frozen=True, rename="camel"):
    resource: str
    scope: str
    response_kind: _ResponseKind | None = None
    verbs: tuple[str, ...] = ()


class _Version(Struct, frozen=True):
    version: str
    resources: tuple[_Entry, ...] = ()
    freshness: str = ""


class _GroupName(Struct, frozen=True):
    name: str = ""


class _Group(Struct, frozen=True):
    metadata: _GroupName = _GroupName()
    versions: tuple[_Version, ...] = ()


class _Everything(Struct, frozen=True):
    kind: str
    items: tuple[_Group, ...] = ()


class _GroupVersion(Struct, frozen=True, rename="camel"):
    version: str


class _PlainGroup(Struct, frozen=True, rename="camel"):
    name: str
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion | None = None


class _Plain(Struct, frozen=True):
    groups: tuple[_PlainGroup, ...] = ()
    versions: tuple[str, ...] = ()


class _PlainEntry(Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _PlainEntries(Struct, frozen=True):
    resources: tuple[_PlainEntry, ...] | None = field(default=None)


async def discover(client: Client) -> Discovery:
    """Everything that the server serves. Raises `KubeError` if it does not answer."""
    core, groups = await asyncio.gather(_part(client, "/api"), _part(client, "/apis"))
    return Discovery(core.kinds + groups.kinds, core.unavailable + groups.unavailable)


async def _part(client: Client, path: str) -> Discovery:
    body = await client.document(path, accept=AGGREGATED)
    answer = _read(body, _Everything)
    if answer.kind == "APIGroupDiscoveryList":
        return aggregated(answer.items)
    return await _piece_by_piece(client, _read(body, _Plain))


def aggregated(groups: tuple[_Group, ...]) -> Discovery:
    """What an aggregated document says."""
    versions = [(group, number, version) for group in groups for number, version in enumerate(group.versions)]
    return Discovery(
        tuple(
            ServedKind(_resource(group, version, entry), frozenset(entry.verbs), number == 0)
            for group, number, version in versions
            for entry in version.resources
            if entry.response_kind is not None
        ),
        tuple(
            f"{group.metadata.name}/{version.version}"
            for group, _, version in versions
            if version.freshness == _STALE and not version.resources
        ),
    )


def _resource(group: _Group, version: _Version, entry: _Entry) -> Resource:
    kind = entry.response_kind.kind if entry.response_kind else ""
    return Resource(group.metadata.name, version.version, kind, entry.resource, entry.scope == "Namespaced")


async def _piece_by_piece(client: Client, answer: _Plain) -> Discovery:
    """The way that every server supports: one request for each version of each group."""
    wanted = [("", version, version == answer.versions[0]) for version in answer.versions]
    wanted += [
        (group.name, version.version, version == (group.preferred_version or group.versions[0]))
        for group in answer.groups
        for version in group.versions
    ]
    found = await asyncio.gather(*(_version(client, *each) for each in wanted))
    return Discovery(
        tuple(kind for part in found for kind in part.kinds), tuple(name for part in found for name in part.unavailable)
    )


async def _version(client: Client, group: str, version: str, preferred: bool) -> Discovery:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        answer = _read(await client.document(path), _PlainEntries)
    except NotFound:
        return Discovery()
    except KubeError:
        return Discovery(unavailable=(f"{group}/{version}",))
    return Discovery(
        tuple(
            ServedKind(
                Resource(group, version, entry.kind, entry.name, entry.namespaced), frozenset(entry.verbs), preferred
            )
            for entry in answer.resources or ()
            if "/" not in entry.name
        )
    )


def _read(body: bytes, form: type[Any]) -> Any:
    return msgspec.json.decode(body, type=form)
