"""Before a role starts: what it needs, and does not find, is said in a sentence that names the command that helps.

Nothing here is final: a role goes on by itself as soon as what it needs is there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from kedge.api.cluster import MemberCluster
from kedge.api.core import Namespace
from kedge.api.work import AppliedWork
from kedge.kube.client import Client
from kedge.kube.errors import AlreadyExists, KubeError, NotFound

PATIENCE: Final = 3.0  # seconds: a server that hangs must not keep a role from the others
log = logging.getLogger("kedge")


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


async def look_at_hub(client: Client) -> None:
    """Say so if a hub was never made one."""
    await _look(client, MemberCluster, "kedge install hub | kubectl apply -f -")


async def look_at_member(client: Client, name: str) -> None:
    """Say so if a member was never made one."""
    await _look(client, AppliedWork, f"kedge install member {name} | kubectl apply -f -")


async def _look(client: Client, kind: Any, fix: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            async for _ in client.without_retry().pages(kind, page_size=1):
                return
    except NotFound:
        known = kind.resource.kind
        log.warning("this cluster knows no %s; it goes on once it does: `%s`, or `kedge crds` alone", known, fix)
    except (KubeError, TimeoutError) as error:
        log.debug("looking for %s: %s", kind.resource, error)
