"""Downscale records: when each zone was last scaled down, kept as the annotation `grafana.com/last-downscale`.

`Records` is what prepare-downscale needs; `zone_tracker` keeps the same in a ConfigMap. A record is written before the
API server stores the downscale, because nobody is asked afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar, Final, Protocol

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.zones import LAST_DOWNSCALE
from kedge.kube.client import Client
from kedge.kube.codec import Untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import StrategicPatch
from kedge.plan.text import moment
from kedge.plan.zoning.go_time import parse_rfc3339
from kedge.plan.zoning.replica_change import Downscale

_SAME_DOWNSCALE: Final = timedelta(seconds=30)
"""How long a downscale that is asked for again counts as the same one."""


class LoadFailed(Exception):
    """The records cannot be read."""


class AnotherWasFaster(Exception):
    """Meanwhile another zone of the group was scaled down; the message says which."""


class Loaded(Struct, frozen=True):
    """When zones were last scaled down, by name and as it is written; and the object it was read from, if one was."""

    times: Mapping[str, str]
    stored: Untyped | None = None


class DownscaleRecord(Struct, frozen=True):
    """One downscale to be recorded: of which zone, beside which others, on what was loaded, and when."""

    zone: StatefulSet
    downscale: Downscale
    others: Sequence[StatefulSet]
    loaded: Loaded
    now: datetime


class Records(Protocol):
    """Where it is kept when zones were scaled down. The two texts are why a downscale is denied."""

    unreadable: ClassVar[str]
    unwritable: ClassVar[str]

    async def load(self, namespace: str, group: Sequence[StatefulSet], /) -> Loaded: ...

    async def write(self, record: DownscaleRecord) -> None: ...

    async def restore(self, record: DownscaleRecord) -> None:
        """Take a record back, written or not; nothing if somebody has written another one."""


class _Written(Struct, frozen=True):
    """What was last written on a StatefulSet, for which downscale, and what was there before."""

    old: int
    new: int
    value: str
    before: str | None


class AnnotationRecords:
    """Keeps it on the StatefulSets."""

    unreadable: ClassVar[str] = "parsing downscale annotations failed."
    unwritable: ClassVar[str] = "adding an annotation to the statefulset failed."

    def __init__(self, client: Client) -> None:
        self._client = client
        self._written: dict[tuple[str, str], _Written] = {}

    async def load(self, _namespace: str, group: Sequence[StatefulSet], /) -> Loaded:
        """What the StatefulSets say."""
        found = ((zone.metadata.name, zone.metadata.annotations.get(LAST_DOWNSCALE)) for zone in group)
        return Loaded({name: written for name, written in found if written is not None})

    async def write(self, record: DownscaleRecord) -> None:
        """Say that a zone is scaled down now.

        This write makes the API server's own one fail, so it tries again and asks again. It must not find another time
        on the object then, or it would go on like that.
        """
        downscale, meta = record.downscale, record.zone.metadata
        key, before = (downscale.namespace, downscale.name), meta.annotations.get(LAST_DOWNSCALE)
        if _is_the_same(self._written.get(key), downscale, before, record.now):
            return
        self._written[key] = written = _Written(downscale.old, downscale.new, moment(record.now), before)
        await self._annotate(downscale, written.value, uid=meta.uid)

    async def restore(self, record: DownscaleRecord) -> None:
        """Put back what was there before this downscale, unless somebody has written something else."""
        downscale = record.downscale
        written = self._written.pop((downscale.namespace, downscale.name), None)
        if written is None or (written.old, written.new) != (downscale.old, downscale.new):
            return
        try:
            current = await self._client.get(StatefulSet, downscale.name, downscale.namespace)
        except NotFound:
            return
        if current.metadata.annotations.get(LAST_DOWNSCALE) == written.value:
            await self._annotate(downscale, written.before, uid=current.metadata.uid)

    async def _annotate(self, downscale: Downscale, value: str | None, *, uid: str) -> None:
        patch = StrategicPatch({"metadata": {"annotations": {LAST_DOWNSCALE: value}}})
        await self._client.patch(StatefulSet, downscale.name, patch, downscale.namespace, uid=uid or None)


def _is_the_same(written: _Written | None, downscale: Downscale, there: str | None, now: datetime) -> bool:
    """Whether this downscale was recorded a moment ago, and the record is still there."""
    if written is None or (written.old, written.new) != (downscale.old, downscale.new) or written.value != there:
        return False
    return now - parse_rfc3339(written.value) < _SAME_DOWNSCALE
