"""Credential programs, run for real."""

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from kedge.kube.clock import SystemClock
from kedge.kube.connect.credentials import CredentialsFailed, Identity
from kedge.kube.connect.exec_plugin import GROUP, ClusterInfo, ExecPlugin, exec_info, read_credential
from kube.connect.tlsfixtures import Authority
from support.waiting import until

V1, V1BETA1 = f"{GROUP}/v1", f"{GROUP}/v1beta1"
Written = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Written:
    """Writes a program; `give(status)` in it prints an ExecCredential."""

    def write(body: str) -> str:
        path = tmp_path / "login"
        path.write_text(
            f"#!{sys.executable}\nimport json, os, pathlib, sys, time\n"
            f"here = pathlib.Path({str(tmp_path)!r})\n"
            "def give(**status):\n"
            f"    print(json.dumps(dict(kind='ExecCredential', apiVersion='{V1}', status=status)))\n"
            "with (here / 'runs').open('a') as runs:\n    runs.write('x')\n" + dedent(body)
        )
        path.chmod(0o700)
        return str(path)

    return write


def plugin(command: str, **more: object) -> ExecPlugin:
    return ExecPlugin(where="config: user 'jane'", command=command, api_version=V1, **more)  # type: ignore[arg-type]


def runs(program: str) -> int:
    return len((Path(program).parent / "runs").read_text())


async def failure(made: ExecPlugin) -> str:
    with pytest.raises(CredentialsFailed) as caught:
        await made.run()
    return str(caught.value)


async def test_a_program_gives_a_token(program: Written) -> None:
    found = await plugin(program("give(token='sesame')")).run()
    assert found.identity == Identity("Bearer sesame")
    assert found.expires is None


async def test_a_program_gives_a_certificate(program: Written) -> None:
    ends = (datetime.now(UTC) + timedelta(minutes=5)).replace(microsecond=0)
    pair = Authority().client("jane", ends=ends)
    body = f"give(clientCertificateData={pair.certificate.decode()!r}, clientKeyData={pair.key.decode()!r})"
    found = await plugin(program(body)).run()
    assert found.identity == Identity(certificate=pair)
    assert found.expires == ends, "a certificate ends when it says"


async def test_a_program_is_told_who_asks_and_what_it_was_configured_with(program: Written) -> None:
    login = program(
        """
        (here / "seen").write_text(json.dumps({
            "info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]),
            "args": sys.argv[1:],
            "env": [os.environ["AWS_PROFILE"], os.environ["PATH"]],
            "input": sys.stdin.read(),
        }))
        give(token="t")
        """
    )
    cluster = ClusterInfo("https://api:6443", certificate_authority_data=b"PEM", config={"audience": "a"})
    made = plugin(login, args=("get-token", "--region", "x"), env=(("AWS_PROFILE", "production"),), cluster=cluster)
    await made.run()
    assert msgspec.json.decode((Path(login).parent / "seen").read_bytes()) == {
        "info": {
            "apiVersion": V1,
            "kind": "ExecCredential",
            "spec": {
                "interactive": False,
                "cluster": {
                    "server": "https://api:6443",
                    "certificate-authority-data": "UEVN",
                    "config": {"audience": "a"},
                },
            },
        },
        "args": ["get-token", "--region", "x"],
        "env": ["production", os.environ["PATH"]],
        "input": "",
    }


def test_a_program_is_not_told_of_the_cluster_unless_it_asks() -> None:
    told = msgspec.json.decode(exec_info(V1BETA1, interactive=False, cluster=None))
    assert told == {"apiVersion": V1BETA1, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_program_that_fails_says_why_and_how_to_get_it(program: Written) -> None:
    login = program(
        "print('secret'); print('\\x1b[31mno session,\\nlog in first\\x1b[0m', file=sys.stderr); sys.exit(3)"
    )
    told = await failure(plugin(login, install_hint="Get it from example.com"))
    assert told == (
        f"config: user 'jane': the credential program '{login}' failed with exit code 3: "
        "no session,\nlog in first Get it from example.com"
    )


async def test_only_the_end_of_a_long_complaint_is_shown(program: Written) -> None:
    told = await failure(plugin(program("sys.stderr.write('x' * 100000 + 'the end'); sys.exit(1)")))
    assert len(told) < 1200
    assert told.endswith("the end")


async def test_what_a_program_was_given_does_not_show(program: Written) -> None:
    login = program("print(os.environ['KEY'], file=sys.stderr); sys.exit(1)")
    made = plugin(login, env=(("KEY", "hunter2"),), args=("--secret", "hunter2"))
    assert "hunter2" not in await failure(made)
    assert "hunter2" not in repr(made)


@pytest.mark.parametrize("command", ["no-such-program", "/no/such/program"])
async def test_a_program_that_is_not_there_is_named_with_the_hint(command: str) -> None:
    told = await failure(plugin(command, install_hint="brew install it"))
    assert f"{command!r} is not there" in told
    assert told.endswith("brew install it")


async def test_a_program_that_may_not_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "login").write_text("")
    assert "cannot be run: Permission denied" in await failure(plugin(str(tmp_path / "login")))


