"""Images: what the name of one says about its version."""

from __future__ import annotations

import re
from functools import lru_cache

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[A-Za-z][\w+.-]*:[0-9a-fA-F]{{32,}})?"
)


def tag_of(image: str) -> str:
    """The tag; `latest` where an image names neither tag nor digest, empty where it names a digest alone or is none."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


@lru_cache(4096)
def pull_policy(image: str) -> str:
    """When to fetch an image that does not say: what may move is fetched always."""
    return "Always" if tag_of(image) == "latest" else "IfNotPresent"
