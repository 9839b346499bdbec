"""The workload of a component revision: its name, its labels, its frozen form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.oam.keys import FROZEN
from kedge.plan.fields import at, patched
from kedge.plan.oam import workloads
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.workloads import (
    frozen,
    handler_of,
    is_in_place,
    labels_of,
    revision_of,
    workload_name,
    workload_of,
)
from kedge.plan.workloads import Strategy
from kedge.plan.workloads.registry import BrokenHandler
from plan.oam.objects import DEPLOYMENT, STATEFUL_SET, component

DAEMON_SET = {**DEPLOYMENT, "kind": "DaemonSet"}
GAME = {"apiVersion": "example.com/v1", "kind": "Game"}
OLD_DEPLOYMENT = {**DEPLOYMENT, "apiVersion": "example.com/v1"}


@pytest.mark.parametrize(
    ("workload", "in_place", "rolled_name"),
    [
        (DEPLOYMENT, False, "web-v2"),
        (STATEFUL_SET, True, "web"),
        (DAEMON_SET, True, "web"),
        (GAME, False, "web-v2"),
        (OLD_DEPLOYMENT, False, "web-v2"),
    ],
)
def test_kinds_that_hold_two_revisions_keep_the_name_of_the_component(
    workload: Any, in_place: bool, rolled_name: str
) -> None:
    assert is_in_place(workload) is in_place
    assert workload_name("web", "web-v2", workload, rolled=True) == rolled_name
    assert workload_name("web", "web-v2", workload, rolled=False) == "web"


def test_a_workload_has_the_labels_of_its_application_component_and_revisions() -> None:
    given = {**STATEFUL_SET, "metadata": {"name": "ignored", "labels": {"mine": "yes"}}, "status": {"replicas": 1}}
    found = workload_of(component(given), revision="web-v2", application="shop", app_revision="shop-v3")
    assert found["metadata"] == {
        "name": "web",
        "namespace": "prod",
        "labels": {
            "mine": "yes",
            "app.oam.dev/name": "shop",
            "app.oam.dev/component": "web",
            "app.oam.dev/revision": "web-v2",
            "app.oam.dev/appRevision": "shop-v3",
        },
    }
    assert found["spec"] == STATEFUL_SET["spec"]
    assert "status" not in found
    assert revision_of(found) == "web-v2"
    assert revision_of(None) == ""


def test_a_component_without_an_application_has_no_label_of_one() -> None:
    assert labels_of("", "web", "web-v1") == {"app.oam.dev/component": "web", "app.oam.dev/revision": "web-v1"}


def test_two_deployments_of_one_component_never_select_the_same_pods() -> None:
    def selected(revision: str, **options: Any) -> tuple[Any, Any]:
        found = workload_of(component(DEPLOYMENT), revision=revision, **options)
        labels = at(found, "spec", "template", "metadata", "labels")
        assert at(found, "spec", "selector", "matchLabels") == labels
        return found["metadata"]["name"], labels

    assert selected("web-v1") == ("web-v1", {"app": "web", "kedge.dev/workload": "web-v1"})
    assert selected("web-v2") == ("web-v2", {"app": "web", "kedge.dev/workload": "web-v2"})
    assert selected("web-v2", rolled=False) == ("web", {"app": "web", "kedge.dev/workload": "web"})
    assert selected("web-v3", name="web-v2") == ("web-v2", {"app": "web", "kedge.dev/workload": "web-v2"})
    assert DEPLOYMENT["spec"]["selector"] == {"matchLabels": {"app": "web"}}


def test_a_workload_of_another_namespace_is_refused() -> None:
    there = {**DEPLOYMENT, "metadata": {"namespace": "prod"}}
    assert workload_of(component(there), revision="web-v1")["metadata"]["namespace"] == "prod"
    other = {**DEPLOYMENT, "metadata": {"namespace": "test"}}
    with pytest.raises(OamRefused, match="component web: its workload has another namespace than prod: leave it out"):
        workload_of(component(other), revision="web-v1")


def test_a_new_deployment_is_frozen_with_no_pods_and_a_pause() -> None:
    found = frozen(workload_of(component(DEPLOYMENT), revision="web-v2"), None)
    assert (found["spec"]["replicas"], found["spec"]["paused"]) == (0, True)
    assert msgspec.json.decode(found["metadata"]["annotations"][FROZEN])["strategy"]["paused"] is False


def test_a_stateful_set_is_frozen_with_the_pods_it_has_in_the_same_write_as_its_template() -> None:
    live = {**STATEFUL_SET, "spec": {**STATEFUL_SET["spec"], "replicas": 5}}
    new = patched(STATEFUL_SET, {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}})
    found = frozen(workload_of(component(new), revision="web-v2"), live)
    assert found["spec"]["replicas"] == 5
    assert found["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 2, "partition": 5},
    }
    assert found["spec"]["template"] == STATEFUL_SET["spec"]["template"]
    record = msgspec.json.decode(found["metadata"]["annotations"][FROZEN])
    assert msgspec.convert(record["strategy"], Strategy) == Strategy(max_unavailable=2)


def test_what_was_remembered_first_is_kept() -> None:
    live = patched(STATEFUL_SET, {"metadata": {"annotations": {FROZEN: "{}"}}})
    found = frozen(workload_of(component(STATEFUL_SET), revision="web-v2"), live)
    assert found["metadata"]["annotations"][FROZEN] == "{}"


def test_a_daemon_set_waits_for_deletions() -> None:
    found = frozen(workload_of(component(DAEMON_SET), revision="web-v2"), None)
    assert found["spec"]["updateStrategy"]["type"] == "OnDelete"
    assert "rollingUpdate" not in found["spec"]["updateStrategy"]


def test_a_kind_that_nobody_knows_cannot_be_frozen() -> None:
    with pytest.raises(OamRefused, match="a Game cannot be rolled out in batches: nothing here knows how to hold it"):
        frozen(GAME, None)


def test_a_handler_that_cannot_be_used_knows_no_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handler_of(DEPLOYMENT) is not None
    monkeypatch.setattr(workloads, "find_handler", lambda *_: BrokenHandler("games", "Deployment.apps", "it is broken"))
    assert handler_of(DEPLOYMENT) is None
