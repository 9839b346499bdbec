"""Built-in kinds: wire names, absence, and what is left out on purpose."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from api.builtin import BUILT_IN
from kedge.api import rbac
from kedge.api.apps import Deployment, DeploymentSpec, StatefulSet
from kedge.api.coordination import Lease
from kedge.api.core import Event, ObjectReference, Secret, Service
from kedge.api.pods import Pod


def test_the_kinds_kedge_reads_are_there() -> None:
    expected = """ClusterRole ClusterRoleBinding ConfigMap ControllerRevision CustomResourceDefinition DaemonSet
        Deployment EndpointSlice Endpoints Event Job Lease Namespace Node PersistentVolumeClaim Pod PodDisruptionBudget
        ReplicaSet Role RoleBinding Secret Service ServiceAccount StatefulSet"""
    assert sorted(kind.__name__ for kind in BUILT_IN) == expected.split()


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_kind_is_called_what_its_class_is(kind: Any) -> None:
    assert kind.resource.kind == kind.__name__


def test_wire_names_are_kubernetes_own() -> None:
    service = msgspec.json.decode(
        '{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"]},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}',
        type=Service,
    )
    assert service.spec.cluster_ip == "10.0.0.1"
    assert service.spec.cluster_ips == ("10.0.0.1",)
    assert service.status.load_balancer.ingress[0].ip == "1.2.3.4"
    assert msgspec.json.decode('{"status":{"podIP":"10.1.0.1"}}', type=Pod).status.pod_ip == "10.1.0.1"
    rule = msgspec.json.decode('{"nonResourceURLs":["/healthz"]}', type=rbac.PolicyRule)
    assert rule.non_resource_urls == ("/healthz",)


@pytest.mark.parametrize(("text", "replicas"), [('{"spec":{"replicas":0}}', 0), ('{"spec":{}}', None)])
def test_no_replicas_and_zero_replicas_are_different_things(text: str, replicas: int | None) -> None:
    deployment = msgspec.json.decode(text, type=Deployment)
    assert deployment.spec.replicas == replicas
    again = msgspec.json.decode(msgspec.json.encode(deployment), type=Deployment)
    assert again.spec.replicas == replicas


def test_zero_replicas_are_written() -> None:
    assert msgspec.json.encode(DeploymentSpec(replicas=0)) == b'{"replicas":0}'


def test_counters_a_server_leaves_out_are_zero() -> None:
    status = msgspec.json.decode("{}", type=StatefulSet).status
    assert (status.available_replicas, status.updated_replicas, status.observed_generation) == (0, 0, 0)


def test_unknown_fields_are_ignored() -> None:
    text = '{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1,"novelty":{"a":[1]}},"extra":true}'
    assert msgspec.json.decode(text, type=Deployment) == Deployment(spec=DeploymentSpec(replicas=1))


def test_the_content_of_a_secret_is_never_read() -> None:
    secret = msgspec.json.decode('{"type":"Opaque","data":{"password":"aHVudGVyMg=="},"stringData":{}}', type=Secret)
    assert b"aHVudGVyMg" not in msgspec.json.encode(secret)
    assert "aHVudGVyMg" not in repr(secret)


def test_a_strategy_holds_numbers_and_percentages_as_written() -> None:
    text = '{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"25%","maxSurge":1}}}}'
    rolling = msgspec.json.decode(text, type=Deployment).spec.strategy.rolling_update
    assert rolling is not None
    assert (rolling.max_unavailable, rolling.max_surge) == ("25%", 1)


def test_what_the_server_does_not_fill_in_is_written() -> None:
    event = Event(involved_object=ObjectReference(kind="Pod", name="a"), type="Normal", reason="Moved")
    assert msgspec.json.decode(msgspec.json.encode(event))["type"] == "Normal"


def test_a_lease_keeps_its_times_as_text() -> None:
    text = '{"spec":{"renewTime":"2025-03-12T06:15:21.000000Z"}}'
    assert msgspec.json.encode(msgspec.json.decode(text, type=Lease).spec) in text.encode()


def test_importing_core_brings_in_no_more_than_it_needs() -> None:
    code = "import sys, kedge.api.core; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"yaml", "asyncio", "kedge.api.schema", "kedge.api.crds", "kedge.kube"})
