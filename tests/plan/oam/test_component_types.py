"""What becomes of a component's type and properties."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.oam.applications import ApplicationComponent
from kedge.plan.oam.component_types import ComponentObjects, objects_of
from kedge.plan.oam.refused import OamRefused
from plan.oam.objects import DEPLOYMENT, STATEFUL_SET, web

SERVICE = {"apiVersion": "v1", "kind": "Service"}
OWN = {"app.oam.dev/component": "web"}


def rendered(given: dict[str, Any]) -> ComponentObjects:
    return objects_of(msgspec.convert(given, ApplicationComponent))


def container(given: dict[str, Any]) -> Any:
    return rendered(given).workload["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("kind", ["webservice", "worker"])
def test_a_webservice_and_a_worker_are_deployments_of_one_container(kind: str) -> None:
    found = rendered(web(kind, image="web:1"))
    assert found == ComponentObjects(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": OWN},
                "template": {
                    "metadata": {"labels": OWN},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        }
    )


@pytest.mark.parametrize(
    ("properties", "part"),
    [
        ({"cmd": ["run", "-x"]}, {"command": ["run", "-x"]}),
        ({"args": ["-x"]}, {"args": ["-x"]}),
        ({"env": [{"name": "A", "value": "b"}]}, {"env": [{"name": "A", "value": "b"}]}),
        ({"cpu": "0.5"}, {"resources": {"limits": {"cpu": "0.5"}, "requests": {"cpu": "0.5"}}}),
        (
            {"cpu": 1, "memory": "1Gi"},
            {"resources": {n: {"cpu": "1", "memory": "1Gi"} for n in ("limits", "requests")}},
        ),
        ({"imagePullPolicy": "Always"}, {"imagePullPolicy": "Always"}),
        ({"livenessProbe": {"tcpSocket": {"port": 1}}}, {"livenessProbe": {"tcpSocket": {"port": 1}}}),
        ({"readinessProbe": {"exec": {"command": []}}}, {"readinessProbe": {"exec": {"command": []}}}),
    ],
)
def test_properties_of_the_container(properties: dict[str, Any], part: dict[str, Any]) -> None:
    for kind in ("webservice", "worker"):
        assert container(web(kind, image="web:1", **properties)) == {"name": "web", "image": "web:1", **part}


@pytest.mark.parametrize(
    ("properties", "ports"),
    [
        ({"port": 80}, [{"containerPort": 80}]),
        ({"ports": [{"port": 80}]}, [{"name": "port-80", "containerPort": 80, "protocol": "TCP"}]),
        (
            {"port": 1, "ports": [{"port": 53, "name": "dns", "protocol": "UDP"}]},
            [{"name": "dns", "containerPort": 53, "protocol": "UDP"}],
        ),
    ],
)
def test_the_ports_of_a_webservice(properties: dict[str, Any], ports: list[Any]) -> None:
    assert container(web(image="web:1", **properties))["ports"] == ports
    assert rendered(web(image="web:1", **properties)).others == ()


def test_ports_that_are_exposed_have_a_service() -> None:
    ports = [{"port": 80, "expose": True}, {"port": 81}]
    (found,) = rendered(web(image="web:1", ports=ports, exposeType="NodePort")).others
    assert found == {
        **SERVICE,
        "metadata": {"name": "web"},
        "spec": {
            "type": "NodePort",
            "selector": OWN,
            "ports": [{"name": "port-80", "port": 80, "protocol": "TCP", "targetPort": 80}],
        },
    }


def test_labels_and_annotations_are_those_of_the_pods_and_replicas_are_only_set_if_given() -> None:
    more: dict[str, Any] = {
        "labels": {"a": "b", "app.oam.dev/component": "x"},
        "annotations": {"c": "d"},
        "replicas": 0,
    }
    spec = rendered(web(image="web:1", imagePullSecrets=["s"], **more)).workload["spec"]
    assert spec["template"]["metadata"] == {"labels": {"a": "b", **OWN}, "annotations": {"c": "d"}}
    assert spec["template"]["spec"]["imagePullSecrets"] == [{"name": "s"}]
    assert spec["replicas"] == 0
    assert "replicas" not in rendered(web()).workload["spec"]


def test_objects_are_taken_as_they_are() -> None:
    assert rendered(web("raw", **STATEFUL_SET)) == ComponentObjects(STATEFUL_SET)
    found = rendered(web("k8s-objects", objects=[DEPLOYMENT, SERVICE]))
    assert found == ComponentObjects(DEPLOYMENT, (SERVICE,))


def test_the_properties_of_v1alpha2_are_called_settings() -> None:
    given = {"name": "web", "type": "worker", "settings": {"image": "web:1"}}
    assert rendered(given) == rendered(web("worker"))


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (web("helm"), "component web has the type 'helm', which is not known here: use one of k8s-objects, raw,"),
        (web(cmd=["x"]), "component web: its properties cannot be read: Object missing required field `image`"),
        (web(image=3), "component web: its properties cannot be read: Expected `str`, got `int` - at `$.image`"),
        (web(image="x", port=0), r"component web: its properties cannot be read: Expected `int` >= 1 - at `\$.port`"),
        (web(image="x", port=65536), "Expected `int` <= 65535"),
        (web(image="x", replicas=-1), "Expected `int` >= 0"),
        (web(image="x", volumeMounts={}), "component web: a webservice has no property 'volumeMounts' here, only ann"),
        (web(image="x", zoo=1, apes=2), "component web: a webservice has no property 'apes' here, only ann"),
        (web("worker", image="x", port=80), "component web: a worker has no property 'port' here, only annotations,"),
        (web(image="x", exposeType="Magic"), "component web: exposeType is 'Magic': it is one of ClusterIP, NodePort"),
        (web("raw", kind="Deployment"), "component web: its properties must be a whole object, with apiVersion and"),
        (web("raw", apiVersion="v1"), "must be a whole object"),
        (web("k8s-objects", image="x"), "component web: properties.objects is a list of objects, and the first is"),
        (web("k8s-objects", objects=[]), "is a list of objects"),
        (web("k8s-objects", objects=[DEPLOYMENT, 3]), r"component web: properties.objects\[1\] must be a whole object"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(component: dict[str, Any], message: str) -> None:
    with pytest.raises(OamRefused, match=message.replace("$.image", r"\$\.image")):
        rendered(component)


@pytest.mark.parametrize("exposed", ["ClusterIP", "NodePort", "LoadBalancer"])
def test_ports_are_exposed_in_three_ways(exposed: str) -> None:
    (found,) = rendered(web(image="web:1", ports=[{"port": 80, "expose": True}], exposeType=exposed)).others
    assert found["spec"].get("type", "ClusterIP") == exposed
