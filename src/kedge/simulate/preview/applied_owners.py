"""Applied owners: whose fields are whose once kubectl applies an object on the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

KUBECTL: Final = "kubectl"
_CLIENT_SIDE: Final = "kubectl-client-side-apply"


def as_applied(owners: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What kubectl wrote before it applied on the server is its own then, as kubectl itself has it."""
    if any((one.get("manager"), one.get("operation")) == (KUBECTL, "Apply") for one in owners):
        return list(owners)
    return [
        {**one, "manager": KUBECTL, "operation": "Apply"} if one.get("manager") == _CLIENT_SIDE else one
        for one in owners
    ]
