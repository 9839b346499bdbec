"""`kedge install`: prints the manifests that a role needs in its cluster, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from kedge import __version__

INSTALL_HUB = "`kedge install hub | kubectl apply -f -` makes a cluster a hub, `kedge crds` prints the kinds alone"
"""What to type when a cluster does not serve the kinds of a hub."""

_IMAGE = click.option("--image", default=f"kedge:{__version__}", show_default=True, help="The image to run.")
_REPLICAS = click.option("--replicas", type=click.IntRange(1, 9), default=2, show_default=True,
                         help="Number of processes. One of them leads.")  # fmt: skip
_DIALECT = click.option("--dialect", type=click.Choice(["seed", "kubefleet"]), default="seed", show_default=True,
                        help="As for `kedge hub`. The CRDs differ as well.")  # fmt: skip


def install_member(name: str) -> str:
    """What to type when a cluster does not serve the kinds of a member."""
    return f"`kedge install member {name} | kubectl apply -f -` installs them, `kedge crds` prints the kinds alone"


def listed(pattern: str, such_as: str) -> Callable[[click.Context, click.Parameter, str | None], tuple[str, ...]]:
    """Read names separated by commas, each of this form."""

    def read(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(value.split(","))) if value is not None else ()
        for one in found:
            if not re.fullmatch(pattern, one):
                raise click.BadParameter(f"{one!r} is no such name: write {such_as}")
        return found

    return read


@click.group()
def install() -> None:
    """Print the manifests of a role, for `kubectl apply -f -`."""


@install.command()
@_DIALECT
@_IMAGE
@_REPLICAS
def hub(dialect: str, image: str, replicas: int) -> None:
    """Print what makes a cluster a hub.

    These are CRDs, admission policies, RBAC, and a Deployment that runs `kedge hub`.
    """
    import sys

    from kedge.api.crds import print_yaml
    from kedge.api.dialect import Dialect
    from kedge.cli import manifests

    print_yaml(manifests.hub(Dialect(dialect), image, replicas), sys.stdout)


@install.command()
@click.argument("name")
@_IMAGE
@click.option("--grant-any", is_flag=True,
              help="Let the agent place Roles with more rights than its own (escalate, bind).")  # fmt: skip
@click.option("--kinds", callback=listed(r"[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9.-]*)?", "configmaps,deployments.apps"),
              help="The only kinds to place, such as configmaps,deployments.apps  [default: any]")  # fmt: skip
@click.option("--namespaces", callback=listed(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", "shop,web"),
              help="The only namespaces to place in, such as shop,web  [default: any]")  # fmt: skip
def member(name: str, image: str, grant_any: bool, kinds: tuple[str, ...], namespaces: tuple[str, ...]) -> None:
    """Print what makes a cluster the member NAME.

    These are a CRD, RBAC, and a Deployment that runs `kedge member`. The agent may place anything, unless --kinds or
    --namespaces restrict it.

    The agent finds the hub with a kubeconfig in the Secret kedge-hub: `kedge join NAME` prints how to create it.
    """
    import sys

    from kedge.api.crds import print_yaml
    from kedge.cli import manifests

    print_yaml(manifests.member(name, image, grant_any=grant_any, kinds=kinds, namespaces=namespaces), sys.stdout)
