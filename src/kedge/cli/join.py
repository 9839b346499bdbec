"""`kedge join`: makes a cluster a member of the fleet, as far as that is done on the hub; says what is left to do."""

from __future__ import annotations

from pathlib import Path

import click

from kedge.cli.roles import file_option


def pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE`, each."""
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is no label: write KEY=VALUE")
    return {key: content for key, _, content in (value.partition("=") for value in values)}


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
def join(
    name: str,
    kubeconfig: Path | None,
    context: str | None,
    user: str | None,
    heartbeat: int,
    labels: dict[str, str],
) -> None:
    """Make NAME a member of the fleet: on the hub; and print what to run on the member."""
    from kedge.cli.joining import run_join

    run_join(name, kubeconfig, context, user, heartbeat, labels)
