"""`kedge operator`: the operator of one cluster, with Kedge's flags. `operator_process` runs it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kedge.api.times import parse_duration, parse_prometheus_duration
from kedge.cli.roles import file_option, notifications_option, process_options

ZONE_TRACKER = "rollout-operator-zone-tracker"

if TYPE_CHECKING:
    from kedge.operator_role import OperatorOptions, WebhookOptions


def seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Read a length of time that is more than none, such as `5s`."""
    if value is None:
        return None
    try:
        length = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if length <= timedelta():
        raise click.BadParameter(f"{value} is no time at all: write 5s, or more")
    return length.total_seconds()


def validity(_: click.Context, __: click.Parameter, value: str) -> timedelta:
    """Read how long a certificate is valid, such as `1y`."""
    try:
        return parse_prometheus_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@file_option("--kubeconfig", "the cluster")
@click.option("--context", help="The context of the cluster.")
@click.option("--namespace", "-n", "namespaces", multiple=True,
              help="A namespace whose rollout groups to manage; repeatable. "
                   "The first has the operator's own objects.")  # fmt: skip
@click.option("--all-namespaces", "-A", "everywhere", is_flag=True,
              help="Manage all namespaces. --namespace then names the one of the operator's own objects.")  # fmt: skip
@click.option("--cluster-domain", default="cluster.local.", show_default=True, help="The end of pods' names in DNS.")
@click.option("--pods-timeout", default="5s", show_default=True, callback=seconds,
              help="How long a call to a pod may take.")  # fmt: skip
@click.option("--zone-tracker", metavar="NAME", help="Keep the times of downscales in the ConfigMap NAME.")
@click.option(
    "--batches", is_flag=True, help="Roll workloads out in batches as well (Rollouts, Applications and their like)."
)
@click.option("--webhooks", is_flag=True, help="Serve admission webhooks over HTTPS.")
@click.option("--webhooks-port", type=click.IntRange(0, 65535), default=8443, show_default=True,
              help="The port of the webhooks.")  # fmt: skip
@click.option("--webhooks-timeout", default="10s", show_default=True, callback=seconds,
              help="How long a webhook request may take.")  # fmt: skip
@click.option("--cert-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The certificate of the webhooks.  [default: one is made, and kept in a Secret]")  # fmt: skip
@click.option("--key-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The key of --cert-file.")  # fmt: skip
@click.option("--cert-secret", default="rollout-operator-self-signed-certificate", show_default=True,
              help="The Secret of the certificate that is made.")  # fmt: skip
@click.option("--cert-name", "cert_names", multiple=True,
              help="One of its DNS names; repeatable.  [default: rollout-operator.NAMESPACE.svc]")  # fmt: skip
@click.option("--cert-validity", default="1y", show_default=True, callback=validity,
              help="How long that certificate is valid.")  # fmt: skip
@click.option("--lease", is_flag=True, help="Elect a leader: there may be other processes of this operator.")
@click.option("--lease-duration", type=click.IntRange(min=3), default=15, show_default=True,
              help="Seconds without a renewal after which another process takes over.")  # fmt: skip
@notifications_option
@process_options
def operator(
    kubeconfig: Path | None,
    context: str | None,
    lease: bool,
    lease_duration: int,
    notifications: Path | None,
    qps: float,
    health: tuple[str, int] | None,
    log_level: str,
    log_format: str | None,
    **told: Any,
) -> None:
    """Run the operator of one cluster: it rolls StatefulSets out zone by zone."""
    from kedge.cli.operator_process import OperatorProcess, run_operator
    from kedge.kube.health import Address

    run_operator(
        OperatorProcess(
            options=operator_options(**told),
            http=Address(*health) if health else None,
            kubeconfig=kubeconfig,
            context=context,
            qps=qps,
            burst=max(1, round(2 * qps)),
            lease_seconds=lease_duration if lease else None,
            notifications=notifications,
            log_level=log_level,
            log_format=log_format,
        )
    )


def operator_options(
    namespaces: tuple[str, ...],
    everywhere: bool,
    cluster_domain: str,
    pods_timeout: float,
    zone_tracker: str | None,
    batches: bool,
    webhooks: bool,
    **told: Any,
) -> OperatorOptions:
    """How the operator behaves."""
    from kedge.operator_role import OperatorOptions

    if not namespaces:
        raise click.UsageError("say which namespaces to manage: --namespace NAME, once or more"
                               + (", with the operator's own objects in the first" if everywhere else ""))  # fmt: skip
    if everywhere and len(namespaces) > 1:
        raise click.UsageError("--all-namespaces manages them all: name only the one of the operator's own objects")
    if not cluster_domain:
        raise click.UsageError("--cluster-domain is empty: pods have no such names")
    return OperatorOptions(
        namespace=namespaces[0],
        namespaces=() if everywhere else tuple(dict.fromkeys(namespaces)),
        cluster_domain=cluster_domain,
        pods_timeout=pods_timeout,
        use_zone_tracker=zone_tracker is not None,
        zone_tracker_name=zone_tracker or ZONE_TRACKER,
        batches=batches,
        webhooks=_webhooks(**told) if webhooks else None,
    )


def _webhooks(
    webhooks_port: int,
    webhooks_timeout: float,
    cert_file: Path | None,
    key_file: Path | None,
    cert_secret: str,
    cert_names: tuple[str, ...],
    cert_validity: timedelta,
) -> WebhookOptions:
    from kedge.operator_role import WebhookOptions

    if (cert_file is None) != (key_file is None):
        raise click.UsageError("--cert-file and --key-file belong together: give both, or neither")
    return WebhookOptions(
        port=webhooks_port,
        request_timeout=webhooks_timeout,
        cert_file=cert_file,
        key_file=key_file,
        self_signed=cert_file is None,
        secret_name=cert_secret,
        dns_names=cert_names,
        organization="Kedge",
        expiration=cert_validity,
        update_ca_bundle=cert_file is None,
    )
