"""The namespaces a member reports: named, with whoever placed them, and not endlessly many."""

from __future__ import annotations

import asyncio

from kedge.api.core import Namespace as AnyNamespace
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.controllers.member.namespaces import MOST, Namespace, Namespaces, namespace_in_short
from support.fleets import client_of, fleet_cluster, managed
from support.virtual import run
from support.waiting import until

WORK = OwnerReference(api_version="placement.kubernetes-fleet.io/v1beta1", kind="AppliedWork", name="web-work", uid="u")
OTHER = OwnerReference(api_version="v1", kind="AppliedWork", name="other", uid="u")


def test_of_a_namespace_its_name_and_the_work_that_placed_it_are_kept() -> None:
    meta = ObjectMeta(name="shop", resource_version="3", labels={"a": "b"}, owner_references=(OTHER, WORK))
    kept = namespace_in_short(Namespace(metadata=meta))
    assert kept == Namespace(metadata=ObjectMeta(name="shop", resource_version="3"), work="web-work")
    assert namespace_in_short(Namespace(metadata=ObjectMeta(name="shop"))).work == ""


def test_of_very_many_the_oldest_are_named_and_each_that_comes_or_goes_is_news() -> None:
    async def main() -> None:
        async with fleet_cluster(kinds=False) as server, managed() as manager, client_of(server) as client:
            news: list[None] = []
            found = Namespaces(await manager.connect("member", server.transport()), lambda: news.append(None))
            await until(lambda: found.are_known)
            before = len(news)
            for number in range(MOST):
                await client.create(AnyNamespace, {"metadata": {"name": f"ns-{number:03}"}})
                await asyncio.sleep(1)
            assert len(news) == before + MOST
            assert found.are_too_many
            named = found.by_work()
            assert (len(named), "default" in named, f"ns-{MOST - 1}" in named) == (MOST, True, False)
            await client.delete(AnyNamespace, "ns-000")
            await asyncio.sleep(5)
            assert len(news) == before + MOST + 1

    run(main())
