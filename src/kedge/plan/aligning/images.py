"""Images: the parts of an image's name, and what becomes of it when an override changes one of them.

An image has a registry if the first part of its name looks like a host. Its version is a tag, a digest, or both: to
change that is to have the new one instead of both. A new version that is neither a tag nor a digest leaves the image as
it is, as with Karmada.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.karmada.overrides import ImageOverrider, OverrideOperator

_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST: Final = re.compile(r"sha(256|384|512):[a-f0-9]+")


class _Image(Struct, frozen=True):
    registry: str
    repository: str
    tag: str
    digest: str

    def text(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        tag, digest = f":{self.tag}" if self.tag else "", f"@{self.digest}" if self.digest else ""
        return f"{name}{tag}{digest}"


def overridden_image(image: str, change: ImageOverrider) -> str:
    """An image with one of its parts changed: added to, replaced or taken away."""
    given = _parsed(image)
    match change.component:
        case "Registry":
            return replace(given, registry=_changed(given.registry, change)).text()
        case "Repository":
            return replace(given, repository=_changed(given.repository, change)).text()
        case _:
            return _with_version(given, _changed(given.tag or given.digest, change), change.operator).text()


def _with_version(image: _Image, version: str, operator: OverrideOperator) -> _Image:
    if operator is OverrideOperator.remove:
        return replace(image, tag="", digest="")
    if _TAG.fullmatch(version):
        return replace(image, tag=version, digest="")
    return replace(image, tag="", digest=version) if _DIGEST.fullmatch(version) else image


def _changed(part: str, change: ImageOverrider) -> str:
    match change.operator:
        case OverrideOperator.add:
            return part + change.value
        case OverrideOperator.set:
            return change.value
        case OverrideOperator.remove:
            return ""


def _parsed(image: str) -> _Image:
    name, _, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    is_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if is_registry else ("", name)
    repository, _, tag = path.partition(":")
    return _Image(registry, repository, tag, digest)
