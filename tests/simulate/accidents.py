"""Accidents: an etcd that is restored to an older state, and a CustomResourceDefinition that somebody deletes.

A restore is as etcd's own with `--bump-revision`: every object is as it was then, with the uid it had, and the server's
resourceVersions go on. Watches break. In half of the restores everybody has to list anew then, as `--mark-compacted`
has it; in the others, watches go on, and bring what was restored as changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.work import AppliedWork, Work
from kedge.embedded.kind import Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Version
from kedge.simulate.simulation import Simulation
from simulate.fleets import ON_MEMBER, Fleet
from simulate.promises import Promises
from simulate.restores import Restore
from simulate.settings import Setting
from simulate.workload_trouble import WorkloadTrouble

_KEPT = ("customresourcedefinitions", "events", "leases")  # as they are


class Backup:
    """All objects of a server, as they are when it is made."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.number = server.store.number
        self._then = {kind.resource: dict(_objects(server, kind)) for kind in _kinds(server)}

    def restore(self) -> None:
        """Have the server be as it was then."""
        store = self._server.store
        for kind in _kinds(self._server):
            then, now = self._then.get(kind.resource, {}), dict(_objects(self._server, kind))
            kept = {key for key in then.keys() & now.keys() if _uid(then[key]) == _uid(now[key])}
            for key in sorted(now.keys() - kept):
                store.remove(kind, now[key])
            for key in sorted(kept):
                if then[key].number != now[key].number:
                    store.replace(kind, now[key], then[key].decode(), then[key].owners)
            for key in sorted(then.keys() - kept):
                store.create(kind, key, then[key].decode(), then[key].owners)


def forget_history(server: Server) -> None:
    """Have the server remember no changes, as after a restore with `--mark-compacted`: who watches lists anew."""
    for kind in _kinds(server):
        server.store.all(kind)._forgotten = server.store.number


def _kinds(server: Server) -> Iterator[Kind]:
    """Every kind that is kept, once: a kind may be served in several versions."""
    found = {(kind.resource.group, kind.resource.plural): kind for kind in server.registry.kinds()}
    return (kind for kind in found.values() if kind.resource.plural not in _KEPT)


def _objects(server: Server, kind: Kind) -> Iterator[tuple[str, Version]]:
    for version in server.store.all(kind).at(server.store.number).within(""):
        yield version.key, version


def _uid(version: Version) -> str:
    return str(version.decode()["metadata"]["uid"])


class Accidents:
    """What happens to the servers of a fleet, if its setting says so."""

    def __init__(self, simulation: Simulation, fleet: Fleet, promises: Promises, trouble: WorkloadTrouble) -> None:
        self._simulation = simulation
        self._setting = fleet.setting
        self._promises = promises
        self._trouble = trouble
        self._rng: Random = simulation.rng("accidents")
        self._member = self._rng.choice(fleet.members)
        if self._setting in (Setting.restored_member, Setting.deleted_definition):
            promises.accident = self._member

    async def happen(self) -> None:
        """Two of them, now and then."""
        for _ in range(2):
            await asyncio.sleep(self._rng.uniform(20.0, 90.0))
            if self._setting is Setting.restored_member:
                await self._restore(self._member)
            elif self._setting is Setting.restored_hub:
                await self._restore("hub")
            elif self._setting is Setting.deleted_definition:
                await self._delete_definition()

    async def _restore(self, server: str) -> None:
        backup, held = Backup(self._simulation.servers[server]), self._works_of(server)
        await asyncio.sleep(self._rng.uniform(1.0, 60.0))
        self._simulation.trace.remark(server, "is restored")
        for process in self._simulation.processes.values():
            process.cut()
        self._bring_back(server, backup)
        if self._rng.random() < 0.5:
            forget_history(self._simulation.servers[server])
        if held - self._works_of(server):  # their objects are there again, and the Works that placed them are gone
            self._promises.forgotten.add(server)
        await asyncio.sleep(1.0)
        for process in self._simulation.processes.values():
            process.mend()
        if server != "hub":
            await self._trouble.relieve(server)  # of what it was in when the backup was made

    def _bring_back(self, server: str, backup: Backup) -> None:
        before, last = self._works(), self._simulation.servers[server].store.number
        self._promises.restores.is_underway = True
        backup.restore()
        self._promises.restores.is_underway = False
        self._promises.forgotten |= before - self._works()
        self._promises.restores.note(server, Restore(self._simulation.loop.time(), backup.number, last))

    def _works(self) -> set[str]:
        """The members that there are Works for."""
        return {member for member, _ in self._all_works()}

    def _works_of(self, member: str) -> set[str]:
        """The names of a member's Works."""
        return {name for whose, name in self._all_works() if whose == member}

    def _all_works(self) -> set[tuple[str, str]]:
        """Every Work: whose it is, and its name."""
        server = self._simulation.servers["hub"]
        kind = next(one for one in _kinds(server) if one.resource.plural == Work.resource.plural)
        return {
            (version.namespace.removeprefix("fleet-member-"), version.name) for _, version in _objects(server, kind)
        }

    async def _delete_definition(self) -> None:
        """The kind by which an agent owns what it has placed is gone for a while, and all that it owns."""
        client = self._simulation.client(self._member)
        await client.delete(CustomResourceDefinition, str(AppliedWork.resource))
        await asyncio.sleep(self._rng.uniform(1.0, 60.0))
        for definition in ON_MEMBER:
            await client.create(CustomResourceDefinition, definition)
