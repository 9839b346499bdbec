"""`kedge hub` and `kedge member`: the roles, on real clusters. `processes` runs them, and is imported only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kedge.cli.apis import api_option

F = TypeVar("F", bound=Callable[..., Any])


def address(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, int] | None:
    """Read an address: `HOST:PORT`, or `:PORT` for all interfaces."""
    if value is None:
        return None
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{value!r} is no address: write HOST:PORT, such as 127.0.0.1:8081, or :8081")
    return host.strip("[]"), int(port)


def names_and_contexts(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str | None], ...]:
    """Read members, each written as `NAME` or `NAME=CONTEXT`."""
    return tuple(_name_and_context(value) for value in values)


def _name_and_context(value: str) -> tuple[str, str | None]:
    name, equals, context = value.partition("=")
    if not name or (equals and not context):
        raise click.BadParameter(f"{value!r} names no member: write NAME, or NAME=CONTEXT")
    return name, context or None


def namespaced_name(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, str] | None:
    """Read the name of a Secret: `NAMESPACE/NAME`."""
    if value is None:
        return None
    namespace, slash, name = value.partition("/")
    if not namespace or not slash or not name or "/" in name:
        raise click.BadParameter(f"{value!r} names no Secret: write NAMESPACE/NAME")
    return namespace, name


def file_option(name: str, of: str) -> Callable[[F], F]:
    """An option for a kubeconfig."""
    return click.option(
        name,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"The kubeconfig of {of}.  [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]",
    )


def notifications_option(command: F) -> F:
    """The option of every process whose controllers record events."""
    return click.option(
        "--notifications",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Who is notified of events: a YAML file with receivers.",
    )(command)


def leader_options(command: F) -> F:
    """The options of a role of which one process acts at a time, and whose controllers record events."""
    for option in (
        notifications_option,
        click.option("--no-lease", is_flag=True,
                     help="Act at once, without leader election: there is no other process."),
        click.option("--lease-duration", type=click.IntRange(min=3), default=15, show_default=True,
                     help="Seconds without a renewal after which another process takes over."),
        click.option("--lease-namespace", default="fleet-system", show_default=True,
                     help="The namespace of the Lease for leader election."),
    ):  # fmt: skip
        command = option(command)
    return command


def process_options(command: F) -> F:
    """The options of every long-running process."""
    for option in (
        click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info",
                     show_default=True, help="The least severe messages to log."),
        click.option("--log-format", type=click.Choice(["json", "text"]),
                     help="The format of log lines.  [default: text on a terminal, else json]"),
        click.option("--qps", type=click.FloatRange(min=0), default=500, show_default=True,
                     help="Requests per second to each API server; 0: no limit."),
        click.option("--health", callback=address, metavar="HOST:PORT",
                     help="Where to serve /healthz, /readyz and /metrics."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command()
@api_option
@file_option("--kubeconfig", "the hub")
@click.option("--context", help="The context of the hub.")
@click.option(
    "--dialect",
    type=click.Choice(["seed", "kubefleet"]),
    default="seed",
    show_default=True,
    help="Whose behaviour to follow where Kedge and KubeFleet's agents of today differ.",
)
@click.option("--collect", type=click.FloatRange(min=0), default=0.1, show_default=True,
              help="Seconds to wait for further changes of selected resources before a new revision.")  # fmt: skip
@click.option("--interval", type=click.FloatRange(min=0), default=0.0, show_default=True,
              help="The least number of seconds between two revisions.")  # fmt: skip
@click.option("--enable-workload", is_flag=True,
              help="Workloads run on the hub itself, so PersistentVolumeClaims are not placed.")  # fmt: skip
@click.option("--force-delete-after", type=click.FloatRange(min=1), default=900.0, show_default=True,
              help="Seconds to wait for the agent of a leaving member.")  # fmt: skip
@leader_options
@process_options
def hub(**told: Any) -> None:
    """Run the hub: it selects, schedules, rolls out and reports.

    Which revisions there are (--dialect, --collect, --interval, --enable-workload, --force-delete-after) is about the
    kinds of KubeFleet.
    """
    from kedge.cli.processes import run_hub

    run_hub(**told)


@click.command()
@api_option
@file_option("--hub-kubeconfig", "the hub, as the member's agent")
@click.option("--hub-context", help="The context of the hub.")
@click.option("--hub-secret", metavar="NAMESPACE/NAME", callback=namespaced_name,
              help="Where to save a renewed token, on the member: the Secret that --hub-kubeconfig is mounted from.  "
                   "[default: the file itself]")  # fmt: skip
@file_option("--kubeconfig", "the members")
@click.option(
    "--member",
    "members",
    metavar="NAME[=CONTEXT]",
    callback=names_and_contexts,
    multiple=True,
    required=True,
    help="The name of a member in the fleet, and its context if there are several; repeatable.",
)
@click.option("--report-namespaces", is_flag=True,
              help="Report the namespaces of the member to the hub, for ResourcePlacements.")  # fmt: skip
@process_options
def member(**told: Any) -> None:
    """Run the agent of one or several members."""
    from kedge.cli.processes import run_members

    run_members(**told)
