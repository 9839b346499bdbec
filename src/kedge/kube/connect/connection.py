"""Connection: where one API server is, whom to trust, and who we are to it.

A value, however it came about: from a kubeconfig, from the pod's service account, or written down in a test.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct
from yarl import URL

from kedge.kube.connect.credentials import Credentials, FixedCredentials


class ConfigError(Exception):
    """What we were told about a cluster cannot be used; the message names the place and the fix."""


class Impersonation(Struct, frozen=True):
    """Whom to act as; the server checks that we may."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    def headers(self) -> tuple[tuple[str, str], ...]:
        return (
            ("Impersonate-User", self.user),
            *((("Impersonate-Uid", self.uid),) if self.uid else ()),
            *(("Impersonate-Group", group) for group in self.groups),
            *((f"Impersonate-Extra-{quote(key, safe='')}", value) for key, value in self.extra),
        )


class Connection(Struct, frozen=True):
    """Everything needed to speak to one API server. `server` is a URL without a trailing slash; `ca` is PEM."""

    server: str
    ca: bytes | None = None
    insecure: bool = False
    tls_server_name: str | None = None
    proxy: str | None = None
    credentials: Credentials = FixedCredentials()
    namespace: str = "default"
    impersonate: Impersonation | None = None

    def __repr__(self) -> str:
        through = f" through {shown(self.proxy)}" if self.proxy else ""
        return f"Connection({shown(self.server)}{through})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("server", shown(self.server))]


def server_url(given: str) -> str:
    """A server's URL in the one form we use. Raises ValueError for what is no http(s) URL."""
    url = URL(given)
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError(f"{given!r} is no URL of a server: write it as https://host:port")
    if url.user or url.password:
        raise ValueError("a server's URL takes no user name or password: put them into the user entry")
    return str(url.with_query(None).with_fragment(None)).rstrip("/")


def shown(url: str) -> str:
    """A URL for people: without a user name, password or query, any of which may be secret."""
    try:
        return str(URL(url).with_user(None).with_query(None).with_fragment(None))
    except ValueError:
        return "(not a URL)"
