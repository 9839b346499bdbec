"""Objects: an object sent in protobuf, as the dict that its JSON would be.

    decode_content(open_envelope(body))       # {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": ...}

An envelope names the kind; within is the message of that kind. Empty members are there wherever Go writes them, which
is more often than in JSON; schema decoding drops them. Knows the built-in kinds; refuses others, and invalid messages,
with `Malformed`.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.api.openapi.builtin import schema_of
from kedge.embedded.protobuf.messages import ENVELOPE, MESSAGES, read_message
from kedge.embedded.protobuf.wire import Malformed
from kedge.kube.codec import Untyped

__all__ = ["Envelope", "Malformed", "decode_content", "decode_delete_options", "open_envelope"]


_MAGIC = b"k8s\x00"
_IDENTITIES = "x-kubernetes-group-version-kind"
_OPTIONS_MESSAGE = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_DELETE_OPTIONS = "DeleteOptions"  # of every group there is


class Envelope(Struct, frozen=True):
    """What an object says it is, and the object, still as bytes."""

    api_version: str = ""
    kind: str = ""
    raw: bytes = b""

    def or_else(self, api_version: str, kind: str) -> Envelope:
        """The same, taken for some kind where it does not say."""
        return Envelope(self.api_version or api_version, self.kind or kind, self.raw)


def decode_delete_options(body: bytes) -> Untyped:
    """The DeleteOptions in a body, of whatever group."""
    envelope = open_envelope(body).or_else("v1", _DELETE_OPTIONS)
    if envelope.kind != _DELETE_OPTIONS:
        raise _unknown(envelope)
    return decode_content(envelope)


def open_envelope(body: bytes) -> Envelope:
    """The envelope that a body is."""
    if not body:
        raise Malformed("empty data")
    if not body.startswith(_MAGIC):
        prefix = " ".join(map(str, _MAGIC))
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    found = read_message(ENVELOPE, body[len(_MAGIC) :])
    return Envelope(found.get("apiVersion", ""), found.get("kind", ""), found.get("raw", b""))


def decode_content(envelope: Envelope) -> Untyped:
    """The object in an envelope."""
    said = {"apiVersion": envelope.api_version, "kind": envelope.kind}
    return {**said, **read_message(_message(envelope), envelope.raw)}


def _message(envelope: Envelope) -> str:
    if envelope.kind == _DELETE_OPTIONS:
        return _OPTIONS_MESSAGE
    group, _, version = envelope.api_version.rpartition("/")
    identity = {"group": group, "version": version, "kind": envelope.kind}
    try:
        schema = schema_of(**identity)
    except LookupError:
        raise _unknown(envelope) from None
    # Schemas go by the first word of a group, which a custom kind's may share.
    if schema.name not in MESSAGES or identity not in schema.raw.get(_IDENTITIES, ()):
        raise _unknown(envelope)
    return schema.name


def _unknown(envelope: Envelope) -> Malformed:
    return Malformed(f'no kind "{envelope.kind}" is registered for version "{envelope.api_version}"')
