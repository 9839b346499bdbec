"""The `kedge` command. Each command imports what it needs when it runs, so that `--help` is quick."""

from pathlib import Path

import click

from kedge import __version__
from kedge.cli.align import align
from kedge.cli.install import install
from kedge.cli.join import join
from kedge.cli.operator import operator
from kedge.cli.preview_command import plan
from kedge.cli.roles import hub, member, notifications_option
from kedge.cli.rollout_operator import rollout_operator
from kedge.cli.verbs import VERBS


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kedge")
def main() -> None:
    """Roll changes out safely on Kubernetes, one proven step at a time."""


@main.command()
@click.option(
    "--dialect",
    type=click.Choice(["seed", "kubefleet"]),
    default="seed",
    show_default=True,
    help="Whose defaults and columns: those of Kedge, or those of KubeFleet's agents today.",
)
@click.option(
    "--zones",
    is_flag=True,
    help="Those of rollout groups instead: ReplicaTemplate and ZoneAwarePodDisruptionBudget. They have no dialects.",
)
@click.option(
    "--batches",
    is_flag=True,
    help="Those of rollouts in batches instead: Application, Component, Rollout and their like. They have no dialects.",
)
@click.option(
    "--karmada",
    is_flag=True,
    help="Those of Karmada instead, for a hub that has none: PropagationPolicy, ResourceBinding, Work and their like.",
)
@click.option(
    "--kruise",
    is_flag=True,
    help="That of OpenKruise's CloneSet instead, for embedded clusters. Elsewhere OpenKruise itself brings it.",
)
def crds(dialect: str, **others: bool) -> None:
    """Print the CustomResourceDefinitions of a fleet, for `kubectl apply -f -`."""
    import sys

    from kedge.api import crds
    from kedge.api.dialect import Dialect

    chosen = [name for name, is_chosen in others.items() if is_chosen]
    if len(chosen) > 1:
        options = ", ".join(f"--{name}" for name in others)
        raise click.UsageError(f"{options} print different definitions: use one of them")
    sets = {"zones": crds.zone_crds, "batches": crds.oam_crds, "karmada": crds.karmada_crds, "kruise": crds.kruise_crds}
    crds.print_yaml(sets[chosen[0]]() if chosen else crds.crds(Dialect(dialect)), sys.stdout)


@main.group(invoke_without_command=True)
@click.option("--then-fix", is_flag=True, help="Also show how a fix gets the rollout going again.")
@click.pass_context
def demo(context: click.Context, then_fix: bool) -> None:
    """Show a rollout in this process; no Kubernetes needed.

    A good release moves over three clusters. A bad one stops at the first cluster. Fails if anything else happens.
    """
    if context.invoked_subcommand is None:
        from kedge.cli.demo import run

        run(then_fix=then_fix)


@demo.command()
@click.option("--virtual", is_flag=True, help="Use virtual time: waits take no time.")
@click.option("--wait", metavar="TIME", help="How long to wait after staging.  [default: 10s; with --virtual, 1h]")
@click.option(
    "--yes", is_flag=True, help="Approve without asking. This is the default if standard input is no terminal."
)
def staged(virtual: bool, wait: str | None, yes: bool) -> None:
    """Show a rollout in stages, in this process.

    A good release goes through staging, a wait, canaries and an approval to production. A bad one ends in staging.
    Fails if anything else happens.
    """
    from kedge.cli.demo_staged import run

    run(virtual=virtual, wait=wait, yes=yes)


@demo.command()
def zones() -> None:
    """Show a rollout of StatefulSets in zones, in this process.

    A good release goes through three zones, one at a time. A bad one stops in the first, and its fix goes on. Fails if
    anything else happens.
    """
    from kedge.cli.demo_zones import run

    run()


@demo.command()
def batches() -> None:
    """Show a rollout in batches, in this process.

    A good release replaces ten pods in three batches. A bad one stops in its first batch, and is rolled back. Fails if
    anything else happens.
    """
    from kedge.cli.demo_batches import run

    run()


@demo.command()
def aligned() -> None:
    """Show a Deployment that is divided over two clusters and rolls as one, in this process.

    Counts all pods, beside those of a Deployment that is copied to both. Fails if fewer pods are available or more are
    there than its strategy allows, or if anything else happens.
    """
    from kedge.cli.demo_aligned import run

    run()


_FILE = click.option(
    "--kubeconfig",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The kubeconfig of the fleet.  [default: ~/.kedge/kubeconfig]",
)


@main.command()
@click.option(
    "--members", type=click.IntRange(0, 1000), default=4, show_default=True, help="Number of member clusters."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65000),
    default=0,
    help="The port of the hub; the members get the next ones. 0: any free ports.",
)
@_FILE
@click.option("--bare", is_flag=True, help="Run the clusters alone, without hub controllers and member agents.")
@click.option("--detach", is_flag=True, help="Return when the fleet is ready, and leave it running.")
@notifications_option
def up(members: int, port: int, file: Path | None, bare: bool, detach: bool, notifications: Path | None) -> None:
    """Run a local fleet for kubectl; no Kubernetes needed.

    Runs a hub and members in one process, and writes a kubeconfig with a context for each.
    """
    from kedge.cli import local_fleet

    if bare and notifications is not None:
        raise click.UsageError("--bare runs no controllers, so there is nothing to notify of: drop --notifications")
    place = (file or local_fleet.default_file()).absolute()
    if detach:
        local_fleet.detach(members, port, place, bare=bare, notifications=notifications)
        return
    from kedge.cli import fleet_process

    fleet_process.run(members, port, place, bare=bare, notifications=notifications)


@main.command()
@_FILE
def down(file: Path | None) -> None:
    """End the fleet of `kedge up`."""
    from kedge.cli import local_fleet

    local_fleet.down((file or local_fleet.default_file()).absolute())


for verb in (hub, member, align, operator, rollout_operator, install, join, plan, *VERBS):
    main.add_command(verb)
