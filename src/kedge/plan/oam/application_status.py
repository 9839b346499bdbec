"""Application status: what an Application says of itself, from its configuration and its rollout. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kedge.api.condition import FALSE, TRUE, Condition, find_condition, new_condition, set_condition
from kedge.api.oam.applications import Application, ApplicationStatus, Phase, ServiceStatus
from kedge.api.oam.components import ApplicationConfiguration
from kedge.api.oam.rollout_status import RollingState
from kedge.api.oam.rollouts import AppRollout, AppRolloutStatus
from kedge.plan.oam.conditions import APPLIED, APPLYING, PARSED, REFUSED, SUCCEEDED, SYNCED
from kedge.plan.oam.revisions import Revision

_ENDED: Final = (RollingState.succeeded, RollingState.failed)


def application_status(
    application: Application,
    revision: Revision | str,
    configuration: ApplicationConfiguration | None,
    rollout: AppRollout | None,
    *,
    now: datetime,
) -> ApplicationStatus:
    """The status of an Application; `revision` is a sentence if it was refused."""
    old, generation = application.status, application.metadata.generation

    def said(type_: str, status: str, reason: str, message: str) -> Condition:
        return new_condition(type_, status, reason, message, now=now, generation=generation)

    if isinstance(revision, str):
        refused = set_condition(old.conditions, said(PARSED, FALSE, REFUSED, revision))
        return ApplicationStatus(
            conditions=refused,
            status=Phase.rendering,
            services=old.services,
            latest_revision=old.latest_revision,
            rollout=old.rollout,
            observed_generation=generation,
        )
    conditions = set_condition(old.conditions, said(PARSED, TRUE, SUCCEEDED, ""))
    conditions = set_condition(conditions, said(APPLIED, *_applied(configuration)))
    return ApplicationStatus(
        conditions=conditions,
        status=_phase(configuration, rollout),
        services=_services(configuration),
        latest_revision=revision.latest,
        rollout=_copied(rollout),
        observed_generation=generation,
    )


def _copied(rollout: AppRollout | None) -> AppRolloutStatus | None:
    """The status of a rollout that has begun."""
    return rollout.status if rollout is not None and rollout.status.rolling_state is not None else None


def _applied(configuration: ApplicationConfiguration | None) -> tuple[str, str, str]:
    found = _synced(configuration)
    if found is None:
        return FALSE, APPLYING, "the ApplicationConfiguration is not applied yet"
    return found.status, found.reason, found.message


def _synced(configuration: ApplicationConfiguration | None) -> Condition | None:
    """What the configuration says of its present generation."""
    if configuration is None:
        return None
    found = find_condition(configuration.status.conditions, SYNCED)
    return found if found is not None and found.observed_generation == configuration.metadata.generation else None


def _phase(configuration: ApplicationConfiguration | None, rollout: AppRollout | None) -> Phase:
    if rollout is not None and rollout.status.rolling_state not in _ENDED:
        return Phase.rolling_out
    found = _synced(configuration)
    return Phase.running if found is not None and found.status == TRUE else Phase.applying


def _services(configuration: ApplicationConfiguration | None) -> tuple[ServiceStatus, ...]:
    return tuple(
        ServiceStatus(
            name=one.component_name, workload_ref=one.workload_ref, healthy=one.available, message=one.message
        )
        for one in (configuration.status.workloads if configuration is not None else ())
    )
