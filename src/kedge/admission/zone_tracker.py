"""Zone tracker: when each zone was last scaled down, kept in one ConfigMap of its namespace.

An entry is named after its StatefulSet and holds `{"lastDownscaled": "2024-05-01T10:00:00Z"}`; the case of the name
does not matter, as in Go. If there is no ConfigMap, it is created with an entry of now for every zone of the group, so
that the first downscale waits too. Writing is a PUT in the version that was read: of two writers one has to look again,
and no entry is ever lost. Entries of other groups are kept as they are, readable or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from kedge.admission.downscale_records import AnotherWasFaster, DownscaleRecord, Loaded, LoadFailed
from kedge.api.apps import StatefulSet
from kedge.api.core import ConfigMap
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from kedge.plan.text import moment
from kedge.plan.zoning.downscale import BadRecord, too_soon

DEFAULT_NAME: Final = "rollout-operator-zone-tracker"
_MAPS: Final = untyped(ConfigMap.resource)
_FIELD: Final = "lastDownscaled"


class _Entry(Struct, frozen=True, rename={"last_downscaled": _FIELD}):
    last_downscaled: str


class ZoneTracker:
    """Keeps it in a ConfigMap of this name."""

    unreadable: ClassVar[str] = "parsing parsing downscale timestamps from the zone ConfigMap failed."  # word for word
    unwritable: ClassVar[str] = "setting downscale timestamp in the zone ConfigMap failed."

    def __init__(self, client: Client, *, clock: Clock, name: str = DEFAULT_NAME) -> None:
        self._client = client
        self._clock = clock
        self._name = name

    async def load(self, namespace: str, group: Sequence[StatefulSet], /) -> Loaded:
        """The entries of these zones. Raises `LoadFailed`."""
        names = [zone.metadata.name for zone in group]
        try:
            stored = await self._get_or_create(namespace, names)
            entries = _data(stored)
            times = {name: _time(entries[name]) for name in names if name in entries}
        except (KubeError, msgspec.DecodeError, RecursionError) as error:
            raise LoadFailed(f"ConfigMap {namespace}/{self._name}: {error}") from error
        return Loaded(times, stored)

    async def write(self, record: DownscaleRecord) -> None:
        """Say that a zone is scaled down now.

        Raises `AnotherWasFaster` if somebody else wrote meanwhile, and it was about another zone of the group.
        """
        name, entry = record.downscale.name, _entry(record.now)
        try:
            await self._put(record.loaded.stored or {}, name, entry)
        except Conflict:
            again = await self.load(record.downscale.namespace, (record.zone, *record.others))
            _refuse_recent(record.others, again.times, record.now)
            await self._put(again.stored or {}, name, entry)

    async def restore(self, record: DownscaleRecord) -> None:
        """Put back the entry that was there before, unless somebody has written another one."""
        name = record.downscale.name
        try:
            stored = await self._client.get(_MAPS, self._name, record.downscale.namespace)
        except NotFound:
            return
        if _data(stored).get(name) == _entry(record.now):
            await self._put(stored, name, _data(record.loaded.stored or {}).get(name))

    async def _get_or_create(self, namespace: str, names: Sequence[str]) -> Untyped:
        try:
            return await self._client.get(_MAPS, self._name, namespace)
        except NotFound:
            pass
        data = dict.fromkeys(names, _entry(self._clock.now()))
        try:
            return await self._client.create(_MAPS, {"metadata": {"name": self._name}, "data": data}, namespace)
        except AlreadyExists:
            return await self._client.get(_MAPS, self._name, namespace)

    async def _put(self, stored: Untyped, name: str, entry: str | None) -> None:
        """Store it with this entry, in the version that was read."""
        data = {key: value for key, value in {**_data(stored), name: entry}.items() if value is not None}
        await self._client.replace(_MAPS, {**stored, "data": data})


def _refuse_recent(others: Sequence[StatefulSet], times: Mapping[str, str], now: datetime) -> None:
    try:
        recent = too_soon(others, times, now)
    except BadRecord as error:
        raise LoadFailed(str(error)) from error
    if recent is not None:
        raise AnotherWasFaster(recent.text)


def _data(stored: Untyped) -> dict[str, str]:
    return stored.get("data") or {}


def _time(entry: str) -> str:
    found = msgspec.json.decode(entry, type=dict[str, msgspec.Raw])
    written = next((value for name, value in found.items() if name.lower() == _FIELD.lower()), None)
    return msgspec.json.decode(written, type=str) if written is not None else ""


def _entry(now: datetime) -> str:
    return msgspec.json.encode(_Entry(moment(now))).decode()
