"""A hub whose etcd was restored gives generations a second time: the agent goes by what a Work asks for."""

from __future__ import annotations

from controllers.member.applying_bed import MAPS, Bed, config, namespace, play
from kedge.api.work import Work
from simulate.accidents import Backup


def forget_history(here: Bed) -> None:
    """Have the hub remember no changes of Works, as after a restore: whoever watches has to list anew."""
    server = here.hub_cluster.server
    kind = next(one for one in server.registry.kinds() if one.resource == Work.resource)
    server.store.all(kind)._forgotten = server.store.number


def test_a_generation_that_a_restored_hub_gives_to_something_else_is_applied() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        backup = Backup(here.hub_cluster.server)
        await here.place(namespace(), config(a="2"))
        await here.rest()
        known = await here.work()
        here.to_hub.disconnect()
        backup.restore()
        await here.place(namespace(), config(a="3"))
        assert (await here.work()).metadata.generation == known.metadata.generation
        forget_history(here)
        here.to_hub.connect()
        await here.rest(60.0)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "3"}

    play(scene)
