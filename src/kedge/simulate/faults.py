"""Faults: what may go wrong on a link, how often, and what a roll of the dice decides for one request.

Every fault is one that a client of a real API server has to live with. None lies: an error answer that promises the
request was not carried out (401, 403, 409, 422, 429, 503) tells the truth, a lost answer is lost whether or not it was,
and only reads that the API allows to be old are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kedge.kube.limits import SAFE
from kedge.kube.transport import JSON, Request, Response

Between: TypeAlias = tuple[float, float]  # so many seconds and so many, evenly spread


class Faults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often what goes wrong: shares of all requests, watches or lines, between 0 and 1."""

    # Of requests, at most one each
    refused: float = 0.0  # no connection: not sent
    lost_request: float = 0.0  # never arrives, but may have, for all one knows
    lost_response: float = 0.0  # carried out, and the answer is lost
    late: float = 0.0  # given up by the client, and carried out afterwards
    slow: float = 0.0
    too_many: float = 0.0  # 429, with Retry-After
    server_error: float = 0.0  # 500: carried out, or not
    unavailable: float = 0.0  # 503, with Retry-After
    conflict: float = 0.0  # 409 to a change of an object that somebody else changed at the same moment
    unauthorized: float = 0.0  # 401: as while credentials are renewed
    forbidden: float = 0.0  # 403: as while a Role is changed
    denied: float = 0.0  # 422 to a write: by a policy of admission
    stale: float = 0.0  # of reads that may be: an earlier state
    # Of watches, at most one each
    gone: float = 0.0  # 410: the server does not remember that far
    dropped: float = 0.0  # the connection breaks
    ended: float = 0.0  # ends early, in good order
    silent: float = 0.0  # says nothing more, and stays open
    # Of watch lines
    lagging: float = 0.0  # comes late, and all behind it
    # Of hours
    partitions: float = 0.0  # so many each hour: nothing gets through
    clock_jumps: float = 0.0  # so many each hour, of the clock of a process

    slow_seconds: Between = (0.01, 10.0)
    late_seconds: Between = (0.0, 60.0)
    lag_seconds: Between = (0.05, 10.0)
    watch_seconds: Between = (0.0, 300.0)  # how long a watch goes well before its trouble begins
    partition_seconds: Between = (1.0, 120.0)
    clock_seconds: float = 3600.0  # how far off a clock may be, either way
    stale_versions: int = 20  # an old read is at most so many writes old

    def __post_init__(self) -> None:
        for name in (*_OF_REQUESTS, *_OF_WATCHES, "stale", "lagging"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}: it is a share, between 0 and 1")
        for names in (_OF_REQUESTS, _OF_WATCHES):
            if sum(getattr(self, name) for name in names) > 1.0 + 1e-9:
                raise ValueError(f"{', '.join(names)} are more than 1 in all: each happens instead of the others")

    def for_request(self, request: Request, rng: Random) -> str:
        """What goes wrong with this request; empty if nothing does."""
        fault = _drawn(self, _OF_REQUESTS, rng)
        if fault == "conflict" and not changes_an_object(request):
            return ""
        return "" if fault == "denied" and not writes(request) else fault

    def for_watch(self, rng: Random) -> str:
        """What goes wrong with a watch once it is open."""
        return _drawn(self, _OF_WATCHES, rng)


_OF_REQUESTS = (
    *("refused", "lost_request", "lost_response", "late", "slow"),
    *("too_many", "server_error", "unavailable", "conflict"),
    *("unauthorized", "forbidden", "denied"),
)
_OF_WATCHES = ("gone", "dropped", "ended", "silent")

