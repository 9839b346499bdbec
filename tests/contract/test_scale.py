"""Scale: how many replicas are wanted, read and written apart from all else."""

import pytest

from contract.backend import JSON_PATCH, MODIFIED_MEANWHILE, Api, rv


async def made(api: Api) -> str:
    """Where the scale of a new Deployment of two replicas is."""
    await api.make_deployment("web")
    return f"{api.deployments}/web/scale"


async def test_a_scale_says_what_is_wanted_what_is_there_and_which_pods(api: Api) -> None:
    scale = await api.look(await made(api))
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}


async def test_it_is_the_object_it_is_of(api: Api) -> None:
    scale = (await api.look(await made(api)))["metadata"]
    whole = (await api.look(f"{api.deployments}/web"))["metadata"]
    for part in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"):
        assert scale[part] == whole[part]
    assert "generation" not in scale


async def test_a_put_of_the_scale_changes_the_replicas_and_counts(api: Api) -> None:
    path = await made(api)
    scale = await api.look(path)
    answer = await api.ask("PUT", path, {**scale, "spec": {"replicas": 5}})
    assert (answer.code, answer.body["spec"]) == (200, {"replicas": 5})
    whole = await api.look(f"{api.deployments}/web")
    assert (whole["spec"]["replicas"], whole["metadata"]["generation"]) == (5, 2)
    assert rv(answer.body) == rv(whole) > rv(scale)


@pytest.mark.parametrize("kind", ["merge", "json"])
async def test_a_patch_of_the_scale_does_too(api: Api, kind: str) -> None:
    path = await made(api)
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    if kind == "merge":
        answer = await api.merge(path, {"spec": {"replicas": 4}})
    else:
        answer = await api.ask("PATCH", path, operations, JSON_PATCH)
    assert (answer.code, answer.body["kind"], answer.body["spec"]) == (200, "Scale", {"replicas": 4})
    assert (await api.look(f"{api.deployments}/web"))["spec"]["replicas"] == 4


async def test_nothing_at_all_may_be_wanted(api: Api) -> None:
    answer = await api.merge(await made(api), {"spec": {"replicas": 0}})
    assert (answer.code, answer.body["spec"]) == (200, {})
    assert (await api.look(f"{api.deployments}/web"))["spec"]["replicas"] == 0


async def test_less_than_nothing_is_refused(api: Api) -> None:
    path = await made(api)
    answer = await api.merge(path, {"spec": {"replicas": -1}})
    why = 'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    assert answer.refusal == (422, "Invalid", why)
    assert (await api.look(path))["spec"] == {"replicas": 2}


async def test_a_scale_of_an_older_version_is_a_conflict(api: Api) -> None:
    path = await made(api)
    scale = await api.look(path)
    await api.merge(path, {"spec": {"replicas": 3}})
    answer = await api.ask("PUT", path, {**scale, "spec": {"replicas": 5}})
    assert answer.refusal[:2] == (409, "Conflict")
    assert answer.refusal[2].endswith(MODIFIED_MEANWHILE)
    assert (await api.look(path))["spec"] == {"replicas": 3}


async def test_a_dry_run_scales_nothing(api: Api) -> None:
    path = await made(api)
    answer = await api.merge(path, {"spec": {"replicas": 3}}, dryRun="All")
    assert answer.body["spec"] == {"replicas": 3}
    assert (await api.look(path))["spec"] == {"replicas": 2}


async def test_a_kind_without_replicas_has_no_scale(api: Api) -> None:
    await api.make("a")
    assert (await api.ask("GET", f"{api.maps}/a/scale")).code == 404


async def test_the_scale_of_what_is_not_there_is_not_found(api: Api) -> None:
    assert (await api.ask("GET", f"{api.deployments}/nobody/scale")).code == 404
