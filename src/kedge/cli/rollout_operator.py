"""`kedge rollout-operator`: the role of Grafana's rollout-operator, with its command line.

Every flag of the peer is read, in Go's syntax, with the peer's defaults, checks and texts. Some defaults differ from
what usage shows, and hold only if they are given: `reconcile.interval`, since Kedge acts when something changes and
need not wait; the limit of requests, which is meant for a loop that looks every five seconds; and the time-out of the
API client, since five minutes without an answer is too long for a rollout.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from kedge.cli.go_flags import (
    Boolean,
    Flag,
    FlagError,
    Float,
    GoDuration,
    HelpWanted,
    Integer,
    Parsed,
    PrometheusDuration,
    String,
    parse,
    usage,
)

if TYPE_CHECKING:
    from kedge.cli.operator_process import OperatorProcess
    from kedge.kube.cluster_validation import ClusterValidation
    from kedge.operator_role import OperatorOptions, WebhookOptions

PROGRAM: Final = "rollout-operator"
EXCLUDED_PATHS: Final = "admission/no-downscale,admission/prepare-downscale"
LOG_FORMATS: Final = ("logfmt", "json")
LOG_LEVELS: Final = ("debug", "info", "warn", "error")
_SELF_SIGNED: Final = "server-tls.self-signed-cert"
_VALIDATION: Final = "server.cluster-validation.http"
QPS: Final = 100.0
BURST: Final = 200
_CONFIG: Final = "kubernetes.config-file"

FLAGS: Final = (
    Flag("log.format", String(), "logfmt", "The format of log lines: logfmt or json."),
    Flag("log.level", String(), "debug", "The least severe messages to log: debug, info, warn or error."),
    Flag("server.port", Integer(), 8001, "The port of /metrics and /ready."),
    Flag("kubernetes.api-url", String(), "", f"The URL of the API server; needs -{_CONFIG}."),
    Flag(_CONFIG, String(), "", "The kubeconfig; if empty, the service account of the pod is used."),
    Flag("kubernetes.cluster-domain", String(), "cluster.local.", "The end of pods' names in DNS."),
    Flag("kubernetes.namespace", String(), "", "The namespace whose StatefulSets are managed. Required."),
    Flag("kubernetes.client-timeout", GoDuration(), timedelta(minutes=5),
         "How long a request to the API server may take. If not given, 30s."),
    Flag("kubernetes.client-qps", Float(), 5.0,
         f"Requests per second to each API group; 0 for no limit. If not given, {QPS:g}."),
    Flag("kubernetes.client-burst", Integer(), 10,
         f"Requests to each API group at once. If -kubernetes.client-qps is not given, {BURST}."),
    Flag("pods.client-timeout", GoDuration(), timedelta(seconds=5), "How long a call to a pod may take."),
    Flag("reconcile.interval", GoDuration(), timedelta(seconds=5),
         "The least time between two reconciles of a group. If not given, changes are acted on at once."),
    Flag(f"{_VALIDATION}.enabled", Boolean(), False,
         "Whether requests must carry the header X-Cluster with the namespace."),
    Flag(f"{_VALIDATION}.soft-validation", Boolean(), False, "Whether wrong requests are only logged."),
    Flag(f"{_VALIDATION}.excluded-paths", String(), EXCLUDED_PATHS, "Paths that are not checked, separated by commas."),
    Flag(f"{_VALIDATION}.excluded-user-agents", String(), "",
         "Clients that are not checked: regular expressions, separated by commas."),
    Flag("server-tls.enabled", Boolean(), False, "Whether admission webhooks are served over HTTPS."),
    Flag("server-tls.port", Integer(), 8443, "The port of the webhooks."),
    Flag("server-tls.cert-file", String(), "", "The certificate, if it is not self-signed."),
    Flag("server-tls.key-file", String(), "", "The key of the certificate, if it is not self-signed."),
    Flag("server-tls.request-timeout", GoDuration(), timedelta(seconds=10), "How long a webhook request may take."),
    Flag(f"{_SELF_SIGNED}.enabled", Boolean(), True, "Whether a certificate is made and kept in a Secret."),
    Flag(f"{_SELF_SIGNED}.secret-name", String(), "rollout-operator-self-signed-certificate",
         "The Secret of the self-signed certificate."),
    Flag(f"{_SELF_SIGNED}.dns-name", String(), "",
         "The names of the certificate, separated by commas; if empty, rollout-operator.<namespace>.svc."),
    Flag(f"{_SELF_SIGNED}.org", String(), "Grafana Labs", "The organization of the certificate."),
    Flag(f"{_SELF_SIGNED}.expiration", PrometheusDuration(), timedelta(days=365), "How long the certificate is valid."),
    Flag("webhooks.update-ca-bundle", Boolean(), True,
         "Whether labelled webhook configurations are given the CA of the self-signed certificate."),
    Flag("use-zone-tracker", Boolean(), False, "Whether times of downscales are kept in a ConfigMap."),
    Flag("zone-tracker.config-map-name", String(), "rollout-operator-zone-tracker",
         "The ConfigMap of the zone tracker."),
    Flag("zpdb.pod-ready-annotation-patch-timeout", GoDuration(), timedelta(seconds=5),
         "How long writing the ready-time of a pod may take."),
    Flag("notifications", String(), "", "Who is notified of events: a YAML file. The peer has no such flag."),
)  # fmt: skip
"""Every flag of the peer, and one of our own."""

_CHECKS: Final[tuple[tuple[Callable[[Parsed], Any], str], ...]] = (
    (lambda given: not given["kubernetes.cluster-domain"], "-kubernetes.cluster-domain cannot be an empty string"),
    (lambda given: not given["kubernetes.namespace"], "-kubernetes.namespace has not been specified"),
    (lambda given: bool(given["kubernetes.api-url"]) != bool(given[_CONFIG]),
     f"either configure both -kubernetes.api-url and -{_CONFIG} or neither"),
    (lambda given: given["use-zone-tracker"] and not given["zone-tracker.config-map-name"],
     "-use-zone-tracker is true, but -zone-tracker.config-map-name has not been specified"),
    (lambda given: given["kubernetes.client-qps"] > 0 and given["kubernetes.client-burst"] < 1,
     ("-kubernetes.client-burst must be at least 1 when -kubernetes.client-qps is greater than 0, "
      "since each request consumes one token")),
    (lambda given: given["server-tls.request-timeout"] <= timedelta(), "-server-tls.request-timeout must be positive"),
    (lambda given: given["zpdb.pod-ready-annotation-patch-timeout"] <= timedelta(),
     "-zpdb.pod-ready-annotation-patch-timeout must be positive"),
)  # fmt: skip

_TLS_CHECKS: Final[tuple[tuple[Callable[[Parsed], Any], str], ...]] = (
    (lambda given: not given[f"{_SELF_SIGNED}.enabled"]
     and not (given["server-tls.cert-file"] and given["server-tls.key-file"]),
     "either self-signed certificate should be enabled or path to the certificate and key should be provided"),
    (lambda given: given["webhooks.update-ca-bundle"] and not given[f"{_SELF_SIGNED}.enabled"],
     "self-signed certificate should be enabled to update the CA bundle in the webhook configurations"),
)  # fmt: skip


def problem(given: Parsed) -> str:
    """The first thing that is wrong with a command line, or nothing. The order and the texts are the peer's."""
    checks = (*_CHECKS, *(_TLS_CHECKS if given["server-tls.enabled"] else ()))
    found = next((text for is_wrong, text in checks if is_wrong(given)), "")
    return found or _log_problem(given) or _range_problem(given)


