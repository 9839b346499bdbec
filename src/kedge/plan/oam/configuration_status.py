"""Configuration status: what an ApplicationConfiguration says of itself, from what came of each component. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, new_condition, set_condition
from kedge.api.oam.components import ApplicationConfiguration, ApplicationConfigurationStatus, EmittedWorkload
from kedge.plan.oam.conditions import REFUSED, SUCCEEDED, SYNCED, WAITING
from kedge.plan.text import first_few


class ComponentResult(Struct, frozen=True):
    """What came of one component."""

    emitted: EmittedWorkload
    problem: str = ""
    """What is wrong with it; somebody has to change something."""
    wait: str = ""
    """What passes by itself."""


def configuration_status(
    configuration: ApplicationConfiguration, results: Iterable[ComponentResult], *, now: datetime
) -> ApplicationConfigurationStatus:
    """The status of a configuration after all components were looked at."""
    found, generation = tuple(results), configuration.metadata.generation
    status, reason, message = _synced(found)
    said = new_condition(SYNCED, status, reason, message, now=now, generation=generation)
    return ApplicationConfigurationStatus(
        conditions=set_condition(configuration.status.conditions, said),
        workloads=tuple(one.emitted for one in found),
        observed_generation=generation,
    )


def _synced(results: tuple[ComponentResult, ...]) -> tuple[str, str, str]:
    problems = [one.problem for one in results if one.problem]
    if problems:
        return FALSE, REFUSED, first_few(problems)
    waits = [one.wait for one in results if one.wait]
    return (FALSE, WAITING, first_few(waits)) if waits else (TRUE, SUCCEEDED, "")
