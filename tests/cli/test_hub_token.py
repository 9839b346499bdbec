"""Where a member's agent finds its token for the hub, and where a renewed one goes."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kedge.api.core import Secret
from kedge.cli.hub_token import TokenPlace, saved_in_file, saved_in_secret, token_place, with_renewed_token
from kedge.kube.codec import untyped
from kedge.kube.connect.config import Connection, load
from kedge.kube.connect.credentials import CredentialsFailed
from kedge.kube.connect.service_tokens import NotSaved
from support.fleets import client_of, fleet_cluster

SECRETS = untyped(Secret.resource)


def a_token(account: str = "agent", began: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> str:
    claims = {"sub": f"system:serviceaccount:fleet-system:{account}", "iat": began.timestamp(),
              "exp": (began + timedelta(hours=1)).timestamp()}  # fmt: skip
    return f"e30.{base64.urlsafe_b64encode(msgspec.json.encode(claims)).decode().rstrip('=')}.x"


def config(**users: dict[str, Any]) -> dict[str, Any]:
    return {
        "current-context": next(iter(users)),
        "clusters": [{"name": "hub", "cluster": {"server": "https://hub.example:6443"}}],
        "contexts": [{"name": name, "context": {"cluster": "hub", "user": name}} for name in users],
        "users": [{"name": name, "user": user} for name, user in users.items()],
    }


async def save_in(place: TokenPlace, token: str) -> None:
    await saved_in_file(place)(token)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hub.kubeconfig"
    path.write_text(yaml.safe_dump(config(agent={"token": a_token()}, other={"token": "opaque"})))
    path.chmod(0o644)
    return path


def test_a_renewed_token_takes_the_place_of_the_old_one_and_nothing_else_changes(file: Path) -> None:
    before = yaml.safe_load(file.read_text())
    place = token_place(file, "agent")
    assert place == TokenPlace(file, "agent")
    asyncio.run(save_in(place, a_token("renewed")))
    after = yaml.safe_load(file.read_text())
    assert after["users"][0]["user"]["token"] == place.token() == a_token("renewed")
    before["users"][0]["user"]["token"] = a_token("renewed")
    assert after == before
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("secret", ["", "Secret fleet-system/kedge-hub"])
def test_an_agent_that_starts_with_a_token_that_ended_says_when_and_where_to_put_a_new_one(
    tmp_path: Path, secret: str
) -> None:
    path = tmp_path / "hub.kubeconfig"
    path.write_text(yaml.safe_dump(config(agent={"token": a_token(began=datetime(2020, 1, 1, tzinfo=UTC))})))
    place = token_place(path, None)
    assert place is not None
    hub = with_renewed_token(load([path]), place, saved_in_file(place), kept_in=secret)
    with pytest.raises(CredentialsFailed) as raised:
        asyncio.run(identity(hub))
    said = f"the token of agent ended at 2020-01-01T01:00:00Z: write a new one into {secret or path} (`kedge join "
    assert str(raised.value).startswith(said)


async def identity(hub: Connection) -> object:
    return await hub.credentials.identity()


@pytest.mark.parametrize(
    "user",
    [
        {"token": "opaque"},
        {"tokenFile": "token"},
        {"client-certificate-data": "eA==", "client-key-data": "eA=="},
        {"exec": {"command": "login"}},
        {},
    ],
    ids=["an opaque token", "a token file", "a certificate", "a program", "nobody"],
)
def test_what_others_renew_is_left_to_them(tmp_path: Path, user: dict[str, Any]) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config(agent=user)))
    assert token_place(path, None) is None


def test_a_file_that_is_gone_or_not_to_be_written_is_named(file: Path) -> None:
    place = TokenPlace(file, "agent")
    gone = TokenPlace(file.with_name("none") / "config", "agent")
    with pytest.raises(CredentialsFailed, match="holds no token of agent"):
        gone.token()
    with pytest.raises(NotSaved, match="cannot be read"):
        asyncio.run(save_in(gone, a_token()))
    with pytest.raises(CredentialsFailed, match="holds no token of nobody"):
        TokenPlace(file, "nobody").token()
    assert place.token() == a_token()


async def test_in_a_pod_it_goes_into_the_secret_the_file_is_mounted_from(file: Path) -> None:
    async with fleet_cluster("member", kinds=False) as member, client_of(member) as client:
        await client.create(SECRETS, {"metadata": {"name": "kedge-hub"}, "data": {"kubeconfig": "eA=="}}, "default")
        save = saved_in_secret(TokenPlace(file, "agent"), member.transport, "default", "kedge-hub")
        await save(a_token("renewed"))
        found = await client.get(SECRETS, "kedge-hub", "default")
        text = base64.b64decode(found["data"]["kubeconfig"])
        assert yaml.safe_load(text)["users"][0]["user"]["token"] == a_token("renewed")
        with pytest.raises(NotSaved, match="Secret default/other cannot be written: 404"):
            await saved_in_secret(TokenPlace(file, "agent"), member.transport, "default", "other")(a_token())
