"""Kubeconfig: contexts, clusters and users from one or several files.

Promises the reading of client-go and kubectl: files are merged, the first to name an entry wins it whole, and the first
to set `current-context` wins that; relative paths start at the file that holds them; `…-data` wins over a path.
Credentials go over https only. Every error names the file, the entry, the field and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.redacted import Redacted
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.connect import kubeconfig_users, proxies
from kedge.kube.connect.connection import ConfigError, Connection, server_url
from kedge.kube.connect.exec_plugin import GROUP, ClusterInfo
from kedge.kube.connect.kubeconfig_entries import Cluster, Context, Entry, User

Entries = Mapping[str, Entry]
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PLUGIN_SETTINGS = f"{GROUP}/exec"


class KubeConfig(Redacted, Struct, frozen=True):
    """What the files say, merged. `current` is the current context, if one is set."""

    current: str
    entries: Mapping[str, Entries]
    origin: str

    @classmethod
    def read(cls, paths: Iterable[Path]) -> KubeConfig:
        """The files, merged; the first wins. Raises `ConfigError` for a file that cannot be read."""
        files = [cls.parse(_text(path), origin=str(path), directory=path.absolute().parent) for path in paths]
        entries = {section: _first_wins(file.entries[section] for file in files) for section in _SECTIONS}
        current = next((file.current for file in files if file.current), "")
        return cls(current, entries, ", ".join(file.origin for file in files))

    @classmethod
    def parse(cls, text: bytes | str, *, origin: str, directory: Path | None = None) -> KubeConfig:
        """One kubeconfig. Without a directory (one from a Secret, say) it may name no files and no programs."""
        document = _without_nulls(_loaded(text, origin))
        if not isinstance(document, dict):
            raise ConfigError(f"{origin}: is no kubeconfig: expected clusters, users and contexts")
        entries = {section: _named(document.get(section, []), section, origin, directory) for section in _SECTIONS}
        return cls(str(document.get("current-context", "")), entries, origin)

    @property
    def contexts(self) -> tuple[str, ...]:
        return tuple(self.entries["contexts"])

    @property
    def empty(self) -> bool:
        return not any(self.entries.values())

    def connection(
        self,
        context: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Connection:
        """What a context (the current one, if not named) stands for. Raises `ConfigError`."""
        name = context or self.current
        if not name:
            raise ConfigError(f"{self.origin}: current-context is not set: name one; {self._there('contexts')}")
        chosen = self._entry("contexts", name, f"{self.origin}: there is no context {name!r}")
        meant = chosen.as_a(Context)
        entry = self._entry("clusters", meant.cluster, f"{chosen}: its cluster {meant.cluster!r} does not exist")
        cluster = entry.as_a(Cluster)
        reached = _reached(entry, cluster, os.environ if environ is None else environ)
        reached = replace(reached, namespace=meant.namespace or "default")
        if not meant.user:
            return reached
        who = self._entry("users", meant.user, f"{chosen}: its user {meant.user!r} does not exist")
        return _known(reached, who, _info(cluster, reached), clock or SystemClock())

    def user_of(self, context: str | None = None) -> Entry | None:
        """The user of a context (the current one, if not named), if it has one."""
        chosen = self.entries["contexts"].get(context or self.current)
        return self.entries["users"].get(chosen.as_a(Context).user) if chosen is not None else None

    def _entry(self, section: str, name: str, otherwise: str) -> Entry:
        try:
            return self.entries[section][name]
        except KeyError:
            raise ConfigError(f"{otherwise}: {self._there(section)}") from None

    def _there(self, section: str) -> str:
        names = ", ".join(self.entries[section])
        return f"{section} here: {names}" if names else f"there are no {section} here"


def _reached(entry: Entry, cluster: Cluster, environ: Mapping[str, str]) -> Connection:
    """The server of a cluster entry, for nobody in particular."""
    if not cluster.server:
        raise entry.error("server is missing: set it to the URL of the API server, https://host:port")
    try:
        server = server_url(cluster.server)
    except ValueError as error:
        raise entry.error(f"server: {error}") from None
    ca = _authority(entry, cluster)
    if ca is not None and cluster.insecure_skip_tls_verify:
        raise entry.error("insecure-skip-tls-verify is true, but there is a certificate-authority: remove one of them")
    return Connection(
        server=server,
        ca=ca,
        insecure=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name or None,
        proxy=_proxy(entry, cluster, server, environ),
    )


def _authority(entry: Entry, cluster: Cluster) -> bytes | None:
    name = "certificate-authority"
    ca = entry.content(name, cluster.certificate_authority_data, cluster.certificate_authority)
    if isinstance(ca, Path):
        path = ca
        try:
            ca = path.read_bytes()
        except OSError as error:
            raise entry.error(f"{name}: {path} cannot be read: {error.strerror}: correct the path") from error
    if ca is not None and b"-----BEGIN CERTIFICATE-----" not in ca:
        raise entry.error(f"{name} holds no PEM certificate: it starts with -----BEGIN CERTIFICATE-----")
    return ca


def _proxy(entry: Entry, cluster: Cluster, server: str, environ: Mapping[str, str]) -> str | None:
    try:
        if cluster.proxy_url:
            return proxies.checked(cluster.proxy_url)
    except ValueError as error:
        raise entry.error(f"proxy-url: {error}") from None
    try:
        return proxies.from_environment(server, environ)
    except ValueError as error:
        raise ConfigError(f"{error}, or exempt the server with $NO_PROXY") from None


def _known(plain: Connection, entry: Entry, cluster: ClusterInfo, clock: Clock) -> Connection:
    """The same server, for a user."""
    user = entry.as_a(User)
    acting = replace(plain, impersonate=kubeconfig_users.impersonation(entry, user))
    if not plain.server.startswith("https:"):
        return acting  # as client-go: no secret goes over a wire that anyone can read
    return replace(acting, credentials=kubeconfig_users.credentials(entry, user, cluster, clock))


def _info(cluster: Cluster, plain: Connection) -> ClusterInfo:
    settings = (found.get("extension") for found in cluster.extensions if found.get("name") == _PLUGIN_SETTINGS)
    return ClusterInfo(
        server=cluster.server,
        tls_server_name=cluster.tls_server_name,
        insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
        certificate_authority_data=plain.ca or b"",
        proxy_url=cluster.proxy_url,
        config=next(settings, None),
    )


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}: correct the path or its permissions") from error


def _loaded(text: bytes | str, origin: str) -> Any:
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # the error's own text may quote a secret
        line = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{origin}: is not YAML{line}: correct it, or write it anew with `kubectl config`") from None


def _without_nulls(value: Any) -> Any:
    """As Go reads it: a field that is null is a field that is not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _named(found: Any, section: str, origin: str, directory: Path | None) -> dict[str, Entry]:
    kind = _SECTIONS[section]
    entries: dict[str, Entry] = {}
    for index, item in enumerate(found if isinstance(found, list) else [found]):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ConfigError(f"{origin}: {section}[{index}] has no name: write `- name: …` and `{kind}: …`")
        name = item["name"]
        if name in entries:
            raise ConfigError(f"{origin}: {section}[{index}]: {name!r} is there twice: rename or remove one")
        entries[name] = Entry(kind, name, origin, directory, item.get(kind, {}))
    return entries


def _first_wins(parts: Iterable[Entries]) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for part in parts:
        merged = {**part, **merged}
    return merged
