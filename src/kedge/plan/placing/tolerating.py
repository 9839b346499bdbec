"""Tolerating: which taint of a cluster keeps a placement off it."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.cluster import Taint
from kedge.api.scheduling import Toleration, TolerationOperator


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that nothing tolerates; None if there is none."""
    return next((taint for taint in taints if not any(tolerates(each, taint) for each in tolerations)), None)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration does not mind the taint. Without a key and with Exists it minds none.

    Effects are not compared: there is only one.
    """
    if toleration.operator is TolerationOperator.exists:
        return toleration.key in ("", taint.key)
    return (toleration.key, toleration.value) == (taint.key, taint.value)


def told(taint: Taint) -> str:
    """The taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
