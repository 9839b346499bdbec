"""What answers of Prometheus say."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.measuring.measurement import Measured, Measurement, NotMeasured
from kedge.plan.measuring.prometheus import read_answer

ODD = NotMeasured("its answer is not one of Prometheus")


def success(kind: str, result: object, **more: object) -> dict[str, object]:
    return {"status": "success", "data": {"resultType": kind, "result": result}, **more}


@pytest.mark.parametrize(
    ("answer", "measurement"),
    [
        (success("scalar", [1709294400.1, "0.5"]), Measured(("0.5",))),
        (success("vector", [{"metric": {"a": "b"}, "value": [1709294400, "NaN"]}]), Measured(("NaN",))),
        (success("vector", []), Measured(())),
        (success("vector", [{"value": [1, "1"]}, {"value": [1, "2"]}]), Measured(("1", "2"))),
        (success("vector", [{"metric": {}, "histogram": [1, {"count": "3"}]}]), Measured(("a histogram",))),
        (success("scalar", [1, "1"], infos=["fine"]), Measured(("1",))),
        (success("scalar", [1, "1"], warnings=["a store is away"]), NotMeasured("it warned: a store is away")),
        (success("matrix", []), NotMeasured("the query gives a matrix: it has to give one number")),
        (success("string", [1, "x"]), NotMeasured("the query gives a string: it has to give one number")),
        (success("", []), ODD),
        (success("vector", {}), ODD),
        (success("vector", [{"value": [1, 2]}]), ODD),
        (success("scalar", [1]), ODD),
        (success("scalar", [1, 1]), ODD),
        ({"status": "success"}, ODD),
        ({"status": "error", "errorType": "timeout", "error": "late"}, NotMeasured("answered with 200: timeout: late")),
        ({"status": "strange"}, NotMeasured("answered with 200: strange")),
        ({}, ODD),
        ([], ODD),
        ("x", ODD),
    ],
)
def test_an_answer_is_a_measurement_or_says_why_not(answer: object, measurement: Measurement) -> None:
    assert read_answer(200, msgspec.json.encode(answer)) == measurement


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', ": bad_data: parse error"),
        (503, b'{"status":"error","error":"starting"}', ": starting"),
        (500, msgspec.json.encode(success("scalar", [1, "1"])), ": success"),
        (204, b"", ""),
        (401, b"<html>secret</html>", ""),
        (302, b"", ": redirects are not followed"),
        (300, b"", ": redirects are not followed"),
        (399, b"", ": redirects are not followed"),
    ],
)
def test_other_statuses_are_no_measurement(status: int, body: bytes, said: str) -> None:
    assert read_answer(status, body) == NotMeasured(f"answered with {status}{said}")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"status":"\xff"}', b"[" * 5000, b'{"x":' + b"[" * 99999])
def test_what_cannot_be_read_is_no_measurement(body: bytes) -> None:
    assert read_answer(200, body) == ODD


@pytest.mark.parametrize("more", [{"error": "x" * 999}, {"status": "success", "warnings": ["x" * 999]}])
def test_reasons_are_cut(more: dict[str, object]) -> None:
    found = read_answer(200, msgspec.json.encode({"status": "error", **more}))
    assert isinstance(found, NotMeasured)
    assert len(found.reason) == 200


@given(st.binary(max_size=60), st.sampled_from([200, 400, 500]))
def test_no_bytes_break_it(body: bytes, status: int) -> None:
    assert isinstance(read_answer(status, body), NotMeasured)
