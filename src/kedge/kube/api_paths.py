"""API paths: what a path of an API server is about, without the names in it. For labels of metrics and rate limits.

    resource_of("/apis/apps/v1/namespaces/prod/statefulsets/web")    # apps/v1/statefulsets object
    group_of("/api/v1/nodes")                                        # core

Paths that are of no resource stay as they are.
"""

from __future__ import annotations

import re
from typing import Final

CORE: Final = "core"
_RESOURCE: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
    # A namespace is an object itself, and these two are its subresources.
    r"(?:/namespaces/[^/]+(?=/(?!(?:status|finalize)$)))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)


def resource_of(path: str) -> str:
    """The resource of a path, and whether it is about one object, all of them, or a subresource."""
    found = _RESOURCE.fullmatch(path)
    if found is None:
        return path
    resource = f"{found['group'] or CORE}/{found['version']}/{found['plural']}"
    if found["name"] is None:
        return f"{resource} collection"
    return f"{resource} object" + (f" {found['subresource']} subresource" if found["subresource"] else "")


def group_of(path: str) -> str:
    """The API group of a path; of others, the first part of the path."""
    first, _, rest = path.lstrip("/").partition("/")
    if first == "api":
        return CORE
    if first == "apis":
        return rest.partition("/")[0] or first
    return f"/{first}"
