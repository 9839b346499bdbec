"""A process that contends for a lease and, while it leads, writes a hundred times a second. For test_leader_election.

    python leader_program.py KUBECONFIG NAMESPACE IDENTITY asyncio|uvloop

It is as bad a tenant as a leader can be: eight writers share three connections, so that writes queue up; refusals do
not slow them; and told to stop they go on for a second. It ends with 3 when it loses the lease, with 0 on SIGTERM.
"""

import asyncio
import logging
import random
import signal
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import uvloop

from kedge.api.core import ConfigMap
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import Connection, load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import KubeError
from kedge.kube.fencing import AlarmWatchdog, FencedTransport, NotLeading
from kedge.kube.lease import Election, LeadershipLost
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch

LOST = 3
WRITERS = 8
WRITES_A_SECOND = 100
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Writers:
    """Work that leaves its mark on an object for as long as it is let."""

    def __init__(self, client: Client, namespace: str, identity: str) -> None:
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._numbers = count()

    async def __call__(self) -> None:
        writers = [asyncio.create_task(self._write_on()) for _ in range(WRITERS)]
        try:
            await asyncio.gather(*writers)
        finally:
            await asyncio.sleep(1)
            for writer in writers:
                writer.cancel()
            await asyncio.gather(*writers, return_exceptions=True)

    async def _write_on(self) -> None:
        while True:
            mark = MergePatch({"data": {"writer": f"{self._identity} {next(self._numbers)}"}})
            with suppress(KubeError, NotLeading):
                await self._client.patch(ConfigMap, "board", mark, self._namespace)
            await asyncio.sleep(WRITERS / WRITES_A_SECOND)


async def main(connection: Connection, namespace: str, identity: str) -> int:
    plain = HttpsTransport(connection)
    election = Election(
        Client(plain),
        "leader",
        namespace,
        identity,
        clock=SystemClock(),
        rng=random.Random(),
        watchdog=AlarmWatchdog(),
    )
    guarded = HttpsTransport(connection, connections=3, before_send=election.guard)
    acting = Client(FencedTransport(guarded, election), limiter=Limiter(rate=0))
    leading = asyncio.create_task(election.lead(Writers(acting, namespace, identity)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leading.cancel)
    try:
        await leading
    except asyncio.CancelledError:
        return 0
    except LeadershipLost:
        return LOST
    finally:
        await acting.close()
        await plain.close()
    raise AssertionError("the work has no end")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    kubeconfig, in_namespace, name, loop = sys.argv[1:]
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        sys.exit(runner.run(main(load([Path(kubeconfig)]), in_namespace, name)))
