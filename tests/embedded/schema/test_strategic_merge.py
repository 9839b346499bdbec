"""Strategic merge, as a function: rows shared with the servers' contract, and what holds for any patch."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from embedded.schema.merging import REFUSALS, ROWS, Row, deployment, looked_up
from kedge.api.openapi.builtin import schema_of
from kedge.embedded.schema.builtin_decoding import decode_struct
from kedge.embedded.schema.strategic_merge import strategic_merge
from kedge.embedded.statuses import Refused

DEPLOYMENT = schema_of("apps", "v1", "Deployment")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_patch_makes_of_a_deployment(row: Row) -> None:
    obj = deployment()
    patched = decode_struct(DEPLOYMENT, strategic_merge(DEPLOYMENT, obj, row.of_deployment)).obj
    found = patched if row.whole else patched["spec"]["template"]["spec"]
    then = row.then
    if row.at == "containers[].resources":
        then = [row.then[0], None]  # a server writes the empty one
    assert looked_up(found, row.at) == then
    assert obj == deployment()


@pytest.mark.parametrize(("patch", "code", "message"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_a_patch_that_contradicts_itself_is_refused(patch: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(Refused) as caught:
        strategic_merge(DEPLOYMENT, deployment(), {"spec": {"template": {"spec": patch}}})
    assert caught.value.code == code
    assert message in str(caught.value)


def test_what_a_patch_does_not_touch_is_shared() -> None:
    obj = deployment()
    patched = strategic_merge(
        DEPLOYMENT, obj, {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "x"}]}}}}
    )
    assert patched["metadata"] is obj["metadata"]
    spec, old = patched["spec"]["template"]["spec"], obj["spec"]["template"]["spec"]
    assert spec["volumes"] is old["volumes"]
    assert spec["containers"][1] is old["containers"][1]
    assert spec["containers"][0]["env"] is old["containers"][0]["env"]
    assert spec["containers"][0]["image"] == "x"


@pytest.mark.parametrize("patch", [{}, {"metadata": {}}, {"spec": {"template": {"spec": {"containers": []}}}}])
def test_a_patch_that_says_nothing_gives_the_same_object(patch: dict[str, Any]) -> None:
    obj = deployment()
    assert strategic_merge(DEPLOYMENT, obj, patch) is obj


names = st.sampled_from(["web", "side", "new"])
variable = st.fixed_dictionaries(
    {"name": st.sampled_from("ABD")},
    optional={"value": st.sampled_from("xy"), "$patch": st.just("delete")},
)
container = st.fixed_dictionaries(
    {"name": names},
    optional={
        "image": st.sampled_from(["a", "b"]),
        "args": st.one_of(st.none(), st.lists(st.sampled_from("pq"), max_size=2)),
        "env": st.lists(variable, max_size=2, unique_by=lambda item: str(item["name"])),
        "$patch": st.just("delete"),
    },
)
template = st.fixed_dictionaries(
    {},
    optional={
        "containers": st.lists(container, max_size=3, unique_by=lambda item: str(item["name"])),
        "nodeSelector": st.one_of(
            st.none(), st.dictionaries(st.sampled_from(["zone", "x"]), st.one_of(st.none(), st.just("z")))
        ),
        "tolerations": st.one_of(st.none(), st.just([{"key": "q"}])),
    },
)
patches = st.builds(
    lambda spec, replicas, finalizers: {
        "metadata": {"finalizers": finalizers},
        "spec": {"replicas": replicas, "template": {"spec": spec}},
    },
    template,
    st.one_of(st.none(), st.integers(0, 3)),
    st.lists(st.sampled_from(["x.io/a", "x.io/c"]), max_size=2, unique=True),
)


def _deletes_from_what_it_adds(patch: dict[str, Any]) -> bool:
    """Of a container that was not there nothing can be deleted: the directive goes, and what it is about is added."""
    there = {one["name"] for one in deployment()["spec"]["template"]["spec"]["containers"]}
    sent = patch["spec"]["template"]["spec"].get("containers", [])
    added = [one for one in sent if one["name"] not in there]
    return any("$patch" in variable for one in added for variable in one.get("env", []))


@given(patches)
def test_a_patch_without_an_order_done_twice_is_a_patch_done_once(patch: dict[str, Any]) -> None:
    assume(not _deletes_from_what_it_adds(patch))
    once = decode_struct(DEPLOYMENT, strategic_merge(DEPLOYMENT, deployment(), patch)).obj
    twice = decode_struct(DEPLOYMENT, strategic_merge(DEPLOYMENT, once, patch)).obj
    assert twice == once


@given(patches)
def test_neither_the_object_nor_the_patch_is_changed(patch: dict[str, Any]) -> None:
    obj, sent = deployment(), copy.deepcopy(patch)
    strategic_merge(DEPLOYMENT, obj, patch)
    assert (obj, patch) == (deployment(), sent)


@given(patches)
def test_containers_that_a_patch_does_not_name_stay_as_they_are(patch: dict[str, Any]) -> None:
    obj = deployment()
    named = {item["name"] for item in patch["spec"]["template"]["spec"].get("containers", [])}
    merged = strategic_merge(DEPLOYMENT, obj, patch)["spec"]["template"]["spec"]["containers"]
    left = [item for item in merged if item["name"] not in named]
    assert left == [item for item in obj["spec"]["template"]["spec"]["containers"] if item["name"] not in named]
