"""Hot spots: a profile as text, by package and by function.

The profiler's own cost is in it, and it weighs on short functions most: read shares, not times.
"""

from __future__ import annotations

import cProfile
import pstats
from collections import Counter

TOP = 30
_ROOTS = ("site-packages/", "/src/", "/bench/", "/lib/")


def text(profile: cProfile.Profile) -> str:
    """Where the time was spent: in functions themselves, not in what they call."""
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # typeshed does not know it
    functions = {where: (calls, own) for where, (_, calls, own, _, _) in stats.items()}
    total = sum(own for _, own in functions.values())
    packages: Counter[str] = Counter()
    for (file, _, name), (_, own) in functions.items():
        packages[_package(file, name)] += own
    lines = [f"{own / total:6.1%}  {package}" for package, own in packages.most_common(12)]
    lines.append("")
    hottest = sorted(functions.items(), key=lambda item: -item[1][1])[:TOP]
    lines += [
        f"{own / total:6.1%}  {calls:7} calls  {_short(file)}:{line} {name}"
        for (file, line, name), (calls, own) in hottest
    ]
    return "\n".join(lines)


def _package(file: str, name: str) -> str:
    if file == "~":
        return next((f"C: {known}" for known in ("_ssl", "msgspec", "zlib") if known in name), "C: other")
    short = _short(file)
    return "/".join(short.split("/")[:3]) if short.startswith("kedge/") else short.split("/")[0]


def _short(file: str) -> str:
    for root in _ROOTS:
        _, found, rest = file.rpartition(root)
        if found:
            return rest.removeprefix(rest.split("/")[0] + "/") if rest.startswith("python3") else rest
    return file
