"""The entries of a kubeconfig: what one cluster, user or context says, as written.

An entry is read when it is used, so that a broken one harms nobody else. Every complaint names file, entry and field.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from kedge.api.redacted import Redacted
from kedge.kube.connect.connection import ConfigError

T = TypeVar("T")


class Cluster(Struct, frozen=True, rename="kebab"):
    """Where a server is, and whom to trust."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[dict[str, Any], ...] = ()


class Variable(Redacted, Struct, frozen=True):
    """One variable of a program's environment."""

    name: str
    value: str = ""


class Exec(Redacted, Struct, frozen=True, rename="camel"):
    """A program that logs in."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(Redacted, Struct, frozen=True, rename="kebab"):
    """Who we are, in one of several ways."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_user: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    auth_provider: dict[str, Any] = {}
    exec: Exec | None = None


class Context(Struct, frozen=True):
    """A cluster, a user and a namespace, under one name."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class Entry(Redacted, Struct, frozen=True):
    """One named entry: what it says, and where. Relative paths start at `directory`; without it there are no files."""

    kind: str
    name: str
    origin: str
    directory: Path | None
    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.origin}: {self.kind} {self.name!r}"

    def as_a(self, form: type[T]) -> T:
        """The entry, checked for types."""
        try:
            return msgspec.convert(self.body, form)
        except msgspec.ValidationError as error:
            hint = "; put the value in quotes" if "Expected `str`" in str(error) else ""
            raise self.error(f"{str(error).replace('$.', '')}{hint}") from None

    def error(self, what: str) -> ConfigError:
        return ConfigError(f"{self}: {what}")

    def path(self, name: str, given: str) -> Path:
        """The file that a field names."""
        if self.directory is None:
            raise self.error(
                f"{name} names a file, but this kubeconfig is not a file of this machine: "
                f"put the content in place ({name}-data, or token instead of tokenFile)"
            )
        return self.directory / given

    def decoded(self, name: str, given: str) -> bytes:
        """The bytes that a field holds in base64."""
        try:
            return b64decode("".join(given.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.error(f"{name} is not base64: encode the PEM file with `base64 -w0`") from None

    def content(self, name: str, in_place: str, by_path: str) -> bytes | Path | None:
        """What `name-data` holds, else the file that `name` names, else nothing."""
        if in_place:
            return self.decoded(f"{name}-data", in_place)
        return self.path(name, by_path) if by_path else None
