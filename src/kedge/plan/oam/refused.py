"""Refused: something that a user asked for and that cannot be done."""

from __future__ import annotations


class OamRefused(ValueError):
    """What was asked for cannot be done. The message says where, why, and what to do."""
