"""`kedge status` where the hub stands still: success means that what is on the hub now is available.

Typed at an embedded fleet in virtual time, whose hub has no Lease; and at processes, one of which is stopped.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.test_runs_mended import SELECTOR, Typing, typing_at_a_fleet
from controllers.hub.test_resources import Refusing
from kedge.api.core import ConfigMap
from kedge.api.placement import ClusterResourcePlacement
from kedge.cli.demo_fleet import DEPLOYMENTS
from kedge.cli.targets import Hub
from kedge.kube.client import Client
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from support.frozen import a_frozen_hub_is_no_success

pytestmark = pytest.mark.timeout(400)
ROLLING = {"resourceSelectors": [SELECTOR], "strategy": {"rollingUpdate": {"maxUnavailable": 1}}}
BEHIND = "what it selects has changed since revision 0, and the hub has not caught up yet"


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Typing]:
    """With app:1 everywhere, by a placement `rolls`."""
    with typing_at_a_fleet(monkeypatch) as found:
        body: dict[str, Any] = {"metadata": {"name": "rolls"}, "spec": ROLLING}
        found.do(found.hub.delete(ClusterResourcePlacement, "web"))
        found.do(found.hub.create(ClusterResourcePlacement, body))
        found.shown("status", "rolls", "--watch", "--timeout", "60")
        yield found


def test_what_was_changed_while_the_hub_stands_still_is_not_available(typing: Typing) -> None:
    typing.stop_hub()
    assert typing.kedge("status", "rolls").exit_code == 0
    typing.set_image("app:2")
    once = typing.kedge("status", "rolls")
    assert (once.exit_code, BEHIND in once.stdout) == (3, True)
    watched = typing.kedge("status", "rolls", "--watch", "--timeout", "30")
    assert (watched.exit_code, BEHIND in watched.stdout) == (3, True)
    told = msgspec.json.decode(typing.kedge("status", "rolls", "-o", "json").stdout)
    assert (told["state"], told["why"]) == ("moving", BEHIND)
    assert BEHIND in typing.shown("explain", "rolls")
    typing.set_image("app:1")
    assert typing.kedge("status", "rolls", "--watch", "--timeout", "30").exit_code == 0


@pytest.mark.parametrize("change", ["an object more", "an object less", "another label"])
def test_also_if_that_is_not_a_change_of_an_object_that_was_placed(typing: Typing, change: str) -> None:
    typing.stop_hub()
    match change:
        case "an object more":
            typing.do(typing.hub.create(ConfigMap, {"metadata": {"name": "new", "namespace": "shop"}}, "shop"))
        case "an object less":
            typing.do(typing.hub.delete(DEPLOYMENTS, "web", "shop"))
        case _:
            body = MergePatch({"metadata": {"labels": {"new": "1"}}})
            typing.do(typing.hub.patch(DEPLOYMENTS, "web", body, "shop"))
    assert typing.kedge("status", "rolls", "--watch", "--timeout", "10").exit_code == 3


def test_a_placement_that_is_held_at_a_revision_is_done_when_that_is_available(typing: Typing) -> None:
    typing.set_image("app:2")
    typing.shown("status", "rolls", "--watch", "--timeout", "60")
    typing.shown("rollback", "rolls")
    assert "rolled back" in typing.shown("status", "rolls", "--watch", "--timeout", "60")
    assert typing.images() == ["app:1"] * 3


def test_what_staged_runs_have_not_brought_yet_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    with typing_at_a_fleet(monkeypatch) as typing:
        typing.start("one")
        typing.until("one", lambda run: run["state"] == "available")
        assert typing.kedge("status", "web", "--watch", "--timeout", "30").exit_code == 0
        typing.set_image("app:2")
        told = typing.kedge("status", "web", "--watch", "--timeout", "30")
        why = "what it selects has changed since revision 0, and no staged update run has brought it yet"
        assert (told.exit_code, why in told.stdout) == (3, True)


def test_who_may_not_read_what_is_selected_is_not_told_of_a_success(
    typing: Typing, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = Client(Refusing(typing.transport(), "secrets"), limiter=Limiter(rate=0))
    monkeypatch.setattr(Hub, "ask", lambda _, question: typing.do(question(user)))
    for arguments in ((), ("--watch", "--timeout", "600")):
        refused = typing.kedge("status", "rolls", *arguments)
        assert refused.exit_code == 1
        assert refused.stderr == (
            "Error: it cannot be told whether revision 0 is what is on the hub now: objects of kind secrets cannot be "
            "read on the hub: secrets is forbidden: not for you\n"
        )
    typing.do(user.close())


def test_a_process_that_stands_still_is_not_heard_from(tmp_path: Path) -> None:
    file, kedge = tmp_path / "kubeconfig", [sys.executable, "-m", "kedge"]
    up = [*kedge, "up", "--bare", "--members", "1", "--kubeconfig", str(file), "--detach"]
    subprocess.run(up, check=True, timeout=60, stdout=subprocess.DEVNULL)
    try:
        a_frozen_hub_is_no_success((file, "hub"), (file, "cluster-1"), tmp_path)
    finally:
        down = [*kedge, "down", "--kubeconfig", str(file)]
        subprocess.run(down, check=True, timeout=60, stdout=subprocess.DEVNULL)
