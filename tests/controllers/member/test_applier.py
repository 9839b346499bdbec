"""The applier, on an embedded hub and member: applying, repairing, reporting."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.member.applying_bed import (
    CRD,
    DEPLOYMENTS,
    MAPS,
    NAMESPACE,
    NAMESPACES,
    SECRETS,
    Bed,
    bed,
    config,
    deployment,
    make_available,
    namespace,
    play,
)
from kedge.api.fleet import LAST_APPLIED, SPEC_HASH, WORK_CLEANUP
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from support.virtual import run

APPLIED = {"Applied": ("True", "AllManifestsApplied"), "Available": ("True", "AllManifestsAvailable")}
FAILED = {"Applied": ("False", "SomeManifestsAreNotApplied")}
GREETING = untyped(Resource("example.com", "v1", "Greeting", "greetings"))


def test_a_work_is_applied_and_reported_as_it_becomes_available() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest()
        assert await here.conditions() == {
            "Applied": ("True", "AllManifestsApplied"),
            "Available": ("False", "SomeManifestsAreNotAvailable"),
        }
        await make_available(here)
        await here.rest(0.2)
        assert await here.conditions() == APPLIED

    play(scene)


def test_what_is_applied_looks_as_the_other_agent_would_leave_it() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest()
        work, applied = await here.work(), await here.applied()
        assert work.metadata.finalizers == (WORK_CLEANUP,)
        assert applied is not None
        assert applied.spec.work_namespace == NAMESPACE
        assert [one.resource for one in applied.status.applied_resources] == ["namespaces", "deployments"]
        live = await here.get(DEPLOYMENTS, "web")
        assert live is not None
        assert [one.uid for one in applied.status.applied_resources][1] == live["metadata"]["uid"]
        assert set(live["metadata"]["annotations"]) == {LAST_APPLIED, SPEC_HASH}
        assert live["metadata"]["annotations"][LAST_APPLIED].endswith("}\n")
        assert live["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": "AppliedWork",
                "name": "web-work",
                "uid": applied.metadata.uid,
                "blockOwnerDeletion": True,
            }
        ]

    play(scene)


def test_conditions_of_manifests_speak_of_the_generation_of_the_object() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest()
        await here.place(namespace(), deployment(image="app:2"))
        await here.rest()
        work = await here.work()
        of_namespace, of_deployment = work.status.manifest_conditions
        assert {one.observed_generation for one in of_namespace.conditions} == {None}
        assert {one.observed_generation for one in of_deployment.conditions} == {2}
        assert {one.observed_generation for one in work.status.conditions} == {work.metadata.generation} == {2}

    play(scene)


def test_a_work_without_manifests_is_applied_and_available() -> None:
    async def scene(here: Bed) -> None:
        await here.place()
        await here.rest()
        assert await here.conditions() == APPLIED

    play(scene)


def test_what_others_change_is_put_back_at_once_and_what_they_add_stays() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        await here.change(MAPS, "settings", {"data": {"a": "2", "theirs": "x"}, "metadata": {"labels": {"l": "m"}}})
        await here.rest(0.2)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "1", "theirs": "x"}
        assert live["metadata"]["labels"] == {"l": "m"}

    play(scene)


def test_what_others_delete_is_made_again_at_once() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        before = await here.get(MAPS, "settings")
        await here.member.delete(MAPS, "settings", "shop")
        await here.rest(0.2)
        after, applied = await here.get(MAPS, "settings"), await here.applied()
        assert before
        assert after
        assert applied
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert applied.status.applied_resources[1].uid == after["metadata"]["uid"]

    play(scene)


def test_an_owner_that_was_taken_off_is_put_back() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        await here.change(MAPS, "settings", {"metadata": {"ownerReferences": None}})
        await here.rest(0.2)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert [one["name"] for one in live["metadata"]["ownerReferences"]] == ["web-work"]

    play(scene)


def test_nothing_is_written_while_nothing_is_to_be_said() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(), deployment())
        await here.rest()
        await make_available(here)
        await here.rest()
        here.to_hub.writes.clear()
        here.to_member.writes.clear()
        await here.change(DEPLOYMENTS, "web", {"metadata": {"labels": {"theirs": "x"}}})
        await make_available(here)  # the same again
        await here.rest(600)
        assert here.to_member.writes == []
        assert here.to_hub.writes == []

    play(scene)


def test_what_is_as_it_was_left_is_changed_without_a_question_and_what_is_not_is_asked_for() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        here.to_member.reads.clear()
        await here.place(namespace(), config(a="2"))
        await here.rest()
        assert (await here.get(MAPS, "settings") or {})["data"] == {"a": "2"}
        assert here.to_member.reads == []
        await here.change(MAPS, "settings", {"data": {"theirs": "x"}})
        await here.place(namespace(), config(b="3"))
        await here.rest()
        assert (await here.get(MAPS, "settings") or {})["data"] == {"b": "3", "theirs": "x"}
        assert here.to_member.reads

    play(scene)


def test_what_turns_out_to_be_otherwise_is_asked_for_and_nothing_is_lost() -> None:
    """Somebody changes an object in the same moment as the hub, before the agent sees it."""

    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        for number in range(2, 12):
            await here.place(namespace(), config(a=str(number)))
            await here.rest(number / 1000)
            await here.change(MAPS, "settings", {"data": {f"theirs-{number}": "x"}})
            await here.rest(1)
        theirs = {f"theirs-{number}": "x" for number in range(2, 12)}
        assert (await here.get(MAPS, "settings") or {})["data"] == {"a": "11", **theirs}

    play(scene)


def test_a_restart_writes_nothing() -> None:
    async def whole() -> None:
        async with bed() as here:
            async with here.agent():
                await here.place(namespace(), config(), deployment())
                await here.rest()
            here.to_hub.writes.clear()
            here.to_member.writes.clear()
            async with here.agent():
                await here.rest(60)
            assert here.to_member.writes == here.to_hub.writes == []

    run(whole())


def test_what_is_no_longer_asked_for_goes_and_fields_too() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1", b="2"), config("other"))
        await here.rest()
        await here.place(namespace(), config(a="1"))
        await here.rest()
        live, applied = await here.get(MAPS, "settings"), await here.applied()
        assert live is not None
        assert live["data"] == {"a": "1"}
        assert await here.get(MAPS, "other") is None
        assert applied is not None
        assert [one.name for one in applied.status.applied_resources] == ["shop", "settings"]

    play(scene)


def test_a_left_over_that_others_own_too_is_only_let_go() -> None:
    async def scene(here: Bed) -> None:
        mine = await here.member.create(NAMESPACES, {"metadata": {"name": "another"}})
        other = {"apiVersion": "v1", "kind": "Namespace", "name": "another", "uid": mine["metadata"]["uid"]}
        strategy = {"allowCoOwnership": True}
        await here.place(namespace(), config(), applyStrategy=strategy)
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        await here.change(
            MAPS, "settings", {"metadata": {"ownerReferences": [*live["metadata"]["ownerReferences"], other]}}
        )
        await here.rest()
        await here.place(namespace(), applyStrategy=strategy)
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["metadata"]["ownerReferences"] == [other]

    play(scene)


def test_a_left_over_that_is_somebody_elses_by_now_stays() -> None:
    async def whole() -> None:
        async with bed() as here:
            async with here.agent():
                await here.place(namespace(), config())
                await here.rest()
            await here.change(MAPS, "settings", {"metadata": {"ownerReferences": None}})
            await here.place(namespace())
            async with here.agent():
                await here.rest()
            assert await here.get(MAPS, "settings") is not None

    run(whole())


def test_nothing_counts_as_left_over_while_a_manifest_could_mean_it() -> None:
    async def scene(here: Bed) -> None:
        nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
        await here.place(namespace(), config())
        await here.rest()
        await here.place(namespace(), nameless)
        await here.rest()
        assert await here.get(MAPS, "settings") is not None
        await here.place(namespace())
        await here.rest()
        assert await here.get(MAPS, "settings") is None

    play(scene)


def test_a_left_over_that_cannot_be_removed_is_told_and_tried_again() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        here.to_member.forbidden = "DELETE"
        await here.place(namespace())
        await here.rest(30)
        assert await here.conditions() == APPLIED
        assert "ConfigMap shop/settings: not allowed" in (await here.work()).status.conditions[0].message
        here.to_member.forbidden = ""
        await here.rest(6)
        assert await here.get(MAPS, "settings") is None
        assert "not allowed" not in (await here.work()).status.conditions[0].message

    play(scene)


BAD = [
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}},
        "FoundGenerateName",
        "give it a name",
    ),
    (config(), "Duplicated", "ConfigMap shop/settings is there twice"),
    (
        {"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "x"}},
        "DecodingErred",
        "the member serves no Nothing of example.com/v1",
    ),
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
        "DecodingErred",
        "ConfigMap x says no metadata.namespace",
    ),
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nowhere"}},
        "ManifestApplyFailed",
        'namespaces "nowhere" not found',
    ),
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Bad_Name", "namespace": "shop"}},
        "ManifestApplyFailed",
        "metadata.name: Invalid value",
    ),
]


@pytest.mark.parametrize(("manifest", "reason", "message"), BAD, ids=[row[1] + str(n) for n, row in enumerate(BAD)])
def test_one_bad_manifest_says_why_and_does_not_stop_the_others(
    manifest: dict[str, Any], reason: str, message: str
) -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(), manifest)
        await here.rest()
        assert await here.conditions() == FAILED
        assert (await here.manifests())[1:] == [{"Applied": "Applied", "Available": "Available"}, {"Applied": reason}]
        assert message in await here.message(2)
        assert message in (await here.work()).status.conditions[0].message
        applied = await here.applied()
        assert applied is not None
        assert [one.name for one in applied.status.applied_resources] == ["shop", "settings"]
        here.to_hub.writes.clear()
        here.to_member.writes.clear()
        await here.rest(120)
        assert here.to_member.writes == here.to_hub.writes == []

    play(scene)


def test_what_was_refused_is_tried_again_until_it_is_taken() -> None:
    async def scene(here: Bed) -> None:
        await here.place(config())
        await here.rest(300)
        assert await here.conditions() == FAILED
        await here.member.create(NAMESPACES, namespace())
        await here.rest(6)
        assert await here.conditions() == APPLIED

    play(scene)


def test_the_values_of_a_secret_are_never_quoted() -> None:
    async def scene(here: Bed) -> None:
        bad = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "key", "namespace": "shop"},
            "type": "kubernetes.io/tls",
            "data": {"tls.crt": "aHVudGVyMg=="},
        }
        await here.place(namespace(), bad)
        await here.rest()
        message = await here.message(1)
        assert "the member refused it" in message
        assert "aHVudGVyMg" not in message
        assert "hunter2" not in message
        assert await here.get(SECRETS, "key") is None

    play(scene)


def definition() -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _ANYTHING}}
    names = {"kind": "Greeting", "plural": "greetings", "singular": "greeting", "listKind": "GreetingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": "greetings.example.com"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
HELLO = {
    "apiVersion": "example.com/v1",
    "kind": "Greeting",
    "metadata": {"name": "hello", "namespace": "shop"},
    "spec": {"words": ["hello"]},
}


def test_a_definition_and_an_object_of_it_come_in_one_work_and_never_fail_meanwhile() -> None:
    async def scene(here: Bed) -> None:
        await here.place(HELLO, definition(), namespace())
        for _ in range(100):
            await here.rest(0.02)
            assert await here.conditions() != FAILED
        await here.rest()
        assert (await here.conditions())["Applied"] == ("True", "AllManifestsApplied")
        assert (await here.conditions())["Available"] == ("True", "WorkNotTrackable")
        assert (await here.manifests())[0] == {"Applied": "Applied", "Available": "NotTrackable"}
        await here.change(GREETING, "hello", {"spec": {"words": ["bye"], "more": 1}})
        await here.rest(0.2)
        live = await here.get(GREETING, "hello")
        assert live is not None
        assert live["spec"] == {"words": ["hello"], "more": 1}

    play(scene)


def test_a_kind_that_comes_later_is_found_without_a_restart() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), HELLO)
        await here.rest(60)
        assert await here.conditions() == FAILED
        await here.member.create(CRD, definition())
        await here.rest(8)
        assert (await here.conditions())["Applied"] == ("True", "AllManifestsApplied")

    play(scene)


def test_kinds_that_no_work_places_any_more_are_no_longer_followed() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        following = here.applier._objects
        assert {one.plural for one in following.follows()} == {"namespaces", "configmaps"}
        await here.place(namespace())
        await here.rest()
        assert {one.plural for one in following.follows()} == {"namespaces"}

    play(scene)


def test_a_repair_that_is_undone_again_and_again_slows_down_and_says_so() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        here.to_member.writes.clear()
        for n in range(2000):
            await here.change(MAPS, "settings", {"data": {"a": f"theirs {n}"}})
            await here.rest(0.3)
        assert len(here.to_member.writes) < 20
        assert "keeps changing it" in await here.message(1)
        assert (await here.conditions())["Applied"] == ("True", "AllManifestsApplied")
        await here.rest(600)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "1"}
        assert "keeps changing it" not in await here.message(1)

    play(scene)


def test_a_member_that_cannot_be_reached_changes_nothing_on_the_hub_and_is_caught_up_with() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        before = (await here.work()).status
        here.to_member.disconnect("away")
        await here.place(namespace(), config(a="2"))
        await here.rest(60)
        assert (await here.work()).status == before
        here.to_member.connect()
        await here.rest(60)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "2"}
        assert await here.conditions() == APPLIED

    play(scene)


def test_on_the_hub_nothing_is_asked_for_outside_the_members_namespace() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        await here.hub.delete(here.WORKS, "web-work", NAMESPACE)
        await here.rest()
        own = f"/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/{NAMESPACE}/works"
        assert all(path.startswith((own, "/livez", "/readyz", "/version")) for path in here.to_hub.paths)

    play(scene)


@pytest.mark.parametrize(
    ("strategy", "said"),
    [({"type": "ReportDiff"}, "ReportDiff is not supported"), ({"whenToApply": "IfNotDrifted"}, "IfNotDrifted is not")],
)
def test_what_is_not_supported_yet_says_so_and_writes_nothing(strategy: dict[str, str], said: str) -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), applyStrategy=strategy)
        await here.rest()
        assert await here.conditions() == FAILED
        assert said in await here.message()
        assert await here.get(NAMESPACES, "shop", None) is None

    play(scene)


def test_the_members_own_status_comes_back_if_asked() -> None:
    async def scene(here: Bed) -> None:
        mirror = {"type": "Mirror", "destination": "WorkAPI"}
        await here.place(namespace(), deployment(), config(), reportBackStrategy=mirror)
        await here.rest()
        await make_available(here)
        await here.rest()
        _, back, none = [one.back_reported_status for one in (await here.work()).status.manifest_conditions]
        assert none is None
        assert back is not None
        live = await here.get(DEPLOYMENTS, "web")
        assert live is not None
        assert back.observed_status == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "status": live["status"],
        }
        here.to_hub.writes.clear()
        await here.change(DEPLOYMENTS, "web", {"metadata": {"labels": {"l": "m"}}})
        await here.rest(60)
        assert here.to_hub.writes == []

    play(scene)


def test_nothing_is_done_before_the_member_has_joined() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace())
        await here.rest()
        assert here.to_hub.writes == here.to_member.writes == []
        here.applier.join()
        await here.rest()
        assert await here.conditions() == APPLIED

    play(scene, join=False)


@pytest.mark.parametrize(
    "rule", ["self.data.a" + ".replace('a', 'aaaaaaaaaa')" * 12 + ".size() > 0", "lists.range(1000000000).size() > 0"]
)
def test_a_hostile_rule_cannot_be_evaluated_and_does_not_stop_the_others(rule: str) -> None:
    async def scene(here: Bed) -> None:
        hostile = config("hostile", a="a" * 1000)
        hostile["metadata"]["annotations"] = {"kedge.dev/available-when": rule}
        await here.place(namespace(), hostile, config())
        await here.rest()
        assert await here.conditions() == {
            "Applied": ("True", "AllManifestsApplied"),
            "Available": ("False", "SomeManifestsAreNotAvailable"),
        }
        assert (await here.manifests())[2] == {"Applied": "Applied", "Available": "Available"}
        message = next(one.message for one in (await here.work()).status.manifest_conditions[1].conditions[1:])
        assert "ConfigMap shop/hostile has a rule that cannot be evaluated" in message

    play(scene)