def _log_problem(given: Parsed) -> str:
    for flag, known in (("format", LOG_FORMATS), ("level", LOG_LEVELS)):
        if (value := given[f"log.{flag}"]) not in known:
            return f"unknown log {flag}: {value}"
    return ""


def _range_problem(given: Parsed) -> str:
    """What the peer only notices later, or never."""
    for name in ("server.port", "server-tls.port"):
        if not 0 <= given[name] <= 65535:
            return f"-{name} must be a port, from 0 to 65535"
    for name in ("kubernetes.client-timeout", "pods.client-timeout"):
        if given[name] <= timedelta():
            return f"-{name} must be positive"
    for pattern in _listed(given[f"{_VALIDATION}.excluded-user-agents"]):
        try:
            re.compile(pattern)
        except re.error as error:
            return f"-{_VALIDATION}.excluded-user-agents: {pattern} is no regular expression: {error}"
    return ""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


class GoCommand(click.Command):
    """A command that reads its arguments itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["arguments"] = tuple(args)
        return []


@click.command("rollout-operator", cls=GoCommand, add_help_option=False)
def rollout_operator(arguments: tuple[str, ...]) -> None:
    """Run an operator with the flags of Grafana's rollout-operator."""
    try:
        given = parse(FLAGS, arguments)
    except HelpWanted:
        click.echo(usage(PROGRAM, FLAGS), err=True, nl=False)
        return
    except FlagError as error:
        _exit(f"{error}\n{usage(PROGRAM, FLAGS).rstrip()}", 2)
    if text := problem(given):
        _exit(text, 1)
    from kedge.cli.operator_process import run_operator

    run_operator(process(given))


