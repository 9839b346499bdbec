"""Fleet processes: the hub and the agents of a simulated fleet, as they run for real."""

from __future__ import annotations

from kedge.kube.client import Client
from kedge.kube.fencing import FencedTransport
from kedge.kube.lease import Election
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.transport import Transport
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member
from kedge.simulate.process import Main, Process

LEASES = "fleet-system"
_LEASE_SECONDS = 30


async def hub(process: Process) -> None:
    """A hub that is the only one."""
    await _hub(process, process.link("hub"), None)


async def contending_hub(process: Process) -> None:
    """One of several hubs: it acts while it holds the lease, and exits when it loses it."""
    link = process.link("hub")
    election = Election(
        Client(link, rng=process.rng("lease client")),
        "kedge-hub",
        LEASES,
        f"{process.name}-{process.starts}",
        clock=process.clock,
        rng=process.rng("lease"),
        duration=_LEASE_SECONDS,
        renew_deadline=_LEASE_SECONDS * 2 / 3,
        retry=_LEASE_SECONDS / 6,
    )
    await _hub(process, FencedTransport(link, election), election)


async def _hub(process: Process, transport: Transport, election: Election | None) -> None:
    rng = process.rng("manager")
    async with Manager(component="kedge-hub", clock=process.clock, rng=rng, leader=election) as manager:
        cluster = await manager.connect("hub", transport, limiter=Limiter(rate=0))
        add_hub(manager, cluster, HubOptions(collect=0.2))
        await manager.run(signals=False)


def agent_of(name: str) -> Main:
    """The agent of this member."""

    async def agent(process: Process) -> None:
        async with Manager(component="kedge-member", clock=process.clock, rng=process.rng("manager")) as manager:
            to_hub = await manager.connect("hub", process.link("hub"), limiter=Limiter(rate=0))
            member = await manager.connect(name, process.link(name), limiter=Limiter(rate=0))
            add_member(manager, name, to_hub, member, MemberOptions())
            await manager.run(signals=False)

    return agent
