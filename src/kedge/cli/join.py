"""`kedge join`: makes a cluster a member of the fleet, as far as that is done on the hub; says what is left to do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from kedge.api.times import parse_duration
from kedge.cli.roles import file_option


def pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE`, each."""
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is no label: write KEY=VALUE")
    return {key: content for key, _, content in (value.partition("=") for value in values)}


def token_duration(_: click.Context, __: click.Parameter, value: str) -> timedelta:
    """A duration that an API server gives a token."""
    try:
        length = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if length < timedelta(minutes=10):
        raise click.BadParameter(f"{value} is too short: an API server gives no token for less than 10m")
    return length


@click.command()
@click.argument("name")
@file_option("--kubeconfig", "the hub")
@click.option("--context", help="The context of the hub.")
@click.option("--user", help="Who the member's agent is on the hub.  [default: a service account of its own]")
@click.option("--heartbeat", type=click.IntRange(1, 600), default=60, show_default=True,
              help="Seconds between two reports of its agent.")  # fmt: skip
@click.option(
    "--label",
    "labels",
    metavar="KEY=VALUE",
    callback=pairs,
    multiple=True,
    help="A label to pick the cluster by; repeatable.",
)
@click.option("--agent-kubeconfig", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write a kubeconfig for its agent there, with a token; nobody else can read it.")  # fmt: skip
@click.option("--token-duration", default="1h", show_default=True, callback=token_duration,
              help="How long a token is good, 10m at least. The agent renews it at half of that.")  # fmt: skip
def join(
    name: str,
    kubeconfig: Path | None,
    context: str | None,
    user: str | None,
    heartbeat: int,
    labels: dict[str, str],
    agent_kubeconfig: Path | None,
    token_duration: timedelta,
) -> None:
    """Make NAME a member of the fleet: on the hub; and print what to run on the member."""
    from kedge.cli.joining import Agent, run_join

    if user is not None and agent_kubeconfig is not None:
        raise click.UsageError("--agent-kubeconfig is for a service account: who --user is has credentials already")
    run_join(name, kubeconfig, context, user, heartbeat, labels, Agent(agent_kubeconfig, token_duration))
