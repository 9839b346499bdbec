"""`python -m wiretypes [--check]`: write the messages, or say whether they are what would be written."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from openapi import gotypes
from wiretypes import protos, writing


def main(arguments: Sequence[str]) -> int:
    folders = gotypes.sources()
    text = writing.text(protos.read_all(folders), gotypes.Source(folders))
    if "--check" in arguments:
        same = writing.PATH.read_text() == text
        print("as it would be written" if same else "not what would be written: run python -m wiretypes")
        return 0 if same else 1
    writing.PATH.write_text(text)
    print(f"{writing.PATH}: {len(text) / 1024:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
