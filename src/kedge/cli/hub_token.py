"""Hub token: the token of a member's agent on the hub. The agent renews it, and saves it where it was found.

It is in a kubeconfig, in the user of the context. The renewed one replaces it there; in a pod, where that file is
mounted from a Secret, it is written to the Secret. Only a service account's token that expires is renewed:
certificates, login programs and token files are renewed by others.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.core import Secret
from kedge.cli.kubeconfig import write_privately
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import Connection, kubeconfig
from kedge.kube.connect.credentials import CredentialsFailed, FixedCredentials, Identity
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.connect.service_tokens import NotSaved, Renewal, service_token
from kedge.kube.errors import KubeError
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Transport

KEY = "kubeconfig"
"""The key of the kubeconfig in the Secret."""
Save: TypeAlias = Callable[[str], Awaitable[None]]


class TokenPlace(Struct, frozen=True):
    """A user in a kubeconfig file, where the token is."""

    file: Path
    user: str

    def token(self) -> str:
        """The token in the file. Blocks."""
        try:
            found = _user_in(self._document(), self.user).get("token", "")
        except (OSError, yaml.YAMLError, LookupError) as error:
            raise CredentialsFailed(f"{self.file} holds no token of {self.user}: {type(error).__name__}") from None
        return str(found)

    def with_token(self, token: str) -> str:
        """The content of the file with another token. Blocks."""
        try:
            document = self._document()
            _user_in(document, self.user)["token"] = token
        except (OSError, yaml.YAMLError, LookupError) as error:
            raise NotSaved(f"{self.file} cannot be read: {type(error).__name__}") from None
        return yaml.safe_dump(document, sort_keys=False)

    def _document(self) -> dict[str, Any]:
        found = yaml.safe_load(self.file.read_bytes())
        return found if isinstance(found, dict) else {}


def token_place(file: Path | None, context: str | None) -> TokenPlace | None:
    """Where the token of a context is, if it is a service account's token in the file itself that expires."""
    config = kubeconfig([file] if file is not None else None)
    entry = config.user_of(context)
    if entry is None or service_token(str(entry.body.get("token", ""))) is None:
        return None
    return TokenPlace(Path(entry.origin), entry.name)


def with_renewed_token(connection: Connection, place: TokenPlace, save: Save, *, kept_in: str = "") -> Connection:
    """The same connection, with a token that is renewed. Messages say that it is `kept_in` there, or in the file."""
    token = service_token(place.token())
    if token is None:
        return connection

    def as_somebody(identity: Identity) -> HttpsTransport:
        return HttpsTransport(replace(connection, credentials=FixedCredentials(identity)))

    async def read() -> str:
        return await asyncio.to_thread(place.token)

    renewal = Renewal(
        token,
        transport=as_somebody,
        read=read,
        save=save,
        clock=SystemClock(),
        remedy=(
            f"write a new one into {kept_in or place.file} "
            "(`kedge join MEMBER --agent-kubeconfig FILE` on the hub makes one); "
            "it is looked for there once a minute"
        ),
    )
    return replace(connection, credentials=renewal.credentials())


def saved_in_file(place: TokenPlace) -> Save:
    """Writes it to the file, which then only its owner can read."""

    def write(token: str) -> None:
        try:
            write_privately(place.file.resolve(), place.with_token(token))
        except OSError as error:
            raise NotSaved(f"{place.file} cannot be written: {error.strerror}") from None

    async def save(token: str) -> None:
        await asyncio.to_thread(write, token)

    return save


def saved_in_secret(place: TokenPlace, member: Callable[[], Transport], namespace: str, name: str) -> Save:
    """Writes it to the Secret that the file is mounted from; `member` connects to the cluster of the Secret."""

    async def save(token: str) -> None:
        text = await asyncio.to_thread(place.with_token, token)
        client = Client(member())
        data = {KEY: b64encode(text.encode()).decode()}
        try:
            await client.patch(Secret, name, MergePatch({"data": data}), namespace, manager="kedge-member")
        except KubeError as error:
            raise NotSaved(f"Secret {namespace}/{name} cannot be written: {error.answer}") from None
        finally:
            await client.close()

    return save


def _user_in(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The entry of a user in a kubeconfig. Raises LookupError if there is none."""
    for found in document.get("users") or ():
        if isinstance(found, dict) and found.get("name") == name and isinstance(found.get("user"), dict):
            user: dict[str, Any] = found["user"]
            return user
    raise LookupError(name)