def _exit(text: str, code: int) -> NoReturn:
    click.echo(text, err=True)
    raise SystemExit(code)


def process(given: Parsed) -> OperatorProcess:
    """What the process is told."""
    from kedge.cli.operator_process import OperatorProcess
    from kedge.kube.health import Address

    timeout = (
        given["kubernetes.client-timeout"] if "kubernetes.client-timeout" in given.given else timedelta(seconds=30)
    )
    is_limited = "kubernetes.client-qps" in given.given
    return OperatorProcess(
        options=options(given),
        component=PROGRAM,
        http=Address("", given["server.port"]),
        kubeconfig=_path(given[_CONFIG]),
        api_url=given["kubernetes.api-url"],
        qps=given["kubernetes.client-qps"] if is_limited else QPS,
        burst=given["kubernetes.client-burst"] if is_limited else BURST,
        client_timeout=timeout.total_seconds(),
        notifications=_path(given["notifications"]),
        log_level={"warn": "warning"}.get(given["log.level"], given["log.level"]),
        log_format=given["log.format"],
        ignored=given.rest,
    )


def options(given: Parsed) -> OperatorOptions:
    """How the operator behaves."""
    from kedge.operator_role import OperatorOptions

    interval = given["reconcile.interval"] if "reconcile.interval" in given.given else timedelta()
    return OperatorOptions(
        namespace=given["kubernetes.namespace"],
        namespaces=(given["kubernetes.namespace"],),
        cluster_domain=given["kubernetes.cluster-domain"],
        reconcile_interval=interval.total_seconds(),
        pods_timeout=given["pods.client-timeout"].total_seconds(),
        use_zone_tracker=given["use-zone-tracker"],
        zone_tracker_name=given["zone-tracker.config-map-name"],
        ready_time_timeout=given["zpdb.pod-ready-annotation-patch-timeout"].total_seconds(),
        webhooks=_webhooks(given) if given["server-tls.enabled"] else None,
        cluster_validation=_validation(given) if given[f"{_VALIDATION}.enabled"] else None,
    )


def _webhooks(given: Parsed) -> WebhookOptions:
    from kedge.operator_role import WebhookOptions

    return WebhookOptions(
        port=given["server-tls.port"],
        request_timeout=given["server-tls.request-timeout"].total_seconds(),
        cert_file=_path(given["server-tls.cert-file"]),
        key_file=_path(given["server-tls.key-file"]),
        self_signed=given[f"{_SELF_SIGNED}.enabled"],
        secret_name=given[f"{_SELF_SIGNED}.secret-name"],
        dns_names=_listed(given[f"{_SELF_SIGNED}.dns-name"]),
        organization=given[f"{_SELF_SIGNED}.org"],
        expiration=given[f"{_SELF_SIGNED}.expiration"],
        update_ca_bundle=given["webhooks.update-ca-bundle"],
    )


def _validation(given: Parsed) -> ClusterValidation:
    from kedge.kube.cluster_validation import ClusterValidation

    return ClusterValidation(
        label=given["kubernetes.namespace"],
        soft=given[f"{_VALIDATION}.soft-validation"],
        excluded_paths=_listed(given[f"{_VALIDATION}.excluded-paths"] or EXCLUDED_PATHS),
        excluded_user_agents=_listed(given[f"{_VALIDATION}.excluded-user-agents"]),
    )


def _path(text: str) -> Path | None:
    return Path(text) if text else None
