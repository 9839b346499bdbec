"""`python -m openapi [--check]`: write the definitions, or say whether they are what would be written."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from controlplane.binaries import Missing, find
from controlplane.plane import ControlPlane
from openapi import gotypes, writing


def main(arguments: Sequence[str]) -> int:
    found = find()
    if isinstance(found, Missing):
        print(f"error: {found.reason}", file=sys.stderr)
        return 1
    text = asyncio.run(_made(ControlPlane(found)))
    if "--check" in arguments:
        same = writing.PATH.read_text() == text
        print("as it would be written" if same else "not what would be written: run python -m openapi")
        return 0 if same else 1
    writing.PATH.write_text(text)
    print(f"{writing.PATH}: {len(text) / 1024:.0f} KB")
    return 0


async def _made(plane: ControlPlane) -> str:
    async with plane:
        cluster = await plane.start("openapi")
        published = await writing.published(cluster)
    return writing.text(published, gotypes.Source(gotypes.sources()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
