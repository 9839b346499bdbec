"""Bad days: processes that crash or stand still now and then, and operators of which the one with the lease acts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from kedge.kube.client import Client
from kedge.kube.fencing import FencedTransport
from kedge.kube.lease import Election
from kedge.kube.transport import Transport
from kedge.simulate.process import Process
from kedge.simulate.simulation import Simulation

LEASE_SECONDS = 30


async def bad_days(simulation: Simulation, name: str, *, days: int = 3, apart: float) -> None:
    """This process crashes, or stands still, now and then."""
    rng, process = simulation.rng("bad days", name), simulation.processes[name]
    for _ in range(days):
        await asyncio.sleep(rng.uniform(0.0, apart))
        await bad_day(process, rng)


async def bad_day(process: Process, rng: Random, *, longest: float = 30.0) -> None:
    """A process stands still for at most so many seconds, or crashes: after some writes, or at once."""
    if rng.random() < 0.3:
        process.suspend()
        await asyncio.sleep(rng.uniform(0.0, longest))
        process.resume()
    elif rng.random() < 0.5:
        process.crash_after_write(rng.randint(1, 10))
    else:
        process.crash()
        await asyncio.sleep(rng.uniform(0.0, 10.0))
        if not process.alive:
            process.start()


async def elected(
    process: Process, server: str, namespace: str, operate: Callable[[Transport, Election | None], Awaitable[None]]
) -> None:
    """One of several operators: it acts while it holds the lease, and exits when it loses it."""
    link = process.link(server)
    election = Election(
        Client(link, rng=process.rng("lease client")),
        "kedge-operator",
        namespace,
        f"{process.name}-{process.starts}",
        clock=process.clock,
        rng=process.rng("lease"),
        duration=LEASE_SECONDS,
        renew_deadline=LEASE_SECONDS * 2 / 3,
        retry=LEASE_SECONDS / 6,
    )
    await operate(FencedTransport(link, election), election)
