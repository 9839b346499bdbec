"""Fault counts: how often things happened in many runs; above all, which faults hit which writes of which process.

    print(fault_table(counts))        # rows: who writes what; columns: faults

A count has a name of several words. Those of faults are ("fault", link, fault, request): `("fault", "hub → hub",
"lost_response", "PATCH works/status")`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from kedge.kube.limits import SAFE
from kedge.kube.transport import Request

Counts: TypeAlias = Counter[tuple[str, ...]]

_BEFORE_KIND = re.compile(r"/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+(?=/))?/")


def request_kind(request: Request) -> str:
    """The method and kind of a request, with the subresource, but without names."""
    path = _BEFORE_KIND.sub("", request.path, count=1)
    if path == request.path:
        return f"{request.method} {path}"
    kind, *rest = path.split("/")
    part = f"/{rest[1]}" if len(rest) > 1 else ""
    is_watch = ("watch", "true") in request.query
    return f"{'WATCH' if is_watch else request.method} {kind}{part}"


def fault_table(counts: Mapping[tuple[str, ...], int]) -> str:
    """Which faults hit which writes, as text: a row for each write of each role, a column for each fault."""
    hits = _writes(counts)
    faults = sorted({fault for _, fault in hits})
    rows = sorted({row for row, _ in hits})
    widest = max(map(len, rows), default=0)
    head = " " * widest + "".join(f" {fault:>13}" for fault in faults)
    lines = [f"{row:<{widest}}" + "".join(f" {hits[row, fault] or '·':>13}" for fault in faults) for row in rows]
    return "\n".join([head, *lines])


def _writes(counts: Mapping[tuple[str, ...], int]) -> Counter[tuple[str, str]]:
    """The faults that hit writes, by role and write, and by fault."""
    found: Counter[tuple[str, str]] = Counter()
    for name, number in counts.items():
        if name[0] == "fault" and name[3].partition(" ")[0] not in (*SAFE, "WATCH"):
            found[f"{link_role(name[1])}: {name[3]}", name[2]] += number
    return found


def link_role(link: str) -> str:
    """The role of a link: its name without numbers, such as `cluster → hub`."""
    return re.sub(r"-\d+", "", link)
