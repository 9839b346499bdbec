"""`kedge plan`: previews a change. The command and its options; `preview` simulates, and is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kedge.cli.verbs import NOT_DONE, hub_options, output_option

if TYPE_CHECKING:
    from kedge.cli.targets import Hub


def _seconds(_: click.Context, param: click.Parameter, value: str) -> float:
    """Read a duration as Go writes it, such as 90s or 1h30m."""
    from kedge.api.times import parse_duration

    try:
        return max(0.0, parse_duration(value).total_seconds())
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from None


def _by_cluster(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Read durations by cluster, such as cluster-2=90s. One without a name is for all other clusters."""
    split = (value.rpartition("=") for value in values)
    return {cluster: _seconds(context, param, text) for cluster, _, text in split}


@click.command()
@click.argument("name", metavar="[PLACEMENT | GROUP | ROLLOUT | BINDING]", required=False)
@click.option(
    "-n",
    "--namespace",
    help="The namespace of a ResourcePlacement, a rollout group, a rollout in batches or a binding.",
)
@click.option(
    "-f",
    "--file",
    help="The objects that you would apply: placements, staged update runs, resources, StatefulSets of rollout "
    "groups, rollouts in batches and their workloads, bindings and what they propagate. -: standard input.",
)
@click.option(
    "--from",
    "source",
    help="Read the fleet from this file instead of the hub. --save and kubectl get -o yaml write one.",
)
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Save the fleet as it is now to this file."
)
@click.option(
    "--fail",
    multiple=True,
    metavar="CLUSTER|ZONE",
    help="Assume that the change never becomes available on this cluster, or ready in this zone; repeatable.",
)
@click.option(
    "--ready-after",
    "ready",
    callback=_by_cluster,
    multiple=True,
    metavar="[CLUSTER|ZONE=]TIME",
    help="Assume that clusters or pods of zones, or those of one, take this long; repeatable.  "
    "[default: as measured last time]",
)
@click.option(
    "--approve-after",
    callback=_seconds,
    default="0s",
    metavar="TIME",
    help="Assume that approvals take this long.  [default: 0s]",
)
@click.option("--no-approval", is_flag=True, help="Assume that nobody approves anything.")
@click.option(
    "--within", callback=_seconds, default="24h", show_default=True, metavar="TIME", help="Simulate at most this long."
)
@click.option("--no-worst", is_flag=True, help="Do not simulate the worst case, which takes as long again.")
@click.option(
    "--dialect",
    type=click.Choice(["seed", "kubefleet"]),
    default="seed",
    help="The dialect of the hub: see `kedge hub`.",
)
@output_option("text", "json", "yaml")
@hub_options
def plan(
    name: str | None,
    namespace: str | None,
    file: str | None,
    source: str | None,
    save: Path | None,
    fail: tuple[str, ...],
    ready: dict[str, float],
    approve_after: float,
    no_approval: bool,
    within: float,
    no_worst: bool,
    dialect: str,
    form: str,
    hub: Hub,
) -> None:
    """Preview a change, wave by wave; nothing is written to any cluster.

    With -f, preview what the objects in the file would do. Without it, preview how PLACEMENT, rollout group GROUP or
    ROLLOUT in batches (group/NAME, rollouttrait/NAME and so on leave no doubt) goes on from now. Of a rollout in
    batches, this is its batches, how many pods there are meanwhile, what has to say yes, and what would refuse it. Of a
    binding (binding/NAME), this is the order of its clusters, and how many pods stay available.

    Exits with 0 if every cluster or pod gets the change, with 3 if not, with 1 if that is unknown.
    """
    from kedge.api.dialect import Dialect
    from kedge.cli.batch_preview import preview_rollouts
    from kedge.cli.batch_preview_text import print_rollouts
    from kedge.cli.binding_preview import preview_bindings
    from kedge.cli.binding_preview_text import print_bindings
    from kedge.cli.group_preview import preview_groups
    from kedge.cli.group_preview_text import print_groups
    from kedge.cli.preview import PreviewOptions, read_objects, run_preview_command
    from kedge.cli.preview_text import print_preview

    if no_approval and approve_after:
        raise click.UsageError("--no-approval says that nobody approves, and --approve-after when: leave one out")
    options = PreviewOptions(
        file=file,
        placement=name,
        namespace=namespace,
        source=source,
        save=save,
        fail=fail,
        ready={cluster: seconds for cluster, seconds in ready.items() if cluster},
        ready_all=ready.get(""),
        approve_after=None if no_approval else approve_after,
        within=within,
        worst=not no_worst,
        dialect=Dialect(dialect),
    )
    changed = read_objects(file) if file else ()
    if (bindings := preview_bindings(hub, options, changed)) is not None:
        print_bindings(bindings, form)
        _exit(done=bindings.is_done)
    elif (rollouts := preview_rollouts(hub, options, changed) if name or changed else None) is not None:
        print_rollouts(rollouts, form)
        _exit(done=rollouts.is_done)
    elif (groups := preview_groups(hub, options, changed)) is not None:
        print_groups(groups, form)
        _exit(done=groups.is_done)
    elif (placements := run_preview_command(hub, options, changed)) is not None:
        print_preview(placements, form)
        _exit(done=placements.is_done)


def _exit(*, done: bool) -> None:
    if not done:
        raise SystemExit(NOT_DONE)
