"""Kinds: all kinds of OAM that Kedge defines."""

from __future__ import annotations

from typing import Final

from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.rollouts import ROLLOUT_KINDS

OAM_KINDS: Final = (Application, ApplicationRevision, Component, ApplicationConfiguration, *ROLLOUT_KINDS)
