"""Reviews with something wrong in every place: each is answered or refused, none breaks a rule."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from admission.zones_bed import A, Bed, play
from kedge.admission import no_downscale, prepare_downscale
from kedge.admission.review import BadReview, decode, encode
from kedge.kube.codec import Untyped

Place = tuple[str | int, ...]
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "\x00",
    "a/b?c#d",
    "é" * 3000,
    [],
    [1],
    {},
    {"a": {"b": 1}},
)


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a document."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*at, index))


def spoiled(document: Untyped, at: Place, value: Any) -> Any:
    made: Any = copy.deepcopy(document)
    inner = made
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = value
    return made


@pytest.mark.parametrize("path", [no_downscale.PATH, prepare_downscale.PATH])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("tracker", [False, True])
def test_whatever_is_wrong_in_a_review_it_is_answered_or_refused(path: str, scale: bool, tracker: bool) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, 2, labels={"grafana.com/no-downscale": "true"})
        bed.pods.seconds = 0.0
        request = msgspec.to_builtins(await bed.request(A, 1, scale=scale, dry_run=False))
        for name in ("object", "oldObject"):
            request[name]["metadata"].pop("managedFields", None)
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        for at in places(review):
            for value in WRONG:
                body = msgspec.json.encode(spoiled(review, at, value))
                try:
                    question = decode("application/json", body)
                except BadReview:
                    continue
                answer = await bed.ask(path, question.request)
                assert msgspec.json.decode(encode(question, answer))["response"]["uid"] == question.request.uid

    play(scene, tracker=tracker)
