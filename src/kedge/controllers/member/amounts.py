"""Amounts: CPU and memory, read, added up, and printed as Kubernetes prints them (`1k`, `1Ti`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.numbers import Quantity, Units

_NANO: Final = 10**9


class Amounts(Struct, frozen=True, gc=False):
    """CPU in billionths of a core, memory in bytes. Whole numbers, so that adding up thousands costs nothing."""

    cpu: int = 0
    memory: int = 0
    units: Units = Units.binary
    """In which memory was written, and is printed."""


def amounts(written: Mapping[str, int | str]) -> Amounts:
    """CPU and memory out of a list of resources. What cannot be read counts as none: the others still do."""
    cpu, memory = _read(written.get("cpu", 0)), _read(written.get("memory", 0))
    units = memory.units if memory.amount else Units.binary
    return Amounts(int(cpu.amount * _NANO), math.ceil(memory.amount), units)


@lru_cache(4096)  # pods that are alike ask for the same
def _read(text: int | str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError:
        return Quantity(Decimal(0))


def total(found: Iterable[Amounts]) -> Amounts:
    cpu = memory = 0
    units = None
    for one in found:
        cpu += one.cpu
        memory += one.memory
        units = one.units if units is None and one.memory else units
    return Amounts(cpu, memory, units or Units.binary)


def less(there: Amounts, taken: Amounts) -> Amounts:
    """What is left; never less than nothing."""
    return replace(there, cpu=max(0, there.cpu - taken.cpu), memory=max(0, there.memory - taken.memory))


def printed(found: Amounts) -> dict[str, int | str]:
    cpu = Quantity(Decimal(found.cpu).scaleb(-9).normalize())
    memory = Quantity(Decimal(found.memory), found.units)
    return {"cpu": str(cpu), "memory": str(memory)}
