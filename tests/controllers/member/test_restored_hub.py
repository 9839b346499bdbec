"""A hub whose etcd was restored gives generations a second time: the agent goes by what a Work asks for."""

from __future__ import annotations

from controllers.member.applying_bed import MAPS, Bed, config, namespace, play
from simulate.accidents import Backup, forget_history


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
        forget_history(here.hub_cluster.server)
        here.to_hub.connect()
        await here.rest(60.0)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "3"}

    play(scene)