async def test_a_program_that_hangs_is_ended_with_its_children(program: Written) -> None:
    login = program(
        """
        import subprocess
        child = subprocess.Popen(["sleep", "1000"])
        (here / "child").write_text(str(child.pid))
        child.wait()
        """
    )
    assert "did not finish within 1 s" in await failure(plugin(login, timeout=1.0))
    pid = int((Path(login).parent / "child").read_text())
    await until(lambda: _gone(pid))


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1].startswith("Z")
    except OSError:
        return True


async def test_a_program_that_needs_a_terminal_is_refused_without_one(program: Written) -> None:
    login = program("give(token='t')")
    told = await failure(plugin(login, always_interactive=True, terminal=lambda: False))
    assert "needs a terminal (interactiveMode: Always)" in told
    assert not (Path(login).parent / "runs").exists()


async def test_a_program_that_needs_a_terminal_gets_it(program: Written) -> None:
    login = program("give(token=str(json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive']))")
    found = await plugin(login, always_interactive=True, terminal=lambda: True).run()
    assert found.identity.authorization == "Bearer True"


# What it prints


def printed(version: str = V1, **status: object) -> bytes:
    return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": version, "status": status})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "is no ExecCredential"),
        (b"hunter2", "is no ExecCredential"),
        (b'["hunter2"]', "is no ExecCredential"),
        (printed(V1BETA1, token="hunter2"), "but is configured for"),
        (b'{"kind": "Secret", "apiVersion": "v1"}', "kind 'Secret' of 'v1'"),
        (msgspec.json.encode({"kind": "ExecCredential", "apiVersion": V1}), "has no status"),
        (printed(), "no token and no clientCertificateData"),
        (printed(token=""), "no token and no clientCertificateData"),
        (printed(token={"hunter2": 1}), "$.status.token"),
        (printed(token="hunter2 hunter2"), "the token holds spaces"),
        (printed(clientCertificateData="hunter2"), "it takes both or none"),
        (printed(token="t", clientKeyData="hunter2"), "it takes both or none"),
        (printed(clientCertificateData="hunter2", clientKeyData="hunter2"), "is no PEM certificate"),
        (printed(token="hunter2", expirationTimestamp="tomorrow"), "$.status.expirationTimestamp"),
        (printed(token="hunter2", expirationTimestamp="2026-01-01T00:00:00"), "$.status.expirationTimestamp"),
    ],
)
def test_what_is_no_credential_is_refused_and_does_not_show(text: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_credential(text, api_version=V1)
    assert told in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_both_versions_are_understood(version: str) -> None:
    found = read_credential(
        printed(version, token="t", expirationTimestamp="2026-01-01T00:00:00Z"), api_version=version
    )
    assert found.expires == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("stated", "counts"), [("2020-01-01T00:00:00Z", "stated"), ("2090-01-01T00:00:00Z", "own")])
def test_the_first_of_two_ends_counts(stated: str, counts: str) -> None:
    own = datetime(2030, 1, 1, tzinfo=UTC)
    pair = Authority().client("jane", ends=own)
    status = {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
    found = read_credential(printed(**status, expirationTimestamp=stated), api_version=V1)
    assert found.expires == (own if counts == "own" else datetime(2020, 1, 1, tzinfo=UTC))


# As credentials


async def test_a_program_runs_once_for_all_who_ask(program: Written) -> None:
    login = program("time.sleep(0.2); give(token='t')")
    credentials = plugin(login).credentials(SystemClock())
    first, *others = (asyncio.create_task(credentials.identity()) for _ in range(20))
    await asyncio.sleep(0.1)
    first.cancel()
    assert {(await other).authorization for other in others} == {"Bearer t"}
    assert runs(login) == 1


async def test_a_program_runs_again_when_what_it_gave_has_ended(
    program: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kedge.kube.connect.exec_plugin.RUN_AGAIN", 0.0)
    login = program("give(token=str(len((here / 'runs').read_text())), expirationTimestamp='2020-01-01T00:00:00Z')")
    credentials = plugin(login).credentials(SystemClock())
    assert [(await credentials.identity()).authorization for _ in range(3)] == ["Bearer 1", "Bearer 2", "Bearer 3"]


async def test_refusals_do_not_make_a_program_run_in_a_loop(program: Written) -> None:
    login = program("give(token='t')")
    credentials = plugin(login).credentials(SystemClock())
    for _ in range(10):
        assert not credentials.refused(await credentials.identity())
    assert runs(login) == 1
