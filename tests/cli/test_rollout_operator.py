"""`kedge rollout-operator` and `kedge operator`: what their command lines mean, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from kedge.cli import main
from kedge.cli.go_flags import parse
from kedge.cli.operator import operator
from kedge.cli.operator_process import OperatorProcess
from kedge.cli.rollout_operator import FLAGS, problem, process
from kedge.kube.cluster_validation import ClusterValidation
from kedge.kube.health import Address
from kedge.operator_role import OperatorOptions, WebhookOptions

DEFAULTS = {
    "log.format": "logfmt",
    "log.level": "debug",
    "server.port": 8001,
    "kubernetes.api-url": "",
    "kubernetes.config-file": "",
    "kubernetes.cluster-domain": "cluster.local.",
    "kubernetes.namespace": "",
    "kubernetes.client-timeout": timedelta(minutes=5),
    "kubernetes.client-qps": 5.0,
    "kubernetes.client-burst": 10,
    "pods.client-timeout": timedelta(seconds=5),
    "reconcile.interval": timedelta(seconds=5),
    "server.cluster-validation.http.enabled": False,
    "server.cluster-validation.http.soft-validation": False,
    "server.cluster-validation.http.excluded-paths": "admission/no-downscale,admission/prepare-downscale",
    "server.cluster-validation.http.excluded-user-agents": "",
    "server-tls.enabled": False,
    "server-tls.port": 8443,
    "server-tls.cert-file": "",
    "server-tls.key-file": "",
    "server-tls.request-timeout": timedelta(seconds=10),
    "server-tls.self-signed-cert.enabled": True,
    "server-tls.self-signed-cert.secret-name": "rollout-operator-self-signed-certificate",
    "server-tls.self-signed-cert.dns-name": "",
    "server-tls.self-signed-cert.org": "Grafana Labs",
    "server-tls.self-signed-cert.expiration": timedelta(days=365),
    "webhooks.update-ca-bundle": True,
    "use-zone-tracker": False,
    "zone-tracker.config-map-name": "rollout-operator-zone-tracker",
    "zpdb.pod-ready-annotation-patch-timeout": timedelta(seconds=5),
    "notifications": "",
}
BURST = (
    "-kubernetes.client-burst must be at least 1 when -kubernetes.client-qps is greater than 0, "
    "since each request consumes one token"
)
NO_CERTIFICATE = (
    "either self-signed certificate should be enabled or path to the certificate and key should be provided"
)
NO_CA = "self-signed certificate should be enabled to update the CA bundle in the webhook configurations"
TLS = ("-kubernetes.namespace=x", "-server-tls.enabled", "-server-tls.self-signed-cert.enabled=false")
FILES = ("-server-tls.cert-file=c", "-server-tls.key-file=k")


def kedge(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def told(*arguments: str) -> OperatorProcess:
    return process(parse(FLAGS, arguments))


def test_every_flag_of_the_peer_has_its_default() -> None:
    assert parse(FLAGS, []).values == DEFAULTS


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-kubernetes.cluster-domain="], "-kubernetes.cluster-domain cannot be an empty string"),
        ([], "-kubernetes.namespace has not been specified"),
        (["-server-tls.enabled", "false", "-kubernetes.namespace=x"], "-kubernetes.namespace has not been specified"),
        (["-kubernetes.namespace=x", "-kubernetes.api-url=https://a"],
         "either configure both -kubernetes.api-url and -kubernetes.config-file or neither"),
        (["-kubernetes.namespace=x", "-kubernetes.config-file=f"],
         "either configure both -kubernetes.api-url and -kubernetes.config-file or neither"),
        (["-kubernetes.namespace=x", "-use-zone-tracker", "-zone-tracker.config-map-name="],
         "-use-zone-tracker is true, but -zone-tracker.config-map-name has not been specified"),
        (["-kubernetes.namespace=x", "-kubernetes.client-burst=0"], BURST),
        (["-kubernetes.namespace=x", "-kubernetes.client-burst=0", "-server-tls.request-timeout=0"], BURST),
        (["-kubernetes.namespace=x", "-server-tls.request-timeout=0"], "-server-tls.request-timeout must be positive"),
        (["-kubernetes.namespace=x", "-zpdb.pod-ready-annotation-patch-timeout=-1s"],
         "-zpdb.pod-ready-annotation-patch-timeout must be positive"),
        ([*TLS], NO_CERTIFICATE),
        ([*TLS, "-server-tls.cert-file=c"], NO_CERTIFICATE),
        ([*TLS, *FILES], NO_CA),
        (["-kubernetes.namespace=x", "-log.format=xml"], "unknown log format: xml"),
        (["-kubernetes.namespace=x", "-log.level=loud"], "unknown log level: loud"),
        (["-kubernetes.namespace=x", "-server.port=70000"], "-server.port must be a port, from 0 to 65535"),
        (["-kubernetes.namespace=x", "-pods.client-timeout=0"], "-pods.client-timeout must be positive"),
        (["-kubernetes.namespace=x", "-server.cluster-validation.http.excluded-user-agents=("],
         ("-server.cluster-validation.http.excluded-user-agents: ( is no regular expression: "
          "missing ), unterminated subpattern at position 0")),
    ],
)  # fmt: skip
def test_what_the_peer_refuses_is_refused_with_its_words_and_1(arguments: list[str], says: str) -> None:
    result = kedge("rollout-operator", *arguments)
    assert (result.exit_code, result.stderr, result.stdout) == (1, f"{says}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("-kubernetes.namespace=x", "-kubernetes.client-qps=0", "-kubernetes.client-burst=0"),
        ("-kubernetes.namespace=x", "-server-tls.self-signed-cert.enabled=false"),
        (*TLS, *FILES, "-webhooks.update-ca-bundle=false"),
        ("-kubernetes.namespace=x", "-kubernetes.api-url=https://a", "-kubernetes.config-file=f"),
    ],
)
def test_what_the_peer_takes_is_taken(arguments: tuple[str, ...]) -> None:
    assert problem(parse(FLAGS, arguments)) == ""


def test_an_unknown_flag_is_refused_with_the_usage_and_2() -> None:
    result = kedge("rollout-operator", "-kubernetes.namespace=x", "-unknown")
    assert result.exit_code == 2
    assert result.stderr.startswith("flag provided but not defined: -unknown\nUsage of rollout-operator:\n  -kube")


@pytest.mark.parametrize("flag", ["-h", "-help", "--help"])
def test_help_is_the_usage_and_0(flag: str) -> None:
    result = kedge("rollout-operator", flag)
    assert result.exit_code == 0
    assert all(f"  -{name}" in result.stderr for name in DEFAULTS)


def test_the_stock_command_line_of_the_peer() -> None:
    assert told(
        "-kubernetes.namespace=prod",
        "-use-zone-tracker=true",
        "-zone-tracker.config-map-name=rollout-operator-zone-tracker",
        "-zpdb.pod-ready-annotation-patch-timeout=5s",
        "-server-tls.enabled=true",
    ) == OperatorProcess(
        options=OperatorOptions(
            namespace="prod",
            namespaces=("prod",),
            use_zone_tracker=True,
            webhooks=WebhookOptions(),
        ),
        component="rollout-operator",
        http=Address("", 8001),
        qps=100.0,
        burst=200,
        log_level="debug",
        log_format="logfmt",
    )


def test_every_flag_has_its_place() -> None:
    found = told(
        "-log.format=json", "-log.level=warn", "-server.port=1", "-kubernetes.api-url=https://a",
        "-kubernetes.config-file=/f", "-kubernetes.cluster-domain=d.", "-kubernetes.namespace=n",
        "-kubernetes.client-timeout=7m", "-kubernetes.client-qps=2.5", "-kubernetes.client-burst=3",
        "-pods.client-timeout=4s", "-reconcile.interval=1m", "-server.cluster-validation.http.enabled",
        "-server.cluster-validation.http.soft-validation", "-server.cluster-validation.http.excluded-paths=a,b",
        "-server.cluster-validation.http.excluded-user-agents=x,y", "-server-tls.enabled", "-server-tls.port=2",
        "-server-tls.cert-file=/c", "-server-tls.key-file=/k", "-server-tls.request-timeout=6s",
        "-server-tls.self-signed-cert.enabled=false", "-server-tls.self-signed-cert.secret-name=s",
        "-server-tls.self-signed-cert.dns-name=a.svc,b.svc", "-server-tls.self-signed-cert.org=o",
        "-server-tls.self-signed-cert.expiration=1w", "-webhooks.update-ca-bundle=false", "-use-zone-tracker",
        "-zone-tracker.config-map-name=z", "-zpdb.pod-ready-annotation-patch-timeout=8s", "-notifications=/n",
        "left", "-over",
    )  # fmt: skip
    assert found == OperatorProcess(
        options=OperatorOptions(
            namespace="n",
            namespaces=("n",),
            cluster_domain="d.",
            reconcile_interval=60.0,
            pods_timeout=4.0,
            use_zone_tracker=True,
            zone_tracker_name="z",
            ready_time_timeout=8.0,
            webhooks=WebhookOptions(
                port=2,
                request_timeout=6.0,
                cert_file=Path("/c"),
                key_file=Path("/k"),
                self_signed=False,
                secret_name="s",
                dns_names=("a.svc", "b.svc"),
                organization="o",
                expiration=timedelta(days=7),
                update_ca_bundle=False,
            ),
            cluster_validation=ClusterValidation(
                "n", soft=True, excluded_paths=("a", "b"), excluded_user_agents=("x", "y")
            ),
        ),
        component="rollout-operator",
        http=Address("", 1),
        kubeconfig=Path("/f"),
        api_url="https://a",
        qps=2.5,
        burst=3,
        client_timeout=420.0,
        notifications=Path("/n"),
        log_level="warning",
        log_format="json",
        ignored=("left", "-over"),
    )


def test_paths_that_are_excluded_by_default_stay_so_if_none_is_given() -> None:
    validation = "-server.cluster-validation.http"
    found = told("-kubernetes.namespace=n", f"{validation}.enabled", f"{validation}.excluded-paths=").options
    assert found.cluster_validation is not None
    assert found.cluster_validation.excluded_paths == ("admission/no-downscale", "admission/prepare-downscale")


# kedge operator


def operated(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> OperatorProcess:
    found: list[OperatorProcess] = []
    monkeypatch.setattr("kedge.cli.operator_process.run_operator", found.append)
    result = CliRunner().invoke(operator, arguments)
    assert result.exit_code == 0, result.output
    return found[0]


def test_an_operator_manages_the_namespaces_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = operated(monkeypatch, "-n", "a", "--namespace", "b", "-n", "a", "--health", ":8001", "--qps", "20")
    assert found == OperatorProcess(
        options=OperatorOptions(namespace="a", namespaces=("a", "b")), http=Address("", 8001), qps=20.0, burst=40
    )


def test_an_operator_may_manage_all_namespaces_with_a_home_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = operated(monkeypatch, "--all-namespaces", "-n", "home", "--lease", "--lease-duration", "20")
    assert (found.options.namespace, found.options.namespaces) == ("home", ())
    assert found.lease_seconds == 20


def test_an_operator_serves_webhooks_when_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificate, key = tmp_path / "c", tmp_path / "k"
    certificate.touch()
    key.touch()
    found = operated(
        monkeypatch, "-n", "a", "--webhooks", "--webhooks-port", "9443", "--cert-validity", "1w", "--cert-name", "x",
        "--zone-tracker", "zones",
    )  # fmt: skip
    assert found.options.webhooks == WebhookOptions(
        port=9443, dns_names=("x",), organization="Kedge", expiration=timedelta(days=7)
    )
    assert (found.options.use_zone_tracker, found.options.zone_tracker_name) == (True, "zones")
    given = operated(monkeypatch, "-n", "a", "--webhooks", "--cert-file", str(certificate), "--key-file", str(key))
    assert given.options.webhooks is not None
    assert (given.options.webhooks.self_signed, given.options.webhooks.update_ca_bundle) == (False, False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "say which namespaces to manage"),
        (("-A",), "with the operator's own objects in the first"),
        (("-A", "-n", "a", "-n", "b"), "name only the one of the operator's own objects"),
        (("-n", "a", "--pods-timeout", "soon"), "is not a duration"),
        (("-n", "a", "--pods-timeout", "0s"), "no time at all"),
        (("-n", "a", "--cluster-domain", ""), "--cluster-domain is empty"),
        (("-n", "a", "--webhooks", "--cert-validity", "1"), "is not a duration"),
        (("-n", "a", "--webhooks", "--cert-file", __file__), "belong together"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(arguments: tuple[str, ...], says: str) -> None:
    result = kedge("operator", *arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_a_server_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    result = kedge("rollout-operator", "-kubernetes.namespace=x", "-kubernetes.api-url=here",
                   f"-kubernetes.config-file={file}")  # fmt: skip
    assert result.exit_code == 1
    assert "write it as https://host:port" in result.output


CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
"""


def test_the_command_is_listed_with_the_others() -> None:
    commands: Any = main
    assert isinstance(commands, click.Group)
    assert {"operator", "rollout-operator"} <= commands.commands.keys()
