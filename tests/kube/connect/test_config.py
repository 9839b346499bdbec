"""Kubeconfigs: as kubectl reads them, and what is wrong with those that cannot be used."""

import asyncio
import json
import os
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kedge.kube.connect import in_cluster
from kedge.kube.connect.config import ConfigError, Connection, Impersonation, KubeConfig, kubeconfig, load
from kedge.kube.connect.credentials import FixedCredentials, Identity
from kube.connect.tlsfixtures import Authority

CA = Authority().pem
V1 = "client.authentication.k8s.io/v1"
Written = Callable[..., Path]


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def document(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **context: str
) -> dict[str, Any]:
    """A kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **context}}],
    }


@pytest.fixture
def write(tmp_path: Path) -> Written:
    def write(content: dict[str, Any] | str | None = None, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content or document()))
        return path

    return write


@pytest.fixture
def loaded(write: Written) -> Callable[..., Connection]:
    """What a kubeconfig of one context stands for, without the environment of the tests."""

    def loaded(
        cluster: dict[str, Any] | None = None,
        user: dict[str, Any] | None = None,
        environ: dict[str, str] | None = None,
        **context: str,
    ) -> Connection:
        return load([write(document(cluster, user, **context))], environ=environ or {})

    return loaded


Loaded = Callable[..., Connection]


async def identity(connection: Connection) -> Identity:
    return await connection.credentials.identity()


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as caught:
        work()
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


# Where it is found


def test_the_usual_file_is_in_the_home_directory(tmp_path: Path, write: Written) -> None:
    write(name=".kube/config")
    assert load(environ={"HOME": str(tmp_path)}).server == "https://api.example:6443"


def test_the_environment_names_several_files_and_the_first_wins(tmp_path: Path, write: Written) -> None:
    first, second = document({"server": "https://first"}), document({"server": "https://second"}, {"token": "t"})
    first["current-context"] = ""
    first["users"] = None
    second["contexts"].append({"name": "there", "context": {"cluster": "d", "namespace": "shop"}})
    second["clusters"].append({"name": "d", "cluster": {"server": "https://other"}})
    second["current-context"] = "there"
    names = [str(write(first, "1")), "", str(tmp_path / "missing"), str(write(second, "2"))]
    environ = {"KUBECONFIG": os.pathsep.join(names)}
    merged = kubeconfig(environ=environ)
    assert merged.current == "there"
    assert set(merged.contexts) == {"here", "there"}
    assert load(environ=environ).server == "https://other"
    assert load(context="here", environ=environ).server == "https://first"


def test_entries_are_not_mixed(write: Written) -> None:
    paths = [
        write(document({"insecure-skip-tls-verify": True}), "1"),
        write(document({"tls-server-name": "second"}, {"token": "second"}), "2"),
    ]
    connection = load(paths, environ={})
    assert connection.insecure
    assert connection.tls_server_name is None
    assert connection.credentials == FixedCredentials()


def test_a_file_given_by_name_must_exist(tmp_path: Path) -> None:
    assert "missing: cannot be read: No such file" in refusal(lambda: load([tmp_path / "missing"]))


def test_without_any_file_there_is_no_cluster(tmp_path: Path) -> None:
    told = refusal(lambda: load(environ={"HOME": str(tmp_path)}))
    assert told.startswith(f"{tmp_path}/.kube/config: no cluster is configured there, and this is no pod")
    named = refusal(lambda: load(environ={"KUBECONFIG": "/no/such/file"}))
    assert named.startswith("/no/such/file: no cluster")


def test_an_empty_file_is_a_kubeconfig_without_entries(write: Written) -> None:
    assert "no cluster is configured" in refusal(lambda: load([write("")], environ={}))


def test_a_kubeconfig_may_be_json(write: Written) -> None:
    assert load([write(json.dumps(document()))], environ={}).server == "https://api.example:6443"


def test_the_process_environment_is_the_default(write: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write()))
    assert kubeconfig().contexts == ("here",)
    assert load().server == "https://api.example:6443"
    assert kubeconfig().connection().server == "https://api.example:6443"


# What a context stands for


def test_a_context_has_a_server_and_a_namespace(loaded: Loaded) -> None:
    connection = loaded(namespace="shop")
    assert (connection.server, connection.namespace) == ("https://api.example:6443", "shop")
    assert loaded().namespace == "default"


def test_a_context_without_a_user_is_anonymous(write: Written) -> None:
    content = document(user={"token": "t"})
    del content["contexts"][0]["context"]["user"]
    assert load([write(content)], environ={}).credentials == FixedCredentials()


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ("https://host/", "https://host"),
        ("https://host/k8s/clusters/c-1/", "https://host/k8s/clusters/c-1"),
        ("https://[::1]:6443", "https://[::1]:6443"),
        ("https://HOST:6443?x=1#y", "https://host:6443"),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
    ],
)
def test_a_server_has_one_form(loaded: Loaded, given: str, server: str) -> None:
    assert loaded({"server": given}).server == server


def test_a_ca_is_in_place_or_in_a_file_beside_the_kubeconfig(loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(CA)
    assert loaded({"certificate-authority": "ca.crt"}).ca == CA
    assert loaded({"certificate-authority": str(tmp_path / "ca.crt")}).ca == CA
    assert loaded({"certificate-authority-data": base64(CA)}).ca == CA
    other = Authority().pem
    assert loaded({"certificate-authority-data": base64(other), "certificate-authority": "ca.crt"}).ca == other


def test_paths_start_at_the_file_that_names_them(write: Written, tmp_path: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    one = document()
    one["users"] = []
    paths = [write(one, "1/config"), write(document(user={"tokenFile": "token"}), "2/config")]
    assert asyncio.run(identity(load(paths, environ={}))).authorization == "Bearer 2"


def test_tls_settings_are_kept(loaded: Loaded) -> None:
    connection = loaded({"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes"})
    assert connection.insecure
    assert connection.tls_server_name == "kubernetes"


def test_impersonation_is_kept(loaded: Loaded) -> None:
    user = {"as": "jane", "as-groups": ["devs"], "as-uid": "7", "as-user-extra": {"scopes": ["a", "b"]}}
    assert loaded(user=user).impersonate == Impersonation("jane", ("devs",), "7", (("scopes", "a"), ("scopes", "b")))
    assert loaded().impersonate is None


@pytest.mark.parametrize(
    ("cluster", "environ", "proxy"),
    [
        ({"proxy-url": "http://p:3128"}, {}, "http://p:3128"),
        ({"proxy-url": "http://p:3128"}, {"HTTPS_PROXY": "http://q:3128"}, "http://p:3128"),
        ({"proxy-url": "http://p:3128", "server": "https://127.0.0.1"}, {}, "http://p:3128"),
        ({}, {"HTTPS_PROXY": "http://q:3128"}, "http://q:3128"),
        ({"server": "https://127.0.0.1"}, {"HTTPS_PROXY": "http://q:3128"}, None),
        ({}, {}, None),
    ],
)
def test_a_proxy_is_named_or_in_the_environment(
    loaded: Loaded, cluster: dict[str, str], environ: dict[str, str], proxy: str | None
) -> None:
    assert loaded(cluster, environ=environ).proxy == proxy


# Who we are


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({}, None),
        ({"token": "t"}, "Bearer t"),
        ({"username": "jane", "password": "hunter2"}, "Basic amFuZTpodW50ZXIy"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"tokenFile": "token", "token": "t"}, "Bearer from-file"),
        ({"token": "t", "exec": {"command": "never", "apiVersion": V1, "interactiveMode": "Never"}}, "Bearer t"),
    ],
)
def test_a_user_is_known_by_a_token_or_a_password(
    loaded: Loaded, tmp_path: Path, user: dict[str, Any], authorization: str | None
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert asyncio.run(identity(loaded(user=user))).authorization == authorization


@pytest.mark.parametrize("in_place", [True, False])
def test_a_user_is_known_by_a_certificate(loaded: Loaded, tmp_path: Path, in_place: bool) -> None:
    pair = Authority().client("jane")
    (tmp_path / "crt").write_bytes(pair.certificate)
    (tmp_path / "key").write_bytes(pair.key)
    if in_place:
        user = {"client-certificate-data": base64(pair.certificate), "client-key-data": base64(pair.key)}
        user |= {"client-certificate": "not-there", "client-key": "not-there"}
    else:
        user = {"client-certificate": "crt", "client-key": "key"}
    assert asyncio.run(identity(loaded(user=user))) == Identity(certificate=pair)


def test_no_secret_goes_over_plain_http(loaded: Loaded) -> None:
    connection = loaded({"server": "http://api"}, {"token": "t", "as": "jane"})
    assert connection.credentials == FixedCredentials()
    assert connection.impersonate == Impersonation("jane")


@pytest.mark.parametrize("command", ["./login", "login"])
def test_a_user_is_known_by_a_program_beside_the_kubeconfig_or_in_the_path(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    if command == "login":
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "login").write_text(
        f"#!{sys.executable}\n"
        "import json, os\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "cluster = info['spec']['cluster']\n"
        "info['status'] = {'token': '|'.join([cluster['server'], cluster['config']['x'], os.environ['A']])}\n"
        "print(json.dumps(info))\n"
    )
    (tmp_path / "login").chmod(0o700)
    given = {
        "command": command,
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "provideClusterInfo": True,
        "args": None,
        "env": [{"name": "A", "value": "b"}],
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"x": "y"}}
    connection = loaded({"extensions": [extension]}, {"exec": given})
    assert asyncio.run(identity(connection)).authorization == "Bearer https://api.example:6443|y|b"


# What is wrong

EXEC = {"command": "login", "apiVersion": V1, "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"server": ""}, "cluster 'c': server is missing: set it to"),
        ({"server": "api:6443"}, "cluster 'c': server: 'api:6443' is no URL of a server: write it as https://"),
        ({"server": "https://me:hunter2@api"}, "takes no user name or password"),
        ({"server": 6443}, "cluster 'c': Expected `str`, got `int` - at `server`; put the value in quotes"),
        (
            {"certificate-authority": "nope.crt"},
            "/nope.crt cannot be read: No such file or directory: correct the path",
        ),
        ({"certificate-authority-data": "%%%"}, "certificate-authority-data is not base64"),
        ({"certificate-authority-data": base64(b"hunter2")}, "certificate-authority holds no PEM certificate"),
        (
            {"certificate-authority-data": base64(CA), "insecure-skip-tls-verify": True},
            "insecure-skip-tls-verify is true, but there is a certificate-authority: remove one",
        ),
        ({"proxy-url": "socks5://me:hunter2@p:1080"}, "proxy-url: socks5://p:1080 is a SOCKS proxy: use an HTTP"),
        ({"proxy-url": "p:3128"}, "proxy-url: "),
    ],
)
def test_a_cluster_that_cannot_be_used_is_explained(loaded: Loaded, cluster: dict[str, Any], told: str) -> None:
    refused = refusal(lambda: loaded(cluster))
    assert "/config: cluster 'c': " in refused
    assert told in refused


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"token": "hunter2 x"}, "token: the token holds spaces"),
        ({"token": 12345}, "Expected `str`, got `int` - at `token`; put the value in quotes"),
        ({"tokenFile": "nope"}, "/nope cannot be read: No such file or directory: correct the path"),
        ({"token": "hunter2", "password": "hunter2"}, "a token and a username or password: keep one"),
        ({"client-certificate-data": base64(CA)}, "has no key: add client-key"),
        ({"client-certificate-data": "hunter2!", "client-key-data": "x"}, "client-certificate-data is not base64"),
        ({"as-groups": ["a"]}, "need a user to act as: add `as`"),
        ({"auth-provider": {"name": "gcp", "config": {"x": "hunter2"}}}, "use `exec` with gke-gcloud-auth-plugin"),
        ({"auth-provider": {"name": "oidc"}}, "use `exec` with an OIDC login program"),
        ({"auth-provider": {"name": "other"}}, "use `exec` with a credential program"),
        ({"exec": {**EXEC, "command": ""}}, "exec.command is missing"),
        ({"exec": {**EXEC, "apiVersion": ""}}, "exec.apiVersion is missing: set it to"),
        ({"exec": {**EXEC, "apiVersion": "v7"}}, "exec.apiVersion is v7: set it to"),
        (
            {"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "v1alpha1 was removed in Kubernetes 1.24: upgrade 'login'",
        ),
        ({"exec": {**EXEC, "interactiveMode": ""}}, "exec.interactiveMode is missing: set it to one of Never"),
        ({"exec": {**EXEC, "interactiveMode": "Maybe"}}, "exec.interactiveMode is Maybe: use one of Never"),
        ({"exec": {**EXEC, "env": [{"name": "", "value": "hunter2"}]}}, "without a proper name"),
        ({"exec": {**EXEC, "args": "hunter2"}}, "at `exec.args`"),
    ],
)
def test_a_user_that_cannot_be_used_is_explained(loaded: Loaded, user: dict[str, Any], told: str) -> None:
    refused = refusal(lambda: loaded(user=user))
    assert "/config: user 'u': " in refused
    assert told in refused


def without(section: str) -> dict[str, Any]:
    return {**document(), section: []}


@pytest.mark.parametrize(
    ("content", "context", "told"),
    [
        (document(), "nope", "there is no context 'nope': contexts here: here"),
        (without("contexts"), "here", "there is no context 'here': there are no contexts here"),
        (without("clusters"), None, "context 'here': its cluster 'c' does not exist: there are no clusters here"),
        (without("users"), None, "context 'here': its user 'u' does not exist"),
        ({**document(), "current-context": None}, None, "current-context is not set: name one; contexts here: here"),
        ("token: 'hunter2\n", None, "is not YAML at line"),
        ("[hunter2]", None, "is no kubeconfig"),
        ("just a text", None, "is no kubeconfig"),
        ({"users": [{"user": {"token": "hunter2"}}]}, None, "users[0] has no name"),
        ({"clusters": "hunter2"}, None, "clusters[0] has no name"),
        ({"users": [{"name": "u"}, {"name": "u"}]}, None, "users[1]: 'u' is there twice"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(
    write: Written, content: dict[str, Any] | str, context: str | None, told: str
) -> None:
    path = write(content)
    refused = refusal(lambda: load([path], context, environ={}))
    assert refused.startswith(str(path))
    assert told in refused


def test_a_broken_entry_harms_nobody_else(write: Written) -> None:
    content = document()
    content["users"].append({"name": "broken", "user": {"token": [1]}})
    assert load([write(content)], environ={}).server == "https://api.example:6443"


def test_a_proxy_in_the_environment_that_cannot_be_used_is_named(loaded: Loaded) -> None:
    told = refusal(lambda: loaded(environ={"HTTPS_PROXY": "socks5://p:1080"}))
    assert told.startswith("$HTTPS_PROXY: socks5://p:1080 is a SOCKS proxy")


# From elsewhere than a file


def parsed(user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Connection:
    text = yaml.safe_dump(document(cluster, user))
    return KubeConfig.parse(text, origin="Secret fleet/cluster-1").connection(environ={})


def test_a_kubeconfig_may_come_from_a_secret() -> None:
    connection = parsed({"token": "t"}, {"certificate-authority-data": base64(CA)})
    assert connection.ca == CA
    assert asyncio.run(identity(connection)).authorization == "Bearer t"


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"tokenFile": "/etc/passwd"}, "tokenFile names a file, but this kubeconfig is not a file of this machine"),
        ({"client-certificate": "/x", "client-key": "/y"}, "client-certificate names a file"),
        ({"exec": EXEC}, "exec names a program, but this kubeconfig is not a file of this machine"),
    ],
)
def test_a_kubeconfig_from_a_secret_names_no_files_and_no_programs(user: dict[str, Any], told: str) -> None:
    refused = refusal(lambda: parsed(user))
    assert refused.startswith("Secret fleet/cluster-1: user 'u': ")
    assert told in refused


def test_no_secret_of_a_kubeconfig_shows_when_it_is_printed(write: Written) -> None:
    content = document({"proxy-url": "http://me:hunter2@p:1"}, {"token": "hunter2"})
    config = KubeConfig.read([write(content)])
    connection = config.connection(environ={})
    for value in (config, connection, config.entries):
        assert "hunter2" not in repr(value)


# In a cluster


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("t1")
    (tmp_path / "ca.crt").write_bytes(CA)
    (tmp_path / "namespace").write_text("kedge-system")
    return tmp_path


INSIDE = {in_cluster.HOST: "10.0.0.1", in_cluster.PORT: "443"}


def test_a_pod_has_a_connection(account: Path) -> None:
    connection = in_cluster.connection(directory=account, environ=INSIDE)
    assert (connection.server, connection.ca, connection.namespace) == ("https://10.0.0.1:443", CA, "kedge-system")
    assert asyncio.run(identity(connection)).authorization == "Bearer t1"


def test_a_pod_may_speak_ipv6(account: Path) -> None:
    connection = in_cluster.connection(directory=account, environ={**INSIDE, in_cluster.HOST: "fd00::1"})
    assert connection.server == "https://[fd00::1]:443"


async def test_a_pods_token_is_read_again(account: Path) -> None:
    connection = await asyncio.to_thread(in_cluster.connection, directory=account, environ=INSIDE)
    first = await identity(connection)
    (account / "token").write_text("t2")
    assert connection.credentials.refused(first)
    assert (await identity(connection)).authorization == "Bearer t2"


def test_a_pod_goes_through_a_proxy_unless_exempt(account: Path) -> None:
    environ = {**INSIDE, "HTTPS_PROXY": "http://p:3128"}
    assert in_cluster.connection(directory=account, environ=environ).proxy == "http://p:3128"
    environ["NO_PROXY"] = "10.0.0.0/8"
    assert in_cluster.connection(directory=account, environ=environ).proxy is None


def test_outside_of_a_cluster_there_is_none(tmp_path: Path) -> None:
    assert "not in a cluster: KUBERNETES_SERVICE_HOST" in refusal(lambda: in_cluster.connection(environ={}))
    assert not in_cluster.inside(directory=tmp_path, environ=INSIDE)


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_its_files_is_told_so(account: Path, missing: str) -> None:
    (account / missing).unlink()
    told = refusal(lambda: in_cluster.connection(directory=account, environ=INSIDE))
    assert missing in told
    assert "automountServiceAccountToken" in told


def test_without_a_kubeconfig_a_pod_uses_its_account(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def inside(*, environ: object) -> bool:
        return True

    def connection(*, environ: dict[str, str], clock: object) -> Connection:
        return Connection("https://10.0.0.1")

    monkeypatch.setattr(in_cluster, "inside", inside)
    monkeypatch.setattr(in_cluster, "connection", connection)
    assert load(environ={"HOME": str(account)}).server == "https://10.0.0.1"
    with pytest.raises(ConfigError):
        load(context="named", environ={"HOME": str(account)})
