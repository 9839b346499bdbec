"""A hub whose process stands still is no success, on the real control plane."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controlplane.plane import ControlPlane
from support.frozen import a_frozen_hub_is_no_success

KEEPS_HOUSE = ("namespace-controller", "serviceaccount-controller", "garbage-collector-controller")


@pytest.mark.timeout(400)
async def test_a_hub_that_stands_still_is_not_heard_from(own_plane: ControlPlane, tmp_path: Path) -> None:
    hub, member = [await own_plane.start(name, only=KEEPS_HOUSE) for name in ("hub", "cluster-1")]
    to_hub, to_member = (hub.kubeconfig, hub.name), (member.kubeconfig, member.name)
    await asyncio.to_thread(a_frozen_hub_is_no_success, to_hub, to_member, tmp_path)
