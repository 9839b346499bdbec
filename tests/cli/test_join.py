"""Joining a member that is there already."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kedge.api.cluster import Identity, MemberCluster, MemberClusterSpec
from kedge.api.karmada.clusters import Cluster
from kedge.api.meta import ObjectMeta
from kedge.cli.join import join
from kedge.cli.karmada_join import not_leaving

SPEC = MemberClusterSpec(identity=Identity(kind="User", name="east"))
LEAVING = ObjectMeta(name="east", deletion_timestamp=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (MemberCluster(metadata=LEAVING, spec=SPEC), "membercluster/east is being deleted: wait until it is gone"),
        (Cluster(metadata=LEAVING), "`kubectl describe cluster east` shows what it waits for"),
    ],
)
def test_a_member_that_is_being_deleted_cannot_be_joined(found: Any, words: str) -> None:
    with pytest.raises(click.ClickException, match=words):
        not_leaving(found)


def test_a_member_that_is_there_may_be_joined_again() -> None:
    found = Cluster(metadata=ObjectMeta(name="east"))
    assert not_leaving(found) is found


def test_a_name_that_no_member_can_have_is_refused() -> None:
    result = CliRunner().invoke(join, ["east.eu"])
    assert result.exit_code == 2
    assert "metadata.name: fleet-member-east.eu cannot be a namespace" in result.output
