"""Rolling back: making the run that takes another back, once, whatever an earlier run of the same name left behind."""

from __future__ import annotations

from kedge.api.twins import Run, Twins
from kedge.kube.client import Client
from kedge.kube.errors import AlreadyExists
from kedge.plan.staging.returning import is_rollback_of, rollback_name, rollback_of


async def roll_back(client: Client, twins: Twins, run: Run, *, manager: str) -> tuple[str, bool]:
    """The name of the run that takes this one back, and whether it had to be made."""
    number, namespace = 1, run.metadata.namespace
    while True:
        name = rollback_name(run, number)
        try:
            await client.create(twins.run, rollback_of(run, number), namespace, manager=manager)
        except AlreadyExists:
            if is_rollback_of(await client.get(twins.run, name, namespace), run):
                return name, False
            number += 1
        else:
            return name, True
