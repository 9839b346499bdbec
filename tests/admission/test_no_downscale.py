"""The rule that forbids downscales, against an embedded server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from admission.zones_bed import NS, A, Bed, denied, play, said
from kedge.admission.no_downscale import PATH
from kedge.api.admission import AdmissionRequest, ResourceName
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.scripted import refused

LOCKED = {"grafana.com/no-downscale": "true"}
WHY = "not allowed because it has the label 'grafana.com/no-downscale=true'"


@pytest.mark.parametrize("scale", [False, True])
def test_a_labelled_zone_is_not_scaled_down(scale: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=LOCKED)
        assert denied(await bed.forbid(A, 2, scale=scale)) == said(A, 3, 2) + WHY
        for replicas in (3, 4):
            assert (await bed.forbid(A, replicas, scale=scale)).allowed

    play(scene)


@pytest.mark.parametrize("scale", [False, True])
def test_others_are(scale: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        answer = await bed.forbid(A, 0, scale=scale)
        assert answer.allowed
        assert answer.warnings == ()

    play(scene)


def test_a_dry_run_is_denied_too() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=LOCKED)
        assert denied(await bed.forbid(A, 2, dry_run=True)).endswith(WHY)

    play(scene)


def test_the_label_cannot_be_removed_in_the_same_write() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=LOCKED)
        request = await bed.request(A, 2)
        assert request.object is not None
        new = {**request.object, "metadata": {**request.object["metadata"], "labels": {}}}
        assert denied(await bed.ask(PATH, replace(request, object=new))).endswith(WHY)

    play(scene)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("names", [{"name": ""}, {"namespace": ""}, {"name": "", "namespace": ""}])
def test_the_label_counts_also_if_the_request_names_no_object(names: dict[str, str], scale: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=LOCKED)
        request = replace(await bed.request(A, 2, scale=scale), **names)
        assert denied(await bed.ask(PATH, request)) == said(A, 3, 2) + WHY

    play(scene)


async def nameless(bed: Bed, *, scale: bool) -> AdmissionRequest:
    """A downscale of something that neither the request nor its objects name."""
    request = await bed.request(A, 2, scale=scale)
    old, new = ({**one, "metadata": {"labels": LOCKED}} for one in (request.old_object, request.object))
    return replace(request, name="", namespace="", object=new, old_object=old)


def test_an_object_that_nobody_names_is_decided_on_by_its_label() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert denied(await bed.ask(PATH, await nameless(bed, scale=False))).endswith(WHY)

    play(scene)


def test_the_scale_of_what_nobody_names_is_allowed_with_a_warning() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        answer = await bed.ask(PATH, await nameless(bed, scale=True))
        why = "the request did not include both a namespace and a name"
        assert answer.allowed
        assert answer.warnings == (f"can't get statefulsets/ in namespace , allowing the change: {why}",)

    play(scene)


def test_an_object_itself_needs_no_request() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=LOCKED)
        await bed.forbid(A, 2)
        assert bed.transport.asked == []
        await bed.forbid(A, 2, scale=True)
        assert [one.path for one in bed.transport.asked] == [f"/apis/apps/v1/namespaces/{NS}/statefulsets/{A}"]

    play(scene)


async def forbidden(_: Request) -> Response:
    return refused(403, "Forbidden", 'statefulsets.apps "ingester-zone-a" is forbidden')


async def gone(_: Request) -> Response:
    return refused(404, "NotFound", 'statefulsets.apps "ingester-zone-a" not found')


async def cut(_: Request) -> Response:
    raise ConnectionFailed("connection refused", sent=False)


async def hangs(_: Request) -> Response:
    await asyncio.sleep(1000)
    raise AssertionError


@pytest.mark.parametrize(
    ("fault", "said_by_server"),
    [
        (forbidden, 'statefulsets.apps "ingester-zone-a" is forbidden'),
        (gone, 'statefulsets.apps "ingester-zone-a" not found'),
        (cut, "no answer: connection refused"),
        (hangs, "the API server did not answer in time"),
    ],
)
def test_if_the_object_behind_a_scale_cannot_be_read_the_change_is_allowed(fault: Any, said_by_server: str) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels=LOCKED)
        bed.transport.fault = fault
        started = asyncio.get_running_loop().time()
        answer = await bed.forbid(A, 2, scale=True)
        assert answer.allowed
        (warning,) = answer.warnings
        assert warning.startswith(f"can't get statefulsets/{A} in namespace {NS}, allowing the change: ")
        assert warning.endswith(said_by_server)
        assert asyncio.get_running_loop().time() - started < 9

    play(scene)


@pytest.mark.parametrize("resource", ["deployments", "replicasets"])
def test_the_scale_of_another_kind_is_looked_up_by_its_resource(resource: str) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        request = replace(await bed.request(A, 2, scale=True), resource=ResourceName(resource=resource))
        answer = await bed.ask(PATH, request)
        assert answer.allowed
        assert f'{resource}.apps "{A}" not found' in answer.warnings[0]

    play(scene)


def test_the_scale_of_an_unknown_kind_is_allowed() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        request = replace(await bed.request(A, 2, scale=True), resource=ResourceName(resource="things"))
        answer = await bed.ask(PATH, request)
        assert answer.warnings == (
            f"can't get things/{A} in namespace {NS}, allowing the change: unsupported resource things",
        )

    play(scene)
