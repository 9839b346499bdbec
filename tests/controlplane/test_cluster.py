"""A cluster that tests share: who may do what, and who did."""

import asyncio
import json
from datetime import timedelta

import pytest

from controlplane import Cluster, KubectlError
from controlplane.audit import is_write


async def test_the_admin_is_known_by_certificate(bare_cluster: Cluster) -> None:
    told = json.loads(await bare_cluster.kubectl("auth", "whoami", "-o", "json"))
    assert told["status"]["userInfo"]["username"] == "admin"
    assert "system:masters" in told["status"]["userInfo"]["groups"]


async def test_the_admin_is_known_by_token(bare_cluster: Cluster) -> None:
    answer = await bare_cluster.request("GET", "/api/v1/namespaces", token=bare_cluster.admin_token)
    assert answer.status == 200


async def test_the_kubeconfig_is_private_and_its_context_is_the_cluster(bare_cluster: Cluster) -> None:
    assert bare_cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert (await bare_cluster.kubectl("config", "current-context")).strip() == bare_cluster.name


async def test_the_server_is_of_the_version_it_was_built_as(bare_cluster: Cluster) -> None:
    version = (await bare_cluster.request("GET", "/version")).json()
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")


async def test_an_unprivileged_user_is_refused(bare_cluster: Cluster) -> None:
    nobody = bare_cluster.user("nobody", ["strangers"])
    with pytest.raises(KubectlError, match=r'Forbidden.*"nobody" cannot list'):
        await bare_cluster.kubectl("get", "secrets", user=nobody)


async def test_a_role_lets_a_user_in_and_no_further(bare_cluster: Cluster) -> None:
    namespace = await bare_cluster.fresh_namespace()
    reader, path = bare_cluster.user("jane"), f"/api/v1/namespaces/{namespace}/configmaps"
    await bare_cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps", "-n", namespace)
    await bare_cluster.kubectl("create", "rolebinding", "reader", "--role=reader", "--user=jane", "-n", namespace)
    async with asyncio.timeout(30):  # the authorizer hears of new roles by a watch, as everybody else
        while (await bare_cluster.request("GET", path, user=reader)).status != 200:
            await asyncio.sleep(0.05)
    assert (await bare_cluster.request("POST", path, {"metadata": {"name": "a"}}, user=reader)).status == 403


async def test_an_expired_certificate_is_not_accepted(bare_cluster: Cluster) -> None:
    late = bare_cluster.user("admin", ["system:masters"], lifetime=timedelta(seconds=-1))
    assert (await bare_cluster.request("GET", "/api/v1/namespaces", user=late)).status == 401


async def test_the_audit_log_says_who_wrote_what(bare_cluster: Cluster) -> None:
    namespace = await bare_cluster.fresh_namespace()
    writer = bare_cluster.user("writer", ["system:masters"])
    await bare_cluster.kubectl("create", "configmap", "a", "--from-literal=secret=hidden", "-n", namespace, user=writer)
    of_namespace = [e for e in bare_cluster.audit_events() if e.get("objectRef", {}).get("namespace") == namespace]
    [write] = [e for e in of_namespace if is_write(e) and e["objectRef"]["resource"] == "configmaps"]
    assert (write["verb"], write["user"]["username"], write["objectRef"]["name"]) == ("create", "writer", "a")
    assert write["responseStatus"]["code"] == 201
    assert "hidden" not in json.dumps(write)


async def test_the_audit_log_records_reads_and_refusals_too(bare_cluster: Cluster) -> None:
    namespace = await bare_cluster.fresh_namespace()
    path = f"/api/v1/namespaces/{namespace}/secrets"
    await bare_cluster.request("GET", path, user=bare_cluster.user("spy"))
    [read] = [event for event in bare_cluster.audit_events() if event["requestURI"] == path]
    assert (read["verb"], read["user"]["username"], read["responseStatus"]["code"]) == ("list", "spy", 403)


async def test_kubectl_reads_what_it_is_given(bare_cluster: Cluster) -> None:
    namespace = await bare_cluster.fresh_namespace()
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"colour": "blue"}}
    await bare_cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest))
    told = await bare_cluster.kubectl("get", "configmap", "a", "-n", namespace, "-o", "jsonpath={.data.colour}")
    assert told == "blue"


async def test_nothing_acts_in_a_bare_cluster(bare_cluster: Cluster) -> None:
    assert set(bare_cluster.pids) == {"kube-apiserver"}


async def test_a_full_cluster_has_controllers_and_nodes(full_cluster: Cluster) -> None:
    assert set(full_cluster.pids) == {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
    nodes = (await full_cluster.kubectl("get", "nodes", "-o", "name")).split()
    assert nodes == ["node/node-1", "node/node-2"]


async def test_controllers_act_under_names_of_their_own(full_cluster: Cluster) -> None:
    namespace = await full_cluster.fresh_namespace()
    await full_cluster.kubectl("create", "deployment", "web", "--image=web:1", "-n", namespace)
    await full_cluster.kubectl("rollout", "status", "deployment/web", "--timeout=300s", "-n", namespace)
    writers = {
        event["user"]["username"]
        for event in full_cluster.audit_events()
        if is_write(event) and event.get("objectRef", {}).get("namespace") == namespace
    }
    assert "system:serviceaccount:kube-system:deployment-controller" in writers
    assert "system:kube-scheduler" in writers


async def test_a_service_account_token_secret_carries_the_authority(full_cluster: Cluster) -> None:
    namespace = await full_cluster.fresh_namespace()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    }
    exists = ["--for=create", "serviceaccount/default", "--timeout=300s", "-n", namespace]
    await full_cluster.kubectl("wait", *exists)
    await full_cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(secret))
    await full_cluster.kubectl(
        "wait", "secret/token", "--for=jsonpath={.data.token}", "--timeout=120s", "-n", namespace
    )
    told = await full_cluster.request("GET", f"/api/v1/namespaces/{namespace}/secrets/token")
    assert set(told.json()["data"]) == {"ca.crt", "namespace", "token"}
