"""`kedge install`: prints the manifests that a role needs in its cluster, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from kedge import __version__
from kedge.cli.apis import FLEET, api_option, api_words

_KINDS = r"[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9.-]*)?"
_NAMESPACE = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_IMAGE = click.option("--image", default=f"kedge:{__version__}", show_default=True, help="The image to run.")
_REPLICAS = click.option("--replicas", type=click.IntRange(1, 9), default=2, show_default=True,
                         help="Number of processes. One of them leads.")  # fmt: skip
_DIALECT = click.option("--dialect", type=click.Choice(["seed", "kubefleet"]), default="seed", show_default=True,
                        help="As for `kedge hub`. The CRDs differ as well.")  # fmt: skip
_OBJECT_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"


def secret_name(_: click.Context, __: click.Parameter, value: str) -> str:
    """Read the name of a Secret, or nothing."""
    if value and not re.fullmatch(_OBJECT_NAME, value):
        raise click.BadParameter(f"{value!r} is no name of a Secret: write it as in `kubectl get secrets`")
    return value


_NOTIFICATIONS = click.option(
    "--notifications",
    metavar="SECRET",
    default="",
    callback=secret_name,
    help="Who is notified of events: the Secret with the file notifications.yaml, in the namespace of the Deployment.",
)


def install_hub(api: str = FLEET) -> str:
    """What to type when a cluster does not serve the kinds of a hub."""
    kinds = "crds" if api == FLEET else "crds --karmada"
    command = f"kedge install hub{api_words(api)} | kubectl apply -f -"
    return f"`{command}` makes a cluster a hub, `kedge {kinds}` prints the kinds alone"


def install_member(name: str, api: str = FLEET) -> str:
    """What to type when a cluster does not serve the kinds of a member."""
    command = f"kedge install member {name}{api_words(api)} | kubectl apply -f -"
    return f"`{command}` installs them, `kedge crds` prints the kinds alone"


def listed(pattern: str, such_as: str) -> Callable[[click.Context, click.Parameter, str | None], tuple[str, ...]]:
    """Read names separated by commas, each of this form."""

    def read(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(value.split(","))) if value is not None else ()
        for one in found:
            if not re.fullmatch(pattern, one):
                raise click.BadParameter(f"{one!r} is no such name: write {such_as}")
        return found

    return read


def named(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Read names of namespaces, each given once or more."""
    for one in values:
        if not re.fullmatch(_NAMESPACE, one):
            raise click.BadParameter(f"{one!r} is no name of a namespace: write it as in `kubectl get namespaces`")
    return tuple(dict.fromkeys(values))


@click.group()
def install() -> None:
    """Print the manifests of a role, for `kubectl apply -f -`."""


@install.command()
@api_option
@_DIALECT
@_IMAGE
@_REPLICAS
@_NOTIFICATIONS
def hub(api: str, dialect: str, image: str, replicas: int, notifications: str) -> None:
    """Print what makes a cluster a hub.

    These are CRDs, admission policies, RBAC, and a Deployment that runs `kedge hub`.
    """
    import sys

    from kedge.api.crds import print_yaml
    from kedge.api.dialect import Dialect
    from kedge.cli import manifests

    if api == FLEET:
        found = manifests.hub(Dialect(dialect), image, replicas, notifications=notifications)
    else:
        found = manifests.karmada_hub(image, replicas, notifications=notifications)
    print_yaml(found, sys.stdout)


@install.command()
@click.argument("name")
@api_option
@_IMAGE
@click.option("--grant-any", is_flag=True,
              help="Let the agent place Roles with more rights than its own (escalate, bind).")  # fmt: skip
@click.option("--kinds", callback=listed(_KINDS, "configmaps,deployments.apps"),
              help="The only kinds to place, such as configmaps,deployments.apps  [default: any]")  # fmt: skip
@click.option("--namespaces", callback=listed(_NAMESPACE, "shop,web"),
              help="The only namespaces to place in, such as shop,web  [default: any]")  # fmt: skip
def member(name: str, **told: Any) -> None:
    """Print what makes a cluster the member NAME.

    These are a CRD, RBAC, and a Deployment that runs `kedge member`. The agent may place anything, unless --kinds or
    --namespaces restrict it.

    The agent finds the hub with a kubeconfig in the Secret kedge-hub: `kedge join NAME` prints how to create it.
    """
    import sys

    from kedge.api.crds import print_yaml
    from kedge.cli import manifests

    print_yaml(manifests.member(name, **told), sys.stdout)


@install.command()
def align() -> None:
    """Print the rights of `kedge align` on a Karmada, for its API server.

    The process runs wherever the Karmada's own controllers run, with a kubeconfig of the account that is printed.
    """
    import sys

    from kedge.api.crds import print_yaml
    from kedge.cli import manifests

    print_yaml(manifests.align(), sys.stdout)


@install.command()
@click.option("--namespace", "-n", "namespaces", multiple=True, required=True, callback=named,
              help="A namespace to manage; repeatable. The operator runs in the first.")  # fmt: skip
@click.option("--all-namespaces", "-A", "everywhere", is_flag=True,
              help="Manage all namespaces. The operator runs in --namespace.")  # fmt: skip
@_IMAGE
@click.option("--no-events", is_flag=True,
              help="Leave out the right to create Events: the rest are the rights of Grafana's operator.")  # fmt: skip
@click.option("--deployments", is_flag=True,
              help="Let the no-downscale webhook guard Deployments and ReplicaSets too, and read them.")  # fmt: skip
@click.option("--mirror", callback=listed(_KINDS, "deployments.apps"),
              help="Kinds to mirror replicas from, beside ReplicaTemplates, such as deployments.apps")  # fmt: skip
@click.option("--failure-policy", type=click.Choice(["Fail", "Ignore"]), default="Fail", show_default=True,
              help="What happens to writes while the webhooks cannot be reached.")  # fmt: skip
@click.option("--lease", is_flag=True,
              help="Run two replicas: one of them leads, both serve webhooks.")  # fmt: skip
@click.option("--batches", is_flag=True,
              help="Also roll workloads out in batches: their CRDs, rights and validating webhooks.")  # fmt: skip
@click.option("--metric-secrets", callback=listed(_OBJECT_NAME, "prometheus,thanos"),
              help="The only Secrets with credentials for metrics of rollouts.  [default: none]")  # fmt: skip
@_NOTIFICATIONS
def operator(namespaces: tuple[str, ...], image: str, no_events: bool, everywhere: bool, **told: Any) -> None:
    """Print what an operator of StatefulSets in zones needs.

    These are CRDs, RBAC, a Deployment, a Service and four webhook configurations, with the names that Grafana's
    rollout-operator has.
    """
    import sys

    from kedge.api.crds import print_yaml
    from kedge.cli.operator_manifests import OperatorInstall, manifests

    if everywhere and len(namespaces) > 1:
        raise click.UsageError("--all-namespaces manages them all: name only the one that the operator runs in")
    print_yaml(manifests(OperatorInstall(namespaces, image, everywhere, events=not no_events, **told)), sys.stdout)
