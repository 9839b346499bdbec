"""Update: a whole object replaces another, if it is the one that was looked at."""

from typing import Any

import pytest

from contract.backend import (
    CONFIG_MAPS,
    HELD,
    MODIFIED_MEANWHILE,
    Api,
    config_map,
    deployment,
    rv,
    with_metadata,
)
from kedge.kube.errors import Conflict

ANOTHER_UID = "00000000-0000-0000-0000-000000000000"


async def test_a_put_replaces_the_object_and_its_version_rises(api: Api) -> None:
    made = await api.make("a", {"k": "v", "other": "x"}, labels={"app": "web"})
    answer = await api.ask("PUT", f"{api.maps}/a", {**with_metadata(made, labels=None), "data": {"k": "w"}})
    assert answer.code == 200
    assert answer.body["data"] == {"k": "w"}
    assert "labels" not in answer.metadata
    assert rv(answer.body) > rv(made)
    assert answer.body == await api.look(f"{api.maps}/a")


async def test_a_put_of_an_older_version_is_a_conflict_and_changes_nothing(api: Api) -> None:
    made = await api.make("a")
    newer = (await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})).body
    answer = await api.ask("PUT", f"{api.maps}/a", {**made, "data": {"k": "x"}})
    why = f'Operation cannot be fulfilled on configmaps "a": {MODIFIED_MEANWHILE}'
    assert answer.refusal == (409, "Conflict", why)
    assert await api.look(f"{api.maps}/a") == newer


async def test_the_client_calls_it_a_conflict(api: Api) -> None:
    made = await api.make("a")
    await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.client.replace(CONFIG_MAPS, made)


async def test_of_two_writers_who_looked_at_the_same_version_one_wins(api: Api) -> None:
    made = await api.make("a")
    codes = [(await api.ask("PUT", f"{api.maps}/a", {**made, "data": {"k": who}})).code for who in ("x", "y")]
    assert codes == [200, 409]
    assert (await api.look(f"{api.maps}/a"))["data"] == {"k": "x"}


async def test_a_put_of_a_version_yet_to_come_is_a_conflict(api: Api) -> None:
    made = await api.make("a")
    ahead = with_metadata(made, resourceVersion=str(rv(made) + 1_000_000))
    assert (await api.ask("PUT", f"{api.maps}/a", ahead)).refusal[:2] == (409, "Conflict")


@pytest.mark.parametrize(("kind", "body"), [("maps", config_map("web")), ("deployments", deployment())])
async def test_a_put_without_a_version_overwrites(api: Api, kind: str, body: dict[str, Any]) -> None:
    path = getattr(api, kind)
    await api.ask("POST", path, body)
    await api.merge(f"{path}/web", {"metadata": {"labels": {"app": "web"}}})
    answer = await api.ask("PUT", f"{path}/web", body)
    assert answer.code == 200
    assert "labels" not in answer.metadata


async def test_a_lease_is_not_put_without_a_version(api: Api) -> None:
    await api.make_lease()
    answer = await api.ask("PUT", f"{api.leases}/lead", {"metadata": {"name": "lead"}})
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.refusal[2].endswith("metadata.resourceVersion: Invalid value: 0: must be specified for an update")


async def test_a_put_of_another_uid_is_a_conflict(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("PUT", f"{api.maps}/a", with_metadata(made, uid=ANOTHER_UID))
    uids = f"UID in precondition: {ANOTHER_UID}, UID in object meta: {made['metadata']['uid']}"
    assert answer.refusal[:2] == (409, "Conflict")
    assert answer.refusal[2].endswith(f"Precondition failed: {uids}")


async def test_a_put_keeps_what_only_the_server_may_say(api: Api) -> None:
    made = (await api.make_deployment())["metadata"]
    answer = await api.ask("PUT", f"{api.deployments}/web", deployment(generation=9))
    kept = ("uid", "creationTimestamp", "generation", "namespace")
    assert [answer.metadata[field] for field in kept] == [made[field] for field in kept]


async def test_a_put_cannot_begin_a_deletion(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("PUT", f"{api.maps}/a", with_metadata(made, deletionTimestamp="2001-01-01T00:00:00Z"))
    assert answer.refusal[:2] == (422, "Invalid")
    assert set(answer.fields) == {("FieldValueInvalid", "metadata.deletionTimestamp")}
    assert "deletionTimestamp" not in (await api.look(f"{api.maps}/a"))["metadata"]


async def test_a_put_that_changes_nothing_keeps_the_version(api: Api) -> None:
    made = await api.make_deployment()
    answer = await api.ask("PUT", f"{api.deployments}/web", made)
    assert answer.code == 200
    assert rv(answer.body) == rv(made)


async def test_a_put_of_what_is_not_there_is_not_found(api: Api) -> None:
    answer = await api.ask("PUT", f"{api.maps}/a", config_map("a"))
    assert answer.refusal == (404, "NotFound", 'configmaps "a" not found')


async def test_a_put_of_a_lease_that_is_not_there_makes_it(api: Api) -> None:
    answer = await api.ask("PUT", f"{api.leases}/lead", {"metadata": {"name": "lead"}})
    assert answer.code == 201
    assert answer.metadata["uid"]


async def test_a_put_of_a_lease_that_is_gone_makes_another_whatever_its_version(api: Api) -> None:
    old = await api.make_lease()
    await api.ask("DELETE", f"{api.leases}/lead")
    answer = await api.ask("PUT", f"{api.leases}/lead", with_metadata(old, uid=None))
    assert answer.code == 201
    assert answer.metadata["uid"] != old["metadata"]["uid"]


async def test_a_put_of_a_lease_that_is_gone_does_not_bring_back_its_uid(api: Api) -> None:
    old = await api.make_lease()
    await api.ask("DELETE", f"{api.leases}/lead")
    answer = await api.ask("PUT", f"{api.leases}/lead", old)
    assert answer.refusal[:2] == (409, "Conflict")
    assert f"UID in precondition: {old['metadata']['uid']}, UID in object meta: " in answer.refusal[2]


@pytest.mark.parametrize(
    ("what", "patch", "bumps"),
    [
        ("spec", {"spec": {"replicas": 3}}, 1),
        ("spec, as it is", {"spec": {"replicas": 2}}, 0),
        ("labels", {"metadata": {"labels": {"a": "b"}}}, 0),
        ("annotations, which a Deployment counts", {"metadata": {"annotations": {"a": "b"}}}, 1),
        ("finalizers", {"metadata": {"finalizers": HELD}}, 0),
        ("status", {"status": {"replicas": 3}}, 0),
        ("generation itself", {"metadata": {"generation": 9}}, 0),
    ],
)
async def test_generation_counts_changes_of_the_spec(api: Api, what: str, patch: dict[str, Any], bumps: int) -> None:
    made = await api.make_deployment()
    old = {**made, **{key: {**made.get(key, {}), **value} for key, value in patch.items()}}
    answer = await api.ask("PUT", f"{api.deployments}/web", old)
    assert answer.code == 200, what
    assert answer.metadata["generation"] == 1 + bumps


async def test_a_put_that_breaks_a_rule_changes_nothing(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("PUT", f"{api.maps}/a", with_metadata(made, labels={"a b": "x"}))
    assert answer.refusal[:2] == (422, "Invalid")
    assert await api.look(f"{api.maps}/a") == made
