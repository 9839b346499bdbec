"""Autoscalers of the workloads of a rollout: found, stopped and given back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from kedge.api.oam.keys import AUTOSCALER_BEFORE
from kedge.api.oam.rollout_plan import OnAutoscaler
from kedge.plan.batching.autoscalers import (
    HPA,
    PAUSED,
    PAUSED_REPLICAS,
    SCALED_OBJECT,
    SUFFIX,
    Autoscaler,
    autoscaler_step,
    conflicts,
    give_back,
)
from kedge.plan.batching.moves import WorkloadRef, Write
from kedge.plan.batching.rollout_waits import BatchCode, sentence

SOURCE = WorkloadRef("apps/v1", "Deployment", "shop", "web-v1")
TARGET = WorkloadRef("apps/v1", "Deployment", "shop", "web-v2")
CLONE_SET = WorkloadRef("apps.kruise.io/v1alpha1", "CloneSet", "shop", "web")
BOTH = (TARGET, SOURCE)
CLAIM = "Rollout/web/u-1"


def target_of(ref: WorkloadRef) -> dict[str, str]:
    return {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}


def hpa(name: str = "web", scales: WorkloadRef = SOURCE, *, namespace: str = "shop", **meta: Any) -> Autoscaler:
    spec = {"scaleTargetRef": target_of(scales), "minReplicas": 2, "maxReplicas": 9}
    return made(HPA.api_version, HPA.kind, namespace, name, spec, meta)


def keda(name: str = "web", scales: WorkloadRef = SOURCE, **meta: Any) -> Autoscaler:
    spec = {"scaleTargetRef": {"name": scales.name}}
    return made(SCALED_OBJECT.api_version, SCALED_OBJECT.kind, "shop", name, spec, meta)


def made(api_version: str, kind: str, namespace: str, name: str, spec: Any, meta: Any) -> Autoscaler:
    ref = WorkloadRef(api_version, kind, namespace, name)
    known = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}", "resourceVersion": "7"}
    return Autoscaler(ref, {"metadata": known | meta, "spec": spec})


def merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), part)
    return found


def written(autoscalers: list[Autoscaler], writes: tuple[Write, ...]) -> list[Autoscaler]:
    patches = {write.ref: write.patch for write in writes}
    return [Autoscaler(one.ref, merged(one.obj, dict(patches.get(one.ref) or {}))) for one in autoscalers]


def stopped(*autoscalers: Autoscaler, claim: str = CLAIM) -> list[Autoscaler]:
    step = autoscaler_step(autoscalers, BOTH, OnAutoscaler.take_over, claim).step
    return written(list(autoscalers), step.writes)


def annotated(one: Autoscaler) -> Any:
    return one.obj["metadata"].get("annotations", {})


def scaled(one: Autoscaler) -> Any:
    return one.obj["spec"]["scaleTargetRef"]


# Finding them


@pytest.mark.parametrize(
    ("autoscaler", "is_one"),
    [
        (hpa(), True),
        (hpa(scales=TARGET), True),
        (hpa(scales=WorkloadRef("apps/v1beta1", "Deployment", "", "web-v1")), True),
        (hpa(scales=WorkloadRef("", "Deployment", "", "web-v1")), True),
        (hpa(scales=WorkloadRef("apps/v1", "StatefulSet", "", "web-v1")), False),
        (hpa(scales=WorkloadRef("other.io/v1", "Deployment", "", "web-v1")), False),
        (hpa(scales=WorkloadRef("apps/v1", "Deployment", "", "web-v3")), False),
        (hpa(scales=WorkloadRef("apps/v1", "Deployment", "", f"web-v1{SUFFIX}")), False),
        (hpa(scales=CLONE_SET), False),
        (hpa(namespace="other"), False),
        (keda(), True),
        (keda(scales=TARGET), True),
        (keda(scales=CLONE_SET), False),
        (keda(annotations={PAUSED: "true"}), False),
        (keda(annotations={PAUSED: "false"}), True),
        (keda(annotations={PAUSED_REPLICAS: "3"}), True),
        (keda(annotations={PAUSED: "true", PAUSED_REPLICAS: "3"}), True),
        (keda(annotations={PAUSED: "true", PAUSED_REPLICAS: 3}), False),  # no annotation is a number
        (Autoscaler(hpa().ref, {"spec": {"scaleTargetRef": {"name": "web-v1"}}}), False),
        (Autoscaler(keda().ref, {"spec": {"scaleTargetRef": {"name": "web-v1"}}}), True),
        (Autoscaler(hpa().ref, {}), False),
        (Autoscaler(hpa().ref, {"spec": {"scaleTargetRef": "web-v1"}}), False),
    ],
)
def test_who_sets_the_replicas_of_a_workload(autoscaler: Autoscaler, is_one: bool) -> None:
    assert conflicts([autoscaler], BOTH) == ((autoscaler,) if is_one else ())


def test_other_kinds_of_workloads_are_scaled_too() -> None:
    assert conflicts([hpa(scales=CLONE_SET), hpa()], [CLONE_SET]) == (hpa(scales=CLONE_SET),)


def test_they_are_where_others_look_for_them() -> None:
    assert str(HPA.path("shop", "web")) == "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web"
    assert str(SCALED_OBJECT.path("shop", "web")) == "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/web"
    assert (HPA.kind, SCALED_OBJECT.kind) == ("HorizontalPodAutoscaler", "ScaledObject")
    assert (PAUSED, PAUSED_REPLICAS) == ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")
    assert SUFFIX == "-DisableByRollout"


def test_whose_they_are_is_said_by_any_owner() -> None:
    owners = [{"kind": "Shop", "name": "x"}, {"kind": "ScaledObject", "name": "y"}]
    assert hpa(ownerReferences=owners).is_made_by_keda
    assert not hpa(ownerReferences=owners[:1]).is_made_by_keda
    assert not hpa().is_made_by_keda


# Waiting for them


@pytest.mark.parametrize("on", [None, OnAutoscaler.hold])
def test_a_rollout_waits_until_they_are_gone(on: OnAutoscaler | None) -> None:
    found = autoscaler_step([hpa(), keda("more", TARGET), hpa("other", CLONE_SET)], BOTH, on, CLAIM).step
    assert found.writes == ()
    assert found.wait is not None
    assert (found.wait.unit, found.wait.code) == ("Deployment shop/web-v1", BatchCode.autoscaler)
    assert sentence(found.wait) == (
        "HorizontalPodAutoscaler shop/web and ScaledObject shop/more sets the replicas of Deployment shop/web-v1:"
        " delete it, or set onAutoscaler to TakeOver"
    )


@pytest.mark.parametrize("on", [None, *OnAutoscaler])
def test_nothing_is_done_about_others(on: OnAutoscaler | None) -> None:
    found = autoscaler_step([hpa(scales=CLONE_SET), keda(annotations={PAUSED: "true"})], BOTH, on, CLAIM)
    assert (found.step.is_done, found.remembered) == (True, ())


# Stopping them


def test_an_hpa_gets_a_target_that_cannot_exist() -> None:
    (write,) = autoscaler_step([hpa()], BOTH, OnAutoscaler.take_over, CLAIM).step.writes
    memory = f'{{"before":{{"apiVersion":"apps/v1","kind":"Deployment","name":"web-v1"}},"rollout":"{CLAIM}"}}'
    assert write == Write(
        hpa().ref,
        patch={
            "metadata": {"annotations": {AUTOSCALER_BEFORE: memory}},
            "spec": {"scaleTargetRef": {"name": "web-v1-DisableByRollout"}},
        },
        uid=hpa().uid,
        resource_version="7",
    )


def test_a_scaled_object_is_paused() -> None:
    (found,) = stopped(keda(annotations={"a": "b", PAUSED_REPLICAS: "3"}))
    memory = annotated(found).pop(AUTOSCALER_BEFORE)
    assert annotated(found) == {"a": "b", PAUSED: "true"}
    assert json.decode(memory) == {"rollout": CLAIM, "before": {PAUSED: None, PAUSED_REPLICAS: "3"}}
    assert scaled(found) == {"name": "web-v1"}


def test_what_keda_made_is_waited_for_and_not_changed() -> None:
    owned = hpa("keda-hpa-web", ownerReferences=[{"kind": "ScaledObject", "name": "web"}])
    first = autoscaler_step([owned, keda()], BOTH, OnAutoscaler.take_over, CLAIM).step
    assert [write.ref.kind for write in first.writes] == ["ScaledObject"]
    after = written([owned, keda()], first.writes)
    then = autoscaler_step(after, BOTH, OnAutoscaler.take_over, CLAIM)
    assert then.step.wait is not None
    assert then.step.wait.code == BatchCode.autoscaler_stopping
    assert "still sets the replicas of Deployment shop/web-v1" in sentence(then.step.wait)
    assert [one.ref.kind for one in then.remembered] == ["ScaledObject"]
    assert autoscaler_step(after[1:], BOTH, OnAutoscaler.take_over, CLAIM).step.is_done


def test_what_was_stopped_is_in_the_status() -> None:
    after = stopped(hpa(), keda())
    found = autoscaler_step(after, BOTH, None, CLAIM)
    assert found.step.is_done
    assert [(one.ref.kind, one.ref.name, one.ref.uid) for one in found.remembered] == [
        ("HorizontalPodAutoscaler", "web", hpa().uid),
        ("ScaledObject", "web", keda().uid),
    ]
    assert found.remembered[0].value == annotated(after[0])[AUTOSCALER_BEFORE]


def test_one_that_somebody_started_again_is_stopped_again() -> None:
    (found,) = stopped(hpa())
    again = Autoscaler(found.ref, merged(found.obj, {"spec": {"scaleTargetRef": {"name": "web-v2"}}}))
    (then,) = stopped(again)
    assert scaled(then)["name"] == f"web-v2{SUFFIX}"
    (back,) = written([then], give_back([then], CLAIM))
    assert scaled(back)["name"] == "web-v2"


# Giving them back


def test_after_a_failure_they_are_as_before() -> None:
    before = [hpa(), keda(annotations={PAUSED_REPLICAS: "3", "a": "b"}), hpa("other", CLONE_SET)]
    after = stopped(*before)
    back = written(after, give_back(after, CLAIM))
    expected = [Autoscaler(one.ref, merged(one.obj, {"metadata": {"annotations": {}}})) for one in before]
    assert [merged(one.obj, {"metadata": {"annotations": {}}}) for one in back] == [one.obj for one in expected]
    assert give_back(back, CLAIM) == ()


@pytest.mark.parametrize("one", [hpa(), keda()])
def test_after_a_success_it_scales_the_target(one: Autoscaler) -> None:
    after = stopped(one)
    (back,) = written(after, give_back(after, CLAIM, TARGET))
    assert scaled(back) == target_of(TARGET)
    assert annotated(back) == {}
    assert give_back([back], CLAIM, TARGET) == ()
    assert conflicts([back], [TARGET]) == (back,)


def test_only_one_scales_the_target() -> None:
    after = stopped(hpa("a"), hpa("b"), keda("c"))
    back = written(after, give_back(after, CLAIM, TARGET))
    assert [scaled(one)["name"] for one in back] == ["web-v2", "web-v1", "web-v1"]
    after = stopped(hpa("a"), hpa("b", TARGET))
    back = written(after, give_back(after, CLAIM, TARGET))
    assert [scaled(one)["name"] for one in back] == ["web-v1", "web-v2"]
    after = stopped(hpa("a"), keda("b", TARGET))
    back = written(after, give_back(after, CLAIM, TARGET))
    assert [scaled(one)["name"] for one in back] == ["web-v1", "web-v2"]


def test_another_rollout_gives_back_only_its_own() -> None:
    assert give_back(stopped(hpa(), keda()), "Rollout/other/u-2", TARGET) == ()


def test_one_that_is_gone_is_left_out() -> None:
    assert give_back([], CLAIM, TARGET, autoscaler_step(stopped(hpa()), BOTH, None, CLAIM).remembered) == ()


def test_what_somebody_chose_meanwhile_stays() -> None:
    moved, resumed = stopped(hpa(), keda())
    moved = Autoscaler(moved.ref, merged(moved.obj, {"spec": {"scaleTargetRef": {"name": "web-v9"}}}))
    resumed = Autoscaler(resumed.ref, merged(resumed.obj, {"metadata": {"annotations": {PAUSED: None}}}))
    back = written([moved, resumed], give_back([moved, resumed], CLAIM, TARGET))
    assert [scaled(one)["name"] for one in back] == ["web-v9", "web-v1"]
    assert [annotated(one) for one in back] == [{}, {}]


@pytest.mark.parametrize("one", [hpa(), keda()])
def test_the_status_helps_if_the_annotation_was_removed(one: Autoscaler) -> None:
    (found,) = stopped(one)
    kept = autoscaler_step([found], BOTH, None, CLAIM).remembered
    bare = Autoscaler(found.ref, merged(found.obj, {"metadata": {"annotations": {AUTOSCALER_BEFORE: None}}}))
    assert give_back([bare], CLAIM) == ()
    (back,) = written([bare], give_back([bare], CLAIM, remembered=kept))
    assert (scaled(back), annotated(back)) == (scaled(one), {})
    assert give_back([back], CLAIM, remembered=kept) == ()
    recreated = Autoscaler(bare.ref, merged(bare.obj, {"metadata": {"uid": "another"}}))
    assert give_back([recreated], CLAIM, remembered=kept) == ()


@pytest.mark.parametrize("value", ["", "{", "[]", '{"rollout": 5}', '{"rollout": "Rollout/web/u-1"}'])
def test_an_annotation_that_cannot_be_read_is_nobodys(value: str) -> None:
    (found,) = stopped(hpa())
    broken = Autoscaler(found.ref, merged(found.obj, {"metadata": {"annotations": {AUTOSCALER_BEFORE: value}}}))
    assert give_back([broken], CLAIM) == ()
    assert autoscaler_step([broken], BOTH, None, CLAIM).remembered == ()


refs = st.sampled_from([SOURCE, TARGET, CLONE_SET])
keys = st.dictionaries(st.sampled_from([PAUSED, PAUSED_REPLICAS, "a"]), st.sampled_from(["true", "false", "3"]))
objects = st.lists(
    st.builds(hpa, st.sampled_from("abc"), refs)
    | st.builds(lambda n, r, a: keda(n, r, annotations=a), st.sampled_from("abc"), refs, keys),
    max_size=4,
    unique_by=lambda one: one.ref,
)


@given(objects)
def test_stopping_and_giving_back_changes_nothing(before: list[Autoscaler]) -> None:
    after = stopped(*before)
    assert autoscaler_step(after, BOTH, OnAutoscaler.take_over, CLAIM).step.is_done
    assert conflicts(after, BOTH) == ()
    back = written(after, give_back(after, CLAIM))
    bare = [merged(one.obj, {"metadata": {"annotations": {}}}) for one in before]
    assert [merged(one.obj, {"metadata": {"annotations": {}}}) for one in back] == bare


@given(objects)
def test_after_a_success_at_most_one_more_scales_the_target(before: list[Autoscaler]) -> None:
    after = stopped(*before)
    back = written(after, give_back(after, CLAIM, TARGET))
    assert len(conflicts(back, [TARGET])) <= max(1, len(conflicts(before, [TARGET])))
    assert give_back(back, CLAIM, TARGET) == ()
