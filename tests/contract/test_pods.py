"""What a pod is given before it runs anywhere, and what of it may be changed."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import Answer, Api
from kedge.kube.codec import Untyped

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
async def pods(api: Api) -> str:
    """Where the pods of the namespace are; there is an account for them."""
    accounts = f"/api/v1/namespaces/{api.namespace}/serviceaccounts"
    assert (await api.ask("POST", accounts, {"metadata": {"name": "default"}})).code in (201, 409)
    return f"/api/v1/namespaces/{api.namespace}/pods"


def pod(name: str = "a", containers: list[Untyped] | None = None, **spec: Any) -> Untyped:
    return {"metadata": {"name": name}, "spec": {"containers": containers or [{"name": "a", "image": "a:1"}], **spec}}


async def made(api: Api, pods: str, body: Untyped) -> Untyped:
    answer = await api.ask("POST", pods, body)
    assert answer.code == 201, answer.body
    found: Untyped = answer.body
    return found


def refused(answer: Answer, why: str) -> bool:
    return answer.refusal == (403, "Forbidden", f'pods "a" is forbidden: {why}')


async def test_a_pod_begins_pending(api: Api, pods: str) -> None:
    assert (await made(api, pods, pod()))["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
async def test_its_quality_of_service_follows_from_what_it_asks_for(
    api: Api, pods: str, resources: Untyped, quality: str
) -> None:
    found = await made(api, pods, pod(containers=[{"name": "a", "image": "a", "resources": resources}]))
    assert found["status"]["qosClass"] == quality


async def test_who_sets_a_limit_asks_for_as_much(api: Api, pods: str) -> None:
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    found = await made(api, pods, pod(containers=[{"name": "a", "image": "a", "resources": limits}]))
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


async def test_it_gets_the_default_account_and_a_token_of_it(api: Api, pods: str) -> None:
    spec = (await made(api, pods, pod()))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    assert [*(key for source in volume["projected"]["sources"] for key in source)] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}
    ]


async def test_it_may_do_without_a_token(api: Api, pods: str) -> None:
    spec = (await made(api, pods, pod(automountServiceAccountToken=False)))["spec"]
    assert "volumes" not in spec
    assert "volumeMounts" not in spec["containers"][0]


async def test_its_account_may_say_that_it_does_without_a_token(api: Api, pods: str) -> None:
    accounts = pods.replace("pods", "serviceaccounts")
    body = {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False, "imagePullSecrets": [{"name": "p"}]}
    assert (await api.ask("POST", accounts, body)).code == 201
    spec = (await made(api, pods, pod(serviceAccountName="quiet")))["spec"]
    assert ("volumes" in spec, spec["imagePullSecrets"]) == (False, [{"name": "p"}])


async def test_its_account_must_be_there(api: Api, pods: str) -> None:
    answer = await api.ask("POST", pods, pod(serviceAccountName="nobody"))
    where = f"{api.namespace}/nobody"
    assert refused(answer, f'error looking up service account {where}: serviceaccount "nobody" not found')


async def test_it_waits_some_minutes_for_a_node_in_trouble(api: Api, pods: str) -> None:
    spec = (await made(api, pods, pod(tolerations=[{"key": "x", "operator": "Exists"}])))["spec"]
    waits = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert spec["tolerations"] == [
        {"key": "x", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", **waits},
        {"key": "node.kubernetes.io/unreachable", **waits},
    ]


async def test_its_priority_comes_from_its_class(api: Api, pods: str) -> None:
    plain = (await made(api, pods, pod()))["spec"]
    assert (plain["priority"], plain["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    critical = (await made(api, pods, pod("b", priorityClassName="system-node-critical")))["spec"]
    assert critical["priority"] == 2000001000


async def test_its_class_must_be_there_and_its_priority_is_not_its_to_say(api: Api, pods: str) -> None:
    answer = await api.ask("POST", pods, pod(priorityClassName="nothing"))
    assert refused(answer, "no PriorityClass with name nothing was found")
    answer = await api.ask("POST", pods, pod(priority=7))
    assert answer.refusal[:2] == (403, "Forbidden")
    assert "the integer value of priority (7) must not be provided in pod spec" in answer.refusal[2]


async def test_its_runtime_brings_overhead_and_nodes(api: Api, pods: str) -> None:
    name = f"{api.namespace}-runtime"
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}
    body = {
        "metadata": {"name": name},
        "handler": "x",
        "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": scheduling,
    }
    assert (await api.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", body)).code == 201
    spec = (await made(api, pods, pod(runtimeClassName=name, nodeSelector={"c": "d"})))["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "1"}, {"a": "b", "c": "d"})
    assert spec["tolerations"][-1] == {"key": "k", "operator": "Exists"}
    answer = await api.ask("POST", pods, pod("b", runtimeClassName=name, nodeSelector={"a": "c"}))
    assert answer.refusal[:2] == (403, "Forbidden")
    await api.ask("DELETE", f"/apis/node.k8s.io/v1/runtimeclasses/{name}")


async def test_a_gate_holds_it_back(api: Api, pods: str) -> None:
    (condition,) = (await made(api, pods, pod(schedulingGates=[{"name": "a.b/c"}])))["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


async def test_its_images_may_be_changed(api: Api, pods: str) -> None:
    found = await made(api, pods, pod(automountServiceAccountToken=False))
    containers = [{**found["spec"]["containers"][0], "image": "a:2"}]
    answer = await api.merge(f"{pods}/a", {"spec": {"containers": containers}})
    assert (answer.code, answer.body["spec"]["containers"][0]["image"]) == (200, "a:2")
    assert answer.metadata["generation"] == 2


@pytest.mark.parametrize("spec", [{"nodeName": "n"}, {"restartPolicy": "Never"}, {"terminationGracePeriodSeconds": 3}])
async def test_most_of_it_may_not_be_changed(api: Api, pods: str, spec: Untyped) -> None:
    await made(api, pods, pod())
    answer = await api.merge(f"{pods}/a", {"spec": spec})
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.fields == [("FieldValueForbidden", "spec")]
    assert "pod updates may not change fields other than `spec.containers[*].image`" in answer.refusal[2]


async def test_containers_may_not_come_or_go(api: Api, pods: str) -> None:
    found = await made(api, pods, pod())
    containers = [*found["spec"]["containers"], {"name": "b", "image": "b"}]
    answer = await api.merge(f"{pods}/a", {"spec": {"containers": containers}})
    assert answer.fields == [("FieldValueForbidden", "spec.containers")]


async def test_a_toleration_may_be_added_and_none_taken_away(api: Api, pods: str) -> None:
    found = await made(api, pods, pod(tolerations=[{"key": "x", "operator": "Exists"}]))
    more = [*found["spec"]["tolerations"], {"key": "y", "operator": "Exists"}]
    assert (await api.merge(f"{pods}/a", {"spec": {"tolerations": more}})).code == 200
    answer = await api.merge(f"{pods}/a", {"spec": {"tolerations": more[1:]}})
    assert answer.fields == [("FieldValueForbidden", "spec.tolerations")]
