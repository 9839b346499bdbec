"""Before a role starts: what it needs is made where that can be done, and otherwise named with the command that helps.

Nothing here is final: a role goes on by itself as soon as what it needs is there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kedge.api.core import Namespace
from kedge.kube.client import Client
from kedge.kube.errors import AlreadyExists, KubeError

PATIENCE: Final = 3.0  # seconds: a server that hangs must not keep a role from the others
NO_HUB: Final = "`kedge install hub | kubectl apply -f -` makes a cluster a hub, `kedge crds` prints the kinds alone"
"""What helps a cluster that lacks the kinds of a hub."""
log = logging.getLogger("kedge")


def no_member(name: str) -> str:
    """What helps a cluster that lacks the kinds of a member."""
    return f"`kedge install member {name} | kubectl apply -f -` installs them, `kedge crds` prints the kinds alone"


async def make_namespace(client: Client, name: str) -> None:
    """Make the namespace of the lease, where there is none and we may."""
    try:
        async with asyncio.timeout(PATIENCE):
            await client.without_retry().create(Namespace, {"metadata": {"name": name}})
        log.info("made the namespace %s, for the lease", name)
    except AlreadyExists:
        return
    except (KubeError, TimeoutError) as error:
        # As a service account of `kedge install` we may not; then the namespace came with the account.
        log.debug("the namespace %s was not made: %s", name, error)