NONE = Faults()
SOME = Faults(
    refused=0.01,
    lost_request=0.01,
    lost_response=0.01,
    late=0.01,
    slow=0.02,
    too_many=0.01,
    server_error=0.01,
    unavailable=0.01,
    conflict=0.01,
    unauthorized=0.005,
    forbidden=0.005,
    denied=0.005,
    stale=0.2,
    gone=0.02,
    dropped=0.1,
    ended=0.1,
    silent=0.05,
    lagging=0.05,
    partitions=0.5,
    clock_jumps=0.5,
)
ROUGH = Faults(
    refused=0.04,
    lost_request=0.04,
    lost_response=0.04,
    late=0.04,
    slow=0.1,
    too_many=0.04,
    server_error=0.04,
    unavailable=0.04,
    conflict=0.04,
    unauthorized=0.02,
    forbidden=0.02,
    denied=0.02,
    stale=0.5,
    gone=0.1,
    dropped=0.2,
    ended=0.2,
    silent=0.2,
    lagging=0.3,
    partitions=6.0,
    clock_jumps=6.0,
)
NAMED: Mapping[str, Faults] = {"none": NONE, "some": SOME, "rough": ROUGH}


def parse_faults(text: str) -> Faults:
    """Faults as a command line says them: a name, changes to it, or both: `some,lagging=0.5,slow_seconds=1..9`."""
    parts = text.split(",")
    start = parts[0] if "=" not in parts[0] else "none"
    if start not in NAMED:
        raise ValueError(f"there are no faults called {start}: there are {', '.join(NAMED)}, and NAME=SHARE")
    changed = {name: _value(value) for name, _, value in (part.partition("=") for part in parts if "=" in part)}
    return msgspec.convert({**msgspec.structs.asdict(NAMED[start]), **changed}, Faults)


def format_faults(faults: Faults) -> str:
    """The same, the other way round."""
    for name, known in NAMED.items():
        if faults == known:
            return name
    plain = msgspec.structs.asdict(NONE)
    changed = {name: value for name, value in msgspec.structs.asdict(faults).items() if value != plain[name]}
    return ",".join(f"{name}={_text(value)}" for name, value in changed.items())


def _value(text: str) -> Any:
    if ".." in text:
        return tuple(map(float, text.split("..")))
    return int(text) if text.isdigit() else float(text)


def _text(value: Any) -> str:
    return f"{value[0]!r}..{value[1]!r}" if isinstance(value, tuple) else repr(value)


def changes_an_object(request: Request) -> bool:
    return request.method in ("PUT", "PATCH") or (request.method == "DELETE" and bool(request.body))


def writes(request: Request) -> bool:
    return request.method not in SAFE


def answer(fault: str, request: Request) -> Response | None:
    """What the server says of this fault, if it says anything."""
    match fault:
        case "too_many":
            return _status(429, "TooManyRequests", "too many requests, please try again later", after=1)
        case "server_error":
            return _status(500, "InternalError", "Internal error occurred: etcdserver: request timed out")
        case "unavailable":
            return _status(503, "ServiceUnavailable", "the server is currently unable to handle the request", after=1)
        case "conflict":
            name = request.path.rpartition("/")[2]
            why = "the object has been modified; please apply your changes to the latest version and try again"
            return _status(409, "Conflict", f'Operation cannot be fulfilled on "{name}": {why}')
        case "unauthorized":
            return _status(401, "Unauthorized", "Unauthorized")
        case "forbidden":
            return _status(403, "Forbidden", f"{request.path} is forbidden: the Role does not allow {request.method}")
        case "denied":
            why = "ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: nothing is changed now"
            return _status(422, "Invalid", f'"{request.path.rpartition("/")[2]}" is forbidden: {why}')
    return None


def gone() -> bytes:
    """The line of a watch that began too long ago."""
    body = _status(410, "Expired", "too old resource version").body
    return b'{"type":"ERROR","object":' + body + b"}"


def _drawn(faults: Faults, names: tuple[str, ...], rng: Random) -> str:
    left = rng.random()
    for name in names:
        left -= getattr(faults, name)
        if left < 0.0:
            return name
    return ""


def _status(code: int, reason: str, message: str, *, after: int = 0) -> Response:
    details = {"details": {"retryAfterSeconds": after}} if after else {}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body = {**status, "message": message, "reason": reason, **details, "code": code}
    headers = {"content-type": JSON} | ({"retry-after": str(after)} if after else {})
    return Response(code, msgspec.json.encode(body), headers)


# Counts of faults. A count has a name of several words, here ("fault", link, fault, request):
# ("fault", "hub → hub", "lost_response", "PATCH works/status").

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
