"""Whole systems in virtual time, from one seed: the same seed gives the same history, byte for byte.

    async def scenario(simulation: Simulation) -> None: ...
    report = run("my.module:scenario", seed=7, faults=ROUGH)

Servers, processes and the network between them run on one loop that no outside reaches; what fails and when is drawn
from the seed. A run that breaks an invariant says how to replay it.
"""
