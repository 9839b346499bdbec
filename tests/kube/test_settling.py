"""Settling: what stays for as long as the process does is not walked by the collector over and over."""

from __future__ import annotations

import gc

from kedge.kube.memory import freeze_heap


def test_what_has_settled_is_not_walked_again() -> None:
    kept = [[number] for number in range(1000)]
    frozen = gc.get_freeze_count()
    try:
        freeze_heap()
        assert gc.get_freeze_count() >= frozen + len(kept)
        assert gc.isenabled()
    finally:
        gc.unfreeze()
