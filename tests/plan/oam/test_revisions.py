"""Which state of a component or an Application is a new revision, and what it is called."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.apps import ControllerRevision
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.oam.applications import ApplicationRevision, ApplicationRevisionSpec
from kedge.api.oam.components import LatestRevision
from kedge.api.oam.keys import COMPONENT_OF_REVISION
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import (
    Found,
    Revision,
    application_hash,
    application_of,
    component_hash,
    component_in,
    component_revision,
    find_revision,
    named_revision,
    revision_name,
    revision_number,
    revisions_of_application,
    revisions_of_component,
)

OWNER = {"apiVersion": "core.oam.dev/v1alpha2", "kind": "Component", "name": "web", "uid": "u1"}


def spec(image: str = "web:1", **more: Any) -> dict[str, Any]:
    return {"workload": {"kind": "Deployment", "spec": {"image": image}}, **more}


def kept(name: str, image: str = "web:1", *, component: str = "web", owner: str = "u1") -> ControllerRevision:
    reference = OwnerReference(api_version="v1", kind="Component", name="web", uid=owner)
    meta = ObjectMeta(name=name, labels={COMPONENT_OF_REVISION: component}, owner_references=(reference,))
    return ControllerRevision(metadata=meta, data={"spec": spec(image)})


def numbered(name: str, number: int) -> ControllerRevision:
    return replace(kept(name), revision=number)


@pytest.mark.parametrize(
    ("name", "of", "number"),
    [
        ("web-v1", "web", 1),
        ("web-v12", "web", 12),
        ("web-v0", "web", None),
        ("web-v01", "web", None),
        ("web-v", "web", None),
        ("web-v1-v2", "web", None),
        ("web-v1-v2", "web-v1", 2),
        ("web1", "web", None),
        ("other-v1", "web", None),
        ("web-v1\n", "web", None),
        ("my-web-v1", "web", None),
        ("web-v" + "9" * 19, "web", None),
        ("-v1", "web", None),
    ],
)
def test_the_number_of_a_revision_is_in_its_name(name: str, of: str, number: int | None) -> None:
    assert revision_number(name, of) == number


def test_a_name_that_is_too_long_for_a_label_is_refused_in_words() -> None:
    assert revision_name("w" * 60, 1) == "w" * 60 + "-v1"
    with pytest.raises(OamRefused, match=r"is too long: its revision w+-v10 may have at most 63 characters"):
        revision_name("w" * 60, 10)


@pytest.mark.parametrize(
    ("own", "taken", "wanted"),
    [
        ([], [], Found(Revision(1, "web-v1", "h"), is_new=True)),
        ([Revision(1, "web-v1", "h")], [], Found(Revision(1, "web-v1", "h"), is_new=False)),
        ([Revision(1, "web-v1", "g")], [], Found(Revision(2, "web-v2", "h"), is_new=True)),
        # back to an older state: a new revision, since numbers only grow
        ([Revision(1, "web-v1", "h"), Revision(2, "web-v2", "g")], [], Found(Revision(3, "web-v3", "h"), is_new=True)),
        ([Revision(10, "web-v10", "g"), Revision(9, "web-v9", "h")], [], Found(Revision(11, "web-v11", "h"), True)),
        ([], ["web-x", "other-v4"], Found(Revision(1, "web-v1", "h"), is_new=True)),
        ([], ["web-v4", "web-x", "web"], Found(Revision(5, "web-v5", "h"), is_new=True)),
        ([Revision(1, "web-v1", "h")], ["web-v4"], Found(Revision(1, "web-v1", "h"), is_new=False)),
    ],
)
def test_a_state_is_a_new_revision_only_if_it_differs_from_the_newest(
    own: list[Revision], taken: list[str], wanted: Found
) -> None:
    assert find_revision("web", "h", own, taken) == wanted


@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_numbers_only_grow_and_the_same_state_twice_makes_none(states: list[str]) -> None:
    own: list[Revision] = []
    for state in states:
        found = find_revision("web", state, own)
        if found.is_new:
            assert found.revision.number == len(own) + 1
            own.append(found.revision)
        assert find_revision("web", state, own) == Found(own[-1], is_new=False)
    assert all(one.hash != other.hash for one, other in pairwise(own))


def test_only_what_the_pods_are_made_of_makes_a_hash() -> None:
    assert component_hash(spec()) == component_hash({**spec(), "parameters": []})
    assert component_hash(spec()) == component_hash({**spec(), "unknown": 1})
    assert component_hash(spec()) != component_hash(spec("web:2"))
    assert component_hash(spec()) != component_hash(spec(parameters=[{"name": "x"}]))


def test_the_rollout_plan_of_an_application_makes_no_revision() -> None:
    one = {"components": [{"name": "web"}]}
    assert application_hash(one) == application_hash({**one, "rolloutPlan": {"targetSize": 3}})
    assert application_hash(one) != application_hash({"components": [{"name": "db"}]})


OWN = (Revision(1, "web-v1", "h"), Revision(3, "web-v3", "h"))


@pytest.mark.parametrize(
    ("own", "there", "found"),
    [
        ((), (), Found(Revision(1, "blue", component_hash(spec())), is_new=True)),
        (OWN, (), Found(Revision(4, "blue", component_hash(spec())), is_new=True)),
        (OWN, (kept("green", "web:2"),), Found(Revision(4, "blue", component_hash(spec())), is_new=True)),
        (OWN, (numbered("blue", 2),), Found(Revision(2, "blue", component_hash(spec())), is_new=False)),
        (OWN, (kept("blue", owner="u2"),), Found(Revision(0, "blue", component_hash(spec())), is_new=False)),
    ],
)
def test_a_revision_that_is_named_is_found_by_its_name(
    own: tuple[Revision, ...], there: tuple[ControllerRevision, ...], found: Found
) -> None:
    assert named_revision("web", "blue", component_hash(spec()), own, there) == found


@pytest.mark.parametrize(
    ("name", "there", "problem"),
    [
        ("Blue", (), "its externalRevision 'Blue' must be the name of an object, of at most 63 characters"),
        ("b" * 64, (), f"its externalRevision '{'b' * 64}' must be the name of an object, of at most 63 characters"),
        ("blue", (kept("blue", "web:2"),), "its externalRevision blue keeps another state of it already"),
        ("blue", (ControllerRevision(metadata=kept("blue").metadata),), "keeps another state of it already"),
        ("blue", (kept("blue", component="db"),), "its externalRevision blue is a revision of the component db"),
        ("blue", (ControllerRevision(metadata=ObjectMeta(name="blue")),), "blue is no revision of a component"),
    ],
)
def test_a_name_that_is_of_something_else_is_refused(
    name: str, there: tuple[ControllerRevision, ...], problem: str
) -> None:
    with pytest.raises(OamRefused, match=f"^component web: .*{problem}"):
        named_revision("web", name, component_hash(spec()), (), there)


def test_a_name_may_be_as_long_as_the_value_of_a_label() -> None:
    assert named_revision("web", "b" * 63, "h", (), ()).revision.name == "b" * 63


def test_a_named_revision_has_the_number_that_it_says() -> None:
    among = [numbered("blue", 2), kept("web-v1"), numbered("web-v3", 7)]
    assert [one.number for one in revisions_of_component("web", "u1", among)] == [2, 1, 3]


def test_only_revisions_of_the_component_and_the_owner_count() -> None:
    among = [
        kept("web-v1"),
        kept("web-v2", "web:2"),
        kept("web-v3", owner="u2"),
        kept("web-v4", component="db"),
        kept("web-7d4f8"),
    ]
    assert revisions_of_component("web", "u1", among) == (
        Revision(1, "web-v1", component_hash(spec())),
        Revision(2, "web-v2", component_hash(spec("web:2"))),
    )


def test_a_revision_may_have_other_owners_too() -> None:
    one = kept("web-v1")
    others = (OwnerReference(api_version="v1", kind="ConfigMap", name="x", uid="u9"), *one.metadata.owner_references)
    shared = replace(one, metadata=replace(one.metadata, owner_references=others))
    assert [found.name for found in revisions_of_component("web", "u1", [shared])] == ["web-v1"]


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("shop-v2", "shop"),
        ("shop-v1-v12", "shop-v1"),
        ("my-vault-v3", "my-vault"),
        ("shop-v0", ""),
        ("shop-v2-canary", ""),
        ("shop", ""),
        ("-v3", ""),
        ("", ""),
    ],
)
def test_a_name_says_whose_revision_it_is(name: str, of: str) -> None:
    assert application_of(name) == of


def test_a_revision_without_data_is_one_of_its_own() -> None:
    bare = ControllerRevision(metadata=kept("web-v1").metadata)
    (found,) = revisions_of_component("web", "u1", [bare])
    assert found.hash not in (component_hash(spec()), "")


def test_revisions_of_an_application_are_found_by_what_they_keep() -> None:
    def revision(name: str, application: str) -> ApplicationRevision:
        inside = {"metadata": {"name": application}, "spec": {"components": []}}
        return ApplicationRevision(spec=ApplicationRevisionSpec(application=inside), metadata=ObjectMeta(name=name))

    among = [revision("shop-v1", "shop"), revision("shop-v2", "other"), revision("shop-x", "shop")]
    assert revisions_of_application("shop", among) == (Revision(1, "shop-v1", application_hash({"components": []})),)


def test_a_component_is_kept_whole_and_controlled_and_found_again() -> None:
    component = {"metadata": {"name": "web", "namespace": "shop", "uid": "x"}, "spec": spec()}
    body = component_revision(component, Revision(3, "web-v3", "h"), OWNER)
    assert body["metadata"] == {
        "name": "web-v3",
        "namespace": "shop",
        "labels": {COMPONENT_OF_REVISION: "web"},
        "ownerReferences": [{**OWNER, "controller": True, "blockOwnerDeletion": True}],
    }
    assert body["revision"] == 3
    assert body["data"] == {
        "apiVersion": "core.oam.dev/v1alpha2",
        "kind": "Component",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec(),
    }
    there = ControllerRevision(metadata=ObjectMeta(name="web-v2", namespace="shop"), data=body["data"])
    assert component_in(there) == body["data"]


def test_a_revision_without_a_namespace_in_it_is_of_its_own() -> None:
    data = {"metadata": {"name": "web"}, "spec": spec()}
    found = component_in(ControllerRevision(metadata=ObjectMeta(name="web-v2", namespace="shop"), data=data))
    assert found["metadata"] == {"name": "web", "namespace": "shop"}


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"name": "web", "namespace": "kube-system"}, "of another namespace than shop"),
        ({}, "without a proper name: its data.metadata.name is ''"),
        ({"name": ".."}, "without a proper name"),
        ({"name": "a/b"}, "without a proper name"),
        ({"name": ["web"]}, "without a proper name"),
        ("web", "without a proper name"),
    ],
)
def test_a_revision_that_reaches_elsewhere_is_refused(meta: Any, problem: str) -> None:
    data = {"metadata": meta, "spec": spec()}
    with pytest.raises(OamRefused, match=problem):
        component_in(ControllerRevision(metadata=ObjectMeta(name="web-v2", namespace="shop"), data=data))


@pytest.mark.parametrize("data", [None, {}, {"spec": {}}, {"spec": {"workload": "x"}}])
def test_a_revision_of_something_else_is_refused_in_words(data: Any) -> None:
    revision = ControllerRevision(metadata=ObjectMeta(name="web-7d4f8"), data=data)
    with pytest.raises(OamRefused, match="the ControllerRevision web-7d4f8 keeps no Component"):
        component_in(revision)


def test_a_status_names_the_newest_revision() -> None:
    latest = LatestRevision(name="web-v3", revision=3, revision_hash="h")
    assert Revision(3, "web-v3", "h").latest == latest
