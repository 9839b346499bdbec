"""The `kedge` command. Each command imports what it needs when it runs, so that `--help` is quick."""

import click

from kedge import __version__


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
    help="Whose defaults and columns: Kedge's own reading, or those of KubeFleet's agents today.",
)
def crds(dialect: str) -> None:
    """Print the CustomResourceDefinitions, for kubectl apply -f -."""
    import sys

    from kedge.api.crds import print_crds
    from kedge.api.dialect import Dialect

    print_crds(Dialect(dialect), sys.stdout)


@main.command()
@click.option("--objects", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many ConfigMaps.")
def demo(objects: int) -> None:
    """Show a controller at work on the embedded API server; no Kubernetes needed."""
    from kedge.cli.demo import run

    run(objects)
