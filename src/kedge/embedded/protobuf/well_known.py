"""Well-known types: messages that JSON writes in a form of their own: times, quantities, JSON within protobuf.

Each function takes the message as a dict of its fields, with bytes as they are, and gives the value that JSON has
there; None where JSON would have nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from kedge.api.openapi.builtin import named
from kedge.embedded.protobuf.wire import Malformed
from kedge.embedded.schema.builtin_decoding import decode_struct

Json: TypeAlias = Any
JsonForm: TypeAlias = Callable[[dict[str, Any]], Json]

_MACHINERY = "io.k8s.apimachinery.pkg"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def _time(message: dict[str, Any]) -> Json:
    # To the second: what is beyond is not read, as kube-apiserver does not.
    moment = _moment(message.get("seconds", 0), 0) if message else _ZERO_TIME
    return None if moment == _ZERO_TIME else _date(moment) + "Z"


def _micro_time(message: dict[str, Any]) -> Json:
    moment = _moment(message.get("seconds", 0), message.get("nanos", 0)) if message else _ZERO_TIME
    return None if moment == _ZERO_TIME else f"{_date(moment)}.{moment.microsecond:06}Z"


def _moment(seconds: int, nanos: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=int(nanos / 1000))
    except OverflowError:
        raise Malformed(f"a time {seconds} seconds after 1970 is beyond the year 9999, or before the year 1") from None


def _date(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def _quantity(message: dict[str, Any]) -> Json:
    return message.get("string") or "0"


def _int_or_string(message: dict[str, Any]) -> Json:
    return message.get("strVal", "") if message.get("type") else message.get("intVal", 0)


def _raw(name: str) -> JsonForm:
    def parsed(message: dict[str, Any]) -> Json:
        text = message.get(name)
        try:
            return msgspec.json.decode(text) if text else None
        except (ValueError, RecursionError) as error:
            raise Malformed(f"JSON within the message: {error}") from None

    return parsed


def _schema_or_list(message: dict[str, Any]) -> Json:
    schemas = [_schema(one) for one in message.get("jSONSchemas", ())]
    return schemas or _schema(message.get("schema"))


def _schema_or_bool(message: dict[str, Any]) -> Json:
    return _schema(message["schema"]) if "schema" in message else bool(message.get("allows"))


def _schema_or_names(message: dict[str, Any]) -> Json:
    return message.get("property") or _schema(message.get("schema"))


def _schema(message: dict[str, Any] | None) -> Json:
    """A schema without the nothings in it: here, where it is one of several forms, reading does not look into it."""
    return None if message is None else decode_struct(named(f"{_EXTENSIONS}.JSONSchemaProps"), message).obj


def _items(message: dict[str, Any]) -> Json:
    return message.get("items", [])


WELL_KNOWN: Mapping[str, JsonForm] = {
    f"{_EXTENSIONS}.JSON": _raw("raw"),
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_list,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_names,
    f"{_MACHINERY}.api.resource.Quantity": _quantity,
    f"{_MACHINERY}.apis.meta.v1.FieldsV1": _raw("Raw"),
    f"{_MACHINERY}.apis.meta.v1.MicroTime": _micro_time,
    f"{_MACHINERY}.apis.meta.v1.Time": _time,
    f"{_MACHINERY}.runtime.RawExtension": _raw("raw"),
    f"{_MACHINERY}.util.intstr.IntOrString": _int_or_string,
    "io.k8s.api.authentication.v1.ExtraValue": _items,
    "io.k8s.api.authorization.v1.ExtraValue": _items,
    "io.k8s.api.certificates.v1.ExtraValue": _items,
}
