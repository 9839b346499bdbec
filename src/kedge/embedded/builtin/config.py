"""Config: defaults and validation of ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator

import msgspec

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import struct
from kedge.embedded.causes import IMMUTABLE, forbidden, invalid_value, invalid_values, required_value, too_long
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause


def _encoded(secret: Untyped) -> Untyped:
    """`stringData` is encoded and overrides `data`."""
    if "stringData" not in secret:
        return secret
    written = {key: b64encode(text.encode()).decode() for key, text in secret["stringData"].items()}
    rest = {key: value for key, value in secret.items() if key != "stringData"}
    return {**rest, "data": {**secret.get("data", {}), **written}} if written else rest


default_secret = struct({"type": "Opaque"}, then=_encoded)


_SIZE_LIMIT = 1 << 20
_FROZEN = "field is immutable when `immutable` is set"
_NEEDS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
_ACCOUNT = "kubernetes.io/service-account.name"


def config_map_problems(config_map: Untyped) -> Iterator[Cause]:
    """What is wrong with a ConfigMap: its keys, and its size."""
    data, binary = config_map.get("data", {}), config_map.get("binaryData", {})
    size = sum(len(text.encode()) for text in data.values()) + sum(map(_decoded_size, binary.values()))
    for key in data:
        yield from invalid_values(f"data[{key}]", key, checks.config_key_problems(key))
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from invalid_values(f"binaryData[{key}]", key, checks.config_key_problems(key))
    if size > _SIZE_LIMIT:
        yield too_long("[]", _SIZE_LIMIT)  # Kubernetes means the whole object


def secret_problems(secret: Untyped) -> Iterator[Cause]:
    """What is wrong with a Secret: its keys, its size, and what its type needs."""
    data = secret.get("data", {})
    for key in data:
        yield from invalid_values(f"data[{key}]", key, checks.config_key_problems(key))
    if sum(map(_decoded_size, data.values())) > _SIZE_LIMIT:
        yield too_long("data", _SIZE_LIMIT)
    for key in _NEEDS.get(secret["type"], ()):
        if key not in data or (secret["type"].endswith("ssh-auth") and not data[key]):
            yield required_value(f"data[{key}]")
        elif secret["type"] in _JSON and (why := _json_problem(data[key])):
            yield invalid_value(f"data[{key}]", "<secret contents redacted>", why)
    if secret["type"] == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required_value("data[username]")
        yield required_value("data[password]")
    account = secret["metadata"].get("annotations", {}).get(_ACCOUNT)
    if secret["type"] == "kubernetes.io/service-account-token" and not account:
        yield required_value(f"metadata.annotations[{_ACCOUNT}]")


def secret_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """The type of a Secret cannot be changed, nor anything of an immutable one."""
    if old["type"] != new["type"]:
        yield invalid_value("type", new["type"], IMMUTABLE)
    yield from _frozen(old, new, "data")


def config_map_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    yield from _frozen(old, new, "data", "binaryData")


def _frozen(old: Untyped, new: Untyped, *parts: str) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for part in parts:
        if old.get(part, {}) != new.get(part, {}):
            yield forbidden(part, _FROZEN)


def _decoded_size(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=", -2)


def _json_problem(encoded: str) -> str:
    """What is wrong with JSON in a Secret. Kubernetes' words for truncated JSON; ours otherwise."""
    text = b64decode(encoded)
    try:
        return "" if isinstance(msgspec.json.decode(text), dict) else "it is no JSON object"
    except msgspec.DecodeError as error:
        return "unexpected end of JSON input" if "truncated" in str(error) else str(error)
