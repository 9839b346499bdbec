"""Who a kubeconfig's user is: from an entry to credentials.

Promises client-go's order: a token file before a token; a program only if there is no token, password or certificate.
Refuses what client-go refuses (a token and a password, groups without a user, a certificate without its key) and
what is gone (`auth-provider`, v1alpha1), and says what to use instead.
"""

from __future__ import annotations

from kedge.kube.clock import Clock
from kedge.kube.connect import exec_plugin
from kedge.kube.connect.connection import Impersonation
from kedge.kube.connect.credentials import (
    Credentials,
    CredentialsFailed,
    FixedCredentials,
    IdentityFiles,
    basic,
    bearer,
)
from kedge.kube.connect.exec_plugin import ClusterInfo, ExecPlugin
from kedge.kube.connect.kubeconfig_entries import Entry, Exec, User

_MODES = ("Never", "IfAvailable", "Always")
_REPLACEMENTS = {
    "gcp": "gke-gcloud-auth-plugin",
    "azure": "kubelogin (https://azure.github.io/kubelogin)",
    "oidc": "an OIDC login program such as kubectl-oidc_login",
}


def credentials(entry: Entry, user: User, cluster: ClusterInfo, clock: Clock) -> Credentials:
    """Where this user's identities come from. Raises `ConfigError`."""
    _refuse_provider(entry, user)
    files = _files(entry, user)
    if files != IdentityFiles():
        try:
            return files.credentials(clock)
        except CredentialsFailed as error:
            raise entry.error(f"{error}: correct the path, or the file") from error
    if user.exec is not None:
        return _plugin(entry, user.exec, cluster).credentials(clock)
    return FixedCredentials()


def impersonation(entry: Entry, user: User) -> Impersonation | None:
    """Whom this user acts as."""
    if not user.as_user:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise entry.error("as-uid, as-groups and as-user-extra need a user to act as: add `as`")
        return None
    extra = tuple((key, value) for key, values in user.as_user_extra.items() for value in values)
    return Impersonation(user.as_user, user.as_groups, user.as_uid, extra)


def _refuse_provider(entry: Entry, user: User) -> None:
    if user.auth_provider:
        name = str(user.auth_provider.get("name", ""))
        instead = _REPLACEMENTS.get(name, "a credential program")
        raise entry.error(
            f"auth-provider {name!r} is no longer part of Kubernetes: use `exec` with {instead}, or a token"
        )


def _files(entry: Entry, user: User) -> IdentityFiles:
    certificate = entry.content("client-certificate", user.client_certificate_data, user.client_certificate)
    key = entry.content("client-key", user.client_key_data, user.client_key)
    if certificate is not None and key is None:
        raise entry.error("client-certificate has no key: add client-key or client-key-data")
    return IdentityFiles(
        authorization=_authorization(entry, user),
        token_file=entry.path("tokenFile", user.token_file) if user.token_file else None,
        certificate=certificate,
        key=key if certificate is not None else None,
    )


def _authorization(entry: Entry, user: User) -> str | None:
    password = user.username or user.password
    if password and (user.token or user.token_file):
        raise entry.error("it has a token and a username or password: keep one of them")
    if password:
        return basic(user.username, user.password)
    try:
        return bearer(user.token) if user.token else None
    except ValueError as error:
        raise entry.error(f"token: {error}") from None


def _plugin(entry: Entry, given: Exec, cluster: ClusterInfo) -> ExecPlugin:
    _check_plugin(entry, given)
    return ExecPlugin(
        where=str(entry),
        command=_command(entry, given.command),
        api_version=given.api_version,
        args=given.args,
        env=tuple((variable.name, variable.value) for variable in given.env),
        always_interactive=given.interactive_mode == "Always",
        install_hint=given.install_hint,
        cluster=cluster if given.provide_cluster_info else None,
    )


def _check_plugin(entry: Entry, given: Exec) -> None:
    if not given.command:
        raise entry.error("exec.command is missing: name the program to run")
    if entry.directory is None:
        raise entry.error("exec names a program, but this kubeconfig is not a file of this machine: use a token")
    if given.api_version == f"{exec_plugin.GROUP}/v1alpha1":
        raise entry.error(
            f"exec.apiVersion {given.api_version} was removed in Kubernetes 1.24: upgrade {given.command!r} "
            f"and set it to {exec_plugin.VERSIONS[0]}"
        )
    if given.api_version not in exec_plugin.VERSIONS:
        known = " or ".join(exec_plugin.VERSIONS)
        raise entry.error(f"exec.apiVersion is {given.api_version or 'missing'}: set it to {known}")
    if not given.interactive_mode and given.api_version == exec_plugin.VERSIONS[0]:
        raise entry.error(f"exec.interactiveMode is missing: set it to one of {', '.join(_MODES)}")
    if given.interactive_mode not in ("", *_MODES):
        raise entry.error(f"exec.interactiveMode is {given.interactive_mode}: use one of {', '.join(_MODES)}")
    if any(not variable.name or "=" in variable.name for variable in given.env):
        raise entry.error("exec.env has a variable without a proper name: give each a name without '='")


def _command(entry: Entry, command: str) -> str:
    """A bare name is looked for in PATH; a relative path starts at the kubeconfig's directory."""
    return str(entry.path("exec.command", command)) if "/" in command else command
