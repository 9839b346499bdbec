"""A restored etcd: every object is as it was, and what was written since is void once that was heard of."""

from __future__ import annotations

import asyncio
from random import Random

from kedge.api.core import ConfigMap, Namespace
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from simulate.accidents import Backup
from simulate.restores import ONE_LOOK, Restore, Restores
from support.stage import LoopClock
from support.virtual import run


def test_a_change_after_the_backup_is_void_for_whoever_has_heard_of_the_restore() -> None:
    restores = Restores()
    assert not restores
    restores.note("hub", Restore(at=1000.0, backup=50, last=70))
    assert restores
    long_after = 1000.0 + ONE_LOOK + 1
    assert [version for version in (50, 51, 70, 71) if restores.have_undone(version)] == [51, 70]
    assert [version for version in (50, 51, 70, 71) if restores.is_void(version, long_after)] == [51, 70]
    assert not any(restores.is_void(version, 1000.0 + ONE_LOOK) for version in (50, 51, 70, 71))


def test_whoever_acts_just_after_a_restore_may_have_looked_before_it() -> None:
    restores = Restores()
    restores.note("hub", Restore(at=1000.0, backup=50, last=70))
    moments = (999.0, 1000.0, 1000.0 + ONE_LOOK / 2, 1000.0 + ONE_LOOK)
    assert [restores.unaware_since(moment) for moment in moments] == [999.0, 1000.0, 1000.0, 1000.0 + ONE_LOOK]


def test_a_restored_server_has_the_objects_of_the_backup_with_their_uids_and_newer_versions() -> None:
    async def main() -> None:
        cluster = EmbeddedCluster("hub", clock=LoopClock(), rng=Random(1))
        cluster.start()
        client = Client(cluster.transport(), limiter=Limiter(rate=0))
        await client.create(Namespace, {"metadata": {"name": "shop"}})
        for name in ("kept", "changed", "deleted", "another"):
            await client.create(ConfigMap, {"metadata": {"name": name}, "data": {"a": "1"}}, "shop")
        before = {one.metadata.name: one for one in (await client.list(ConfigMap, "shop")).items}
        backup = Backup(cluster.server)
        await client.patch(ConfigMap, "changed", MergePatch({"data": {"a": "2"}}), "shop")
        await client.delete(ConfigMap, "deleted", "shop")
        await client.delete(ConfigMap, "another", "shop")
        for name in ("new", "another"):
            await client.create(ConfigMap, {"metadata": {"name": name}}, "shop")
        last = cluster.server.store.number
        backup.restore()
        after = {one.metadata.name: one for one in (await client.list(ConfigMap, "shop")).items}
        assert {name: (one.metadata.uid, one.data) for name, one in after.items()} == {
            name: (one.metadata.uid, one.data) for name, one in before.items()
        }
        assert backup.number < last
        newer = [name for name, one in after.items() if int(one.metadata.resource_version) > last]
        assert sorted(newer) == ["another", "changed", "deleted"]
        await client.close()
        cluster.stop()
        await asyncio.sleep(0)

    run(main())
