"""Folders: where a control plane keeps its data, gone when it is.

Promises a folder only its owner can read, and that what a killed process left behind is removed by the next one
that asks for a folder.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "kedge-controlplane-"
_LOCK = ".alive"
_TOO_YOUNG = 60.0  # seconds in which a folder may not have its lock yet


class Folder:
    """A temporary folder, locked for as long as this process uses it."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    try:
        if time.time() - folder.stat().st_mtime < _TOO_YOUNG:
            return False
        with (folder / _LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, it is somebody else's, or it has just gone
        return False
    return True
