"""Downscale rules: no-downscale and prepare-downscale, by the paths they are served under."""

from __future__ import annotations

from collections.abc import Mapping

from kedge.admission import no_downscale, prepare_downscale
from kedge.admission.downscale_records import AnnotationRecords, Records
from kedge.admission.no_downscale import NoDownscale
from kedge.admission.prepare_calls import PrepareCalls
from kedge.admission.prepare_downscale import PrepareDownscale
from kedge.admission.server import REQUEST_TIMEOUT, Rule, rule_deadline
from kedge.admission.zone_tracker import ZoneTracker
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.connect.outbound import Outbound
from kedge.plan.zoning.pod_hosts import CALL_TIMEOUT, CLUSTER_DOMAIN


def downscale_rules(
    client: Client,
    outbound: Outbound,
    clock: Clock,
    *,
    cluster_domain: str = CLUSTER_DOMAIN,
    zone_tracker: str = "",
    pod_timeout: float = CALL_TIMEOUT,
    request_timeout: float = REQUEST_TIMEOUT,
) -> Mapping[str, Rule]:
    """Both rules. `zone_tracker` names the ConfigMap to keep times in; if empty they are annotations.

    Each has its own flow at the client's rate limit, so that neither starves the other.
    """
    deadline = rule_deadline(request_timeout)
    preparing = client.as_flow(prepare_downscale.PATH)
    records: Records = AnnotationRecords(preparing)
    if zone_tracker:
        records = ZoneTracker(preparing, clock=clock, name=zone_tracker)
    prepare = PrepareDownscale(
        preparing,
        PrepareCalls(outbound, timeout=pod_timeout),
        records,
        clock=clock,
        deadline=deadline,
        domain=cluster_domain,
    )
    return {
        no_downscale.PATH: NoDownscale(client.as_flow(no_downscale.PATH), deadline=deadline),
        prepare_downscale.PATH: prepare,
    }
