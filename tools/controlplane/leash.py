"""A leash: runs a program that dies with the process that started it, even when that one is killed.

Run as a script: `python leash.py PARENT_PID PROGRAM ARGUMENTS...`. It asks the kernel to send SIGKILL when the
parent dies, then becomes the program. Linux only; elsewhere the program runs without a leash.
The kernel means the *thread* that started us, not the process: `processes.py` starts everything from one thread
that lives as long as the interpreter.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, program = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        _die_with_parent()
        if os.getppid() != parent:  # it died before we asked
            sys.exit("the process that started this program is gone")
    os.execv(program[0], program)  # noqa: S606 - to become a program is what this is for


def _die_with_parent() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1:])
