"""Quotas of how many objects of a kind a namespace may have."""

from __future__ import annotations

from contract.backend import Api, deployment
from support.waiting import until_so


async def make_quota(api: Api, hard: dict[str, str]) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/resourcequotas"
    answer = await api.ask("POST", path, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
    assert answer.code == 201, answer
    await until_so(lambda: is_in_force(api, hard))


async def is_in_force(api: Api, hard: dict[str, str]) -> bool:
    """Whether one more than allowed is refused: kube-controller-manager has to count first."""
    counted = "count/deployments.apps" in hard and hard["count/deployments.apps"] == "0"
    if not counted:
        found = await api.look(f"/api/v1/namespaces/{api.namespace}/resourcequotas/few")
        return "used" in found["status"] or not await has_controllers(api)
    return (await api.ask("POST", api.deployments, deployment("probe"), dryRun="All")).code == 403


async def has_controllers(api: Api) -> bool:
    """Whether someone counts; the embedded server counts by itself, at every write."""
    return await api.is_there("/api/v1/namespaces/kube-system/serviceaccounts/resourcequota-controller")


async def test_a_kind_of_which_there_may_be_none_is_refused(kept: Api) -> None:
    await make_quota(kept, {"count/deployments.apps": "0"})
    answer = await kept.ask("POST", kept.deployments, deployment("web"))
    word = "count/deployments.apps"
    why = f"exceeded quota: few, requested: {word}=1, used: {word}=0, limited: {word}=0"
    assert answer.refusal == (403, "Forbidden", f'deployments.apps "web" is forbidden: {why}')
    assert answer.body["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


async def test_other_kinds_are_not_counted(kept: Api) -> None:
    await make_quota(kept, {"count/deployments.apps": "0"})
    assert (await kept.ask("POST", kept.leases, {"metadata": {"name": "lead"}, "spec": {}})).code == 201


async def test_as_many_as_allowed_are_taken_and_may_be_changed(kept: Api) -> None:
    await make_quota(kept, {"count/deployments.apps": "1"})
    await kept.make_deployment("web")
    changed = await kept.merge(f"{kept.deployments}/web", {"spec": {"replicas": 0}})
    more = await kept.ask("POST", kept.deployments, deployment("other"))
    assert (changed.code, more.code) == (200, 403)


async def test_without_the_quota_there_is_no_limit(kept: Api) -> None:
    await make_quota(kept, {"count/deployments.apps": "0"})
    await kept.ask("DELETE", f"/api/v1/namespaces/{kept.namespace}/resourcequotas/few")
    await until_so(lambda: takes_deployments(kept))


async def takes_deployments(api: Api) -> bool:
    return (await api.ask("POST", api.deployments, deployment("web"))).code == 201
