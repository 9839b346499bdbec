"""The rule that prepares pods for their shutdown, against an embedded server: every check, every undo."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from admission.zones_bed import MAPS, NS, SETS, TRACKER, A, B, Bed, C, ago, denied, play, said
from kedge.admission.prepare_downscale import PATH
from kedge.api.admission import AdmissionResponse, ResourceName
from kedge.kube.connect.outbound import OutboundFailed
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.scripted import refused
from support.stage import LoopClock

LAST = "grafana.com/last-downscale"
NOT = "not allowed because "
BOTH_RECORDS = pytest.mark.parametrize("tracker", [False, True], ids=["annotations", "zone tracker"])
POD_FAILED = "one or more pods failed to prepare for shutdown."


def allowed_text(name: str, old: int, new: int) -> str:
    return said(name, old, new) + "allowed -- all pods successfully prepared for shutdown."


def message(response: AdmissionResponse) -> str:
    return response.status.message if response.status is not None else ""


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("status", [200, 204])
def test_pods_are_told_from_the_last_one_down_and_the_time_is_recorded(scale: bool, status: int) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 5)
        await bed.zone(B)
        bed.pods.answers = {("POST", f"{A}-{number}"): status for number in range(5)}
        before = LoopClock().now().replace(microsecond=0)
        answer = await bed.prepare(A, 3, scale=scale)
        assert answer.allowed
        assert message(answer) == allowed_text(A, 5, 3)
        assert answer.patch is None
        domain = f"ingester.{NS}.svc.cluster.local.:80/ingester/prepare-shutdown"
        assert [(call.method, call.url) for call in bed.pods.calls] == [
            ("POST", f"http://{A}-4.{domain}"),
            ("POST", f"http://{A}-3.{domain}"),
        ]
        assert all(call.headers == {"Content-Type": "application/json", "X-Cluster": NS} for call in bed.pods.calls)
        assert all(call.body == b"" for call in bed.pods.calls)
        assert await bed.annotation(A) == ago(seconds=(LoopClock().now() - before).total_seconds())
        (patch,) = [one for one in bed.transport.asked if one.method != "GET"]
        assert patch.content_type == "application/strategic-merge-patch+json"
        assert patch.path == f"/apis/apps/v1/namespaces/{NS}/statefulsets/{A}"

    play(scene)


@BOTH_RECORDS
@pytest.mark.parametrize("replicas", [3, 4])
def test_what_is_no_downscale_is_allowed_without_a_call(tracker: bool, replicas: int) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        answer = await bed.prepare(A, replicas)
        assert (answer.allowed, answer.warnings, bed.pods.calls, bed.transport.asked) == (True, (), [], [])

    play(scene, tracker=tracker)


@BOTH_RECORDS
def test_a_dry_run_is_allowed_without_a_call(tracker: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones(ready=0)
        answer = await bed.prepare(A, 1, dry_run=True)
        assert (answer.allowed, message(answer), bed.pods.calls, bed.transport.asked) == (True, "", [], [])

    play(scene, tracker=tracker)


@pytest.mark.parametrize("dry_run", [False, None])
def test_no_word_about_a_dry_run_is_none(dry_run: bool | None) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 2, dry_run=dry_run)).allowed
        assert bed.pods.asked("POST") == [f"{A}-2"]

    play(scene)


def test_a_zone_without_the_label_is_not_prepared() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels={"grafana.com/prepare-downscale": None})
        assert (await bed.prepare(A, 0)).allowed
        assert bed.pods.calls == []

    play(scene)


@pytest.mark.parametrize(
    ("annotation", "service", "why"),
    [
        ("grafana.com/prepare-downscale-http-port", "s", "annotation is not set or empty."),
        ("grafana.com/prepare-downscale-http-path", "s", "annotation is not set or empty."),
        ("", "", "the serviceName is not set or empty."),
    ],
)
def test_a_zone_that_does_not_say_how_its_pods_are_told_is_denied(annotation: str, service: str, why: str) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, annotations={annotation: None} if annotation else {}, service=service)
        text = f"the {annotation} {why}" if annotation else why
        assert denied(await bed.prepare(A, 2)) == said(A, 3, 2) + NOT + text
        assert bed.pods.calls == []

    play(scene)


# Errors about the object itself are allowed


async def forbidden(_: Request) -> Response:
    return refused(403, "Forbidden", "you may not")


def test_if_the_object_behind_a_scale_cannot_be_read_the_change_is_allowed() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        bed.transport.fault = forbidden
        assert (await bed.prepare(A, 2, scale=True)).warnings == ("you may not, allowing the change",)

    play(scene)


def test_other_kinds_are_allowed_with_a_warning() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        request = await bed.request(A, 2)
        assert request.object is not None
        assert request.old_object is not None
        as_deployment = replace(
            request,
            object={**request.object, "kind": "Deployment"},
            old_object={**request.old_object, "kind": "Deployment"},
        )
        assert (await bed.ask(PATH, as_deployment)).warnings == (
            "unsupported type apps/v1, Kind=Deployment (go type *v1.Deployment), allowing the change",
        )
        scale = await bed.request(A, 2, scale=True)
        of_deployment = replace(scale, resource=ResourceName(resource="deployments"))
        assert (await bed.ask(PATH, of_deployment)).warnings == (
            "unsupported resource deployments, allowing the change",
        )
        assert bed.pods.calls == []

    play(scene)


# The other zones


def test_a_zone_waits_for_another_that_was_scaled_down_a_short_while_ago() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.zone(B, annotations={LAST: "2029-12-31T22:00:00Z"})
        assert denied(await bed.prepare(A, 2)) == (
            f"{said(A, 3, 2)}{NOT}statefulset {B} was downscaled at 2029-12-31 22:00:00 +0000 UTC"
            " and is labelled to wait 12h0m0s between zone downscales"
        )
        assert bed.pods.calls == []
        assert (await bed.prepare(B, 2)).allowed  # its own time does not hold it up

    play(scene)


def test_a_time_that_cannot_be_read_denies() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.zone(B, annotations={LAST: "yesterday"})
        assert denied(await bed.prepare(A, 2)) == said(A, 3, 2) + NOT + "parsing downscale annotations failed."

    play(scene)


@BOTH_RECORDS
@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"ready": 2}, "0 non-updated replicas and 1 non-ready replicas"),
        ({"status": {"updatedReplicas": 1}}, "2 non-updated replicas and 0 non-ready replicas"),
        ({"owned": False, "ready": 0}, "0 non-updated replicas and 3 non-ready replicas"),
    ],
)
def test_every_other_zone_has_to_be_updated_and_ready(tracker: bool, options: dict[str, Any], numbers: str) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=NO_WAIT)
        await bed.zone(B, labels=NO_WAIT)
        await bed.zone(C, labels=NO_WAIT, **options)
        assert denied(await bed.prepare(A, 2)) == f"{said(A, 3, 2)}{NOT}statefulset {C} has {numbers}"
        assert bed.pods.calls == []

    play(scene, tracker=tracker)


NO_WAIT = {"grafana.com/min-time-between-zones-downscale": None}


@BOTH_RECORDS
def test_pods_that_are_not_ready_in_the_zone_itself_do_not_matter(tracker: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=NO_WAIT, ready=0, status={"updatedReplicas": 0})
        await bed.zone(B, labels=NO_WAIT)
        assert (await bed.prepare(A, 2)).allowed

    play(scene, tracker=tracker)


def test_pods_without_an_owner_count_by_their_name() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.zone(B, owned=False)
        assert (await bed.prepare(A, 2)).allowed

    play(scene)


def test_a_zone_of_another_group_does_not_matter() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.zone("store", labels={"rollout-group": "store"}, ready=0)
        assert (await bed.prepare(A, 2)).allowed

    play(scene)


def test_a_zone_without_a_group_looks_at_no_other() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels={"rollout-group": None})
        await bed.zone(B, ready=0)
        assert (await bed.prepare(A, 2)).allowed
        assert [one.method for one in bed.transport.asked] == ["PATCH"]

    play(scene)


@pytest.mark.parametrize(
    ("plural", "why"),
    [
        ("statefulsets", "finding other statefulsets failed."),
        ("pods", "an error occurred while checking whether StatefulSets have non-updated replicas"),
    ],
)
@pytest.mark.parametrize("hangs", [False, True])
def test_what_cannot_be_listed_denies(plural: str, why: str, hangs: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.zone(B)

        async def fault(request: Request) -> Response | None:
            if not request.path.endswith(f"/{plural}"):
                return None
            if hangs:
                await asyncio.sleep(1000)
            return refused(403, "Forbidden")

        bed.transport.fault = fault
        started = asyncio.get_running_loop().time()
        assert denied(await bed.prepare(A, 2)) == said(A, 3, 2) + NOT + why
        assert asyncio.get_running_loop().time() - started < 9
        assert bed.pods.calls == []

    play(scene)


# Undoing


@pytest.mark.parametrize(
    "failure",
    [500, 404, 301, OutboundFailed("connection refused"), 30.0],
    ids=["500", "404", "a redirect", "nobody there", "hangs"],
)
@BOTH_RECORDS
def test_if_one_pod_fails_all_are_told_that_it_is_off(failure: Any, tracker: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 4, labels=NO_WAIT)
        bed.pods.answers[("POST", f"{A}-2")] = failure
        assert denied(await bed.prepare(A, 1)) == said(A, 4, 1) + NOT + POD_FAILED
        assert sorted(bed.pods.asked("DELETE")) == [f"{A}-1", f"{A}-2", f"{A}-3"]
        assert await bed.annotation(A) is None

    play(scene, tracker=tracker)


def test_the_first_failure_cancels_the_calls_that_have_not_begun() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 0)
        await bed.client.patch(SETS, A, MergePatch({"spec": {"replicas": 200}}), NS)
        bed.pods.answers[("POST", f"{A}-199")] = 500
        bed.pods.seconds = 1.0
        await bed.prepare(A, 0)
        assert bed.pods.most_at_once == 32
        assert len(bed.pods.asked("POST")) < 2 * 32  # those that ended at the same moment as the one that failed
        await bed.undone()
        assert len(bed.pods.asked("DELETE")) == 200

    play(scene)


def test_a_DELETE_that_fails_does_not_keep_the_others_from_being_sent() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 3)
        bed.pods.answers = {
            ("POST", f"{A}-0"): 500,
            ("DELETE", f"{A}-2"): 500,
            ("DELETE", f"{A}-1"): OutboundFailed(""),
        }
        assert denied(await bed.prepare(A, 0)).endswith(POD_FAILED)
        assert sorted(bed.pods.asked("DELETE")) == [f"{A}-0", f"{A}-1", f"{A}-2"]

    play(scene)


def test_pods_that_hang_are_told_in_time_of_its_own_and_the_answer_does_not_wait() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 0)
        await bed.client.patch(SETS, A, MergePatch({"spec": {"replicas": 100}}), NS)
        bed.pods.answers = {(method, f"{A}-{number}"): 60.0 for method in ("POST", "DELETE") for number in range(100)}
        started = asyncio.get_running_loop().time()
        assert denied(await bed.prepare(A, 0)).endswith(POD_FAILED)
        assert asyncio.get_running_loop().time() - started < 9
        await bed.undone()
        assert len(bed.pods.asked("DELETE")) == 100

    play(scene)


def test_while_it_is_being_undone_the_same_downscale_is_denied() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 2)
        bed.pods.answers = {("POST", f"{A}-1"): 500, ("DELETE", f"{A}-1"): 4.9, ("POST", f"{A}-0"): 6.0}
        first = asyncio.create_task(bed.prepare(A, 0))
        await asyncio.sleep(1)
        busy = f"{said(A, 2, 0)}{NOT}statefulset {A} is already in process of updating replicas"
        assert denied(await bed.prepare(A, 0)) == busy
        assert denied(await first).endswith(POD_FAILED)
        bed.pods.answers = {}
        assert (await bed.prepare(A, 0)).allowed

    play(scene)


@pytest.mark.parametrize("scale", [False, True])
def test_a_request_that_is_given_up_is_undone(scale: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 2)
        bed.pods.answers[("POST", f"{A}-0")] = 4.0
        asking = asyncio.create_task(bed.prepare(A, 0, scale=scale))
        await asyncio.sleep(1)
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        await bed.undone()
        assert sorted(bed.pods.asked("DELETE")) == [f"{A}-0", f"{A}-1"]
        assert await bed.annotation(A) is None

    play(scene)


async def no_patch(request: Request) -> Response | None:
    return refused(403, "Forbidden") if request.method == "PATCH" else None


def test_if_the_time_cannot_be_recorded_all_pods_are_told_that_it_is_off() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 3)
        bed.transport.fault = no_patch
        assert denied(await bed.prepare(A, 1)) == (
            said(A, 3, 1) + NOT + "adding an annotation to the statefulset failed."
        )
        assert sorted(bed.pods.asked("DELETE")) == [f"{A}-1", f"{A}-2"]

    play(scene)


@pytest.mark.parametrize("before", [None, "2020-01-01T00:00:00Z"])
def test_a_record_that_was_written_although_its_answer_was_lost_is_taken_back(before: str | None) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 3, annotations={LAST: before})
        lost: list[Request] = []

        async def lose_the_first_answer(request: Request) -> Response | None:
            if request.method != "PATCH" or lost:
                return None
            lost.append(request)
            body = MergePatch({"metadata": {"annotations": {LAST: ago()}}})
            await bed.client.patch(SETS, A, body, NS)
            raise ConnectionFailed("connection reset", sent=True)

        bed.transport.fault = lose_the_first_answer
        assert denied(await bed.prepare(A, 1)).endswith("adding an annotation to the statefulset failed.")
        await bed.undone()
        assert lost
        assert await bed.annotation(A) == before

    play(scene)


# Two at the same time


@BOTH_RECORDS
@pytest.mark.parametrize("labels", [{}, NO_WAIT], ids=["with a wait", "without"])
def test_of_two_zones_at_the_same_time_exactly_one_is_scaled_down(tracker: bool, labels: dict[str, str | None]) -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones(labels=labels)
        if tracker:
            await old_entries(bed)
        answers = await asyncio.gather(*(bed.prepare(name, 2) for name in (A, B, C)))
        assert sorted(one.allowed for one in answers) == [False, False, True]
        assert len(bed.pods.asked("POST")) == 1
        assert bed.pods.asked("DELETE") == []
        assert denied(answers[1]) == f"{said(B, 3, 2)}{NOT}statefulset {A} is already in process of updating replicas"

    play(scene, tracker=tracker)


async def old_entries(bed: Bed) -> None:
    """A zone tracker that holds up nobody."""
    data = dict.fromkeys((A, B, C), '{"lastDownscaled":"2020-01-01T00:00:00Z"}')
    await bed.client.create(MAPS, {"metadata": {"name": TRACKER}, "data": data}, NS)


def test_groups_do_not_hold_up_each_other() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.zone("store", labels={"rollout-group": "store"})
        answers = await asyncio.gather(bed.prepare(A, 2), bed.prepare("store", 2))
        assert [one.allowed for one in answers] == [True, True]

    play(scene)


def test_a_group_is_free_again_when_a_downscale_was_decided() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=NO_WAIT)
        await bed.zone(B, labels=NO_WAIT)
        assert (await bed.prepare(A, 2)).allowed
        assert (await bed.prepare(B, 2)).allowed

    play(scene)


def test_when_the_API_server_asks_again_the_time_stays_as_it_is() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 2)).allowed
        first = await bed.annotation(A)
        await asyncio.sleep(5)
        version = (await bed.client.get(SETS, A, NS))["metadata"]["resourceVersion"]
        assert (await bed.prepare(A, 2)).allowed
        assert await bed.annotation(A) == first
        assert (await bed.client.get(SETS, A, NS))["metadata"]["resourceVersion"] == version
        assert (await bed.prepare(A, 1)).allowed  # another downscale has another time
        assert await bed.annotation(A) != first

    play(scene)


def test_a_time_limit_around_the_rule_still_works_after_a_pod_has_failed() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 2)
        bed.pods.answers = {("POST", f"{A}-1"): 500, ("DELETE", f"{A}-1"): 4.0}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await bed.prepare(A, 1)

    play(scene)
