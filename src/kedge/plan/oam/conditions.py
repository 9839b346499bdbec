"""Conditions: what Components, ApplicationConfigurations and Applications say of themselves, and the reasons."""

from __future__ import annotations

from typing import Final

SYNCED: Final = "Synced"
"""Of a Component and an ApplicationConfiguration: whether all that it asks for was written."""
PARSED: Final = "Parsed"
"""Of an Application: whether it can be read."""
APPLIED: Final = "Applied"
"""Of an Application: whether its configuration is applied."""

SUCCEEDED: Final = "ReconcileSuccess"
REFUSED: Final = "Refused"
WAITING: Final = "Waiting"
APPLYING: Final = "Applying"
