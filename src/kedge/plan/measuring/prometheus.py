"""Prometheus: what an answer of its query API says.

An instant vector or a scalar is a measurement. Everything else is none, and says why: errors, other types, answers
that came with warnings, which say that something is missing from them.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from kedge.plan.measuring.measurement import Measured, Measurement, NotMeasured
from kedge.plan.text import cut

QUERY_PATH: Final = "api/v1/query"
_LONGEST: Final = 200
_NOT_ITS: Final = "its answer is not one of Prometheus"


class _Data(Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(Struct, frozen=True, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()


class _Series(Struct, frozen=True):
    value: tuple[float, str] | None = None
    """None of a histogram."""


_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_ANSWER: Final = msgspec.json.Decoder(_Answer)
_VECTOR: Final = msgspec.json.Decoder(tuple[_Series, ...])
_SCALAR: Final = msgspec.json.Decoder(tuple[float, str])


def read_answer(status: int, body: bytes) -> Measurement:
    """What an answer with this HTTP status says."""
    if 300 <= status < 400:
        return NotMeasured(f"answered with {status}: redirects are not followed")
    try:
        answer = _ANSWER.decode(body)
    except _UNREADABLE:
        return NotMeasured(_NOT_ITS if status == 200 else f"answered with {status}")
    if status != 200 or answer.status != "success":
        said = ": ".join(part for part in (answer.error_type, answer.error) if part)
        return NotMeasured(cut(f"answered with {status}: {said or answer.status}", _LONGEST))
    if answer.warnings:
        return NotMeasured(cut(f"it warned: {answer.warnings[0]}", _LONGEST))
    try:
        return _read(answer.data)
    except _UNREADABLE:
        return NotMeasured(_NOT_ITS)


def _read(data: _Data | None) -> Measurement:
    kind = "" if data is None else data.result_type
    if data is not None and kind == "vector":
        return Measured(tuple(_text(series) for series in _VECTOR.decode(data.result)))
    if data is not None and kind == "scalar":
        return Measured((_SCALAR.decode(data.result)[1],))
    return NotMeasured(f"the query gives a {cut(kind, 20)}: it has to give one number" if kind else _NOT_ITS)


def _text(series: _Series) -> str:
    return "a histogram" if series.value is None else series.value[1]
