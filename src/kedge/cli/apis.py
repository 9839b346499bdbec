"""APIs: whose kinds a hub has, KubeFleet's or Karmada's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

FLEET: Final = "fleet"
KARMADA: Final = "karmada"


def api_option(command: F) -> F:
    """The option of every command that is about a hub or its members."""
    return click.option(
        "--api",
        type=click.Choice([FLEET, KARMADA]),
        default=FLEET,
        show_default=True,
        help="Whose kinds the hub has: those of KubeFleet, or those of Karmada, whose clusters share budgets of pods.",
    )(command)


def api_words(api: str) -> str:
    """What to add to a command for this API."""
    return "" if api == FLEET else f" --api {api}"
