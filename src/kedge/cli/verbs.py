"""The daily verbs: look at placements, explain them, hold them, let them go on, take them back.

Every one that changes something is a patch of one annotation, so kubectl can do it too. What each needs is imported
when it runs, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kedge.cli.asking import Hub

F = TypeVar("F", bound=Callable[..., Any])

NOT_DONE = 3
"""Exit code: the placement is there, and not (yet) available."""


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which hub is meant; the command is given that hub."""

    @wraps(command)
    def with_hub(*, kubeconfig: Path | None, context: str | None, **told: Any) -> Any:
        from kedge.cli.asking import Hub

        return command(hub=Hub(kubeconfig, context), **told)

    asked: Callable[..., Any] = with_hub
    for option in (
        click.option("--context", help="The context of the hub.  [default: the current one]"),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The file to read.  [default: $KUBECONFIG, then ~/.kube/config]",
        ),
    ):
        asked = option(asked)
    return asked


def of_placement(command: F) -> F:
    """Which placement is meant."""
    command = click.option("-n", "--namespace", help="The namespace of a ResourcePlacement.")(command)
    return click.argument("placement")(command)


def output(*forms: str) -> Callable[[F], F]:
    """How it is printed."""
    return click.option("-o", "--output", "form", type=click.Choice(forms), default=forms[0], show_default=True)


@click.command()
@click.argument("names", nargs=-1, metavar="[PLACEMENT|RUN]...")
@click.option("-n", "--namespace", help="Only the ResourcePlacements and StagedUpdateRuns of this namespace.")
@output("table", "json", "yaml")
@asking
def get(names: tuple[str, ...], namespace: str | None, form: str, hub: Hub) -> None:
    """List placements and staged update runs: what they roll out, and how far they have got."""
    from kedge.cli.answering import run_get

    run_get(hub, names, namespace, form)


@click.command()
@of_placement
@click.option("-w", "--watch", is_flag=True, help="Follow it until it is available.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds to follow it at most.")
@click.option("-a", "--all", "everything", is_flag=True, help="Leave nothing out, however long the tree.")
@output("tree", "json", "yaml")
@asking
def status(
    placement: str,
    namespace: str | None,
    watch: bool,
    timeout: float | None,
    everything: bool,
    form: str,
    hub: Hub,
) -> None:
    """Show a placement, its clusters, and what was placed on them; or a staged update run and its stages.

    Exits with 0 if what is on the hub now is available on every cluster (a run: has succeeded, and was not rolled
    back), 3 if not (yet), 1 if that cannot be found out.
    """
    from kedge.cli.answering import run_status

    if not run_status(hub, placement, namespace, watch=watch, timeout=timeout, everything=everything, form=form):
        raise SystemExit(NOT_DONE)


@click.command()
@of_placement
@click.argument("cluster", required=False)
@output("text", "json", "yaml")
@asking
def explain(placement: str, cluster: str | None, namespace: str | None, form: str, hub: Hub) -> None:
    """Say in words why a placement or a staged update run is where it is; with CLUSTER, there alone."""
    from kedge.cli.answering import run_explain

    run_explain(hub, placement, namespace, cluster, form)


@click.command()
@of_placement
@output("table", "json", "yaml")
@asking
def history(placement: str, namespace: str | None, form: str, hub: Hub) -> None:
    """List the revisions of a placement's resources, and which clusters have which."""
    from kedge.cli.answering import run_history

    run_history(hub, placement, namespace, form)


def _seconds(_: click.Context, param: click.Parameter, value: str) -> float:
    """A time as Go writes it, such as 90s or 1h30m."""
    from kedge.api.times import parse_duration

    try:
        return max(0.0, parse_duration(value).total_seconds())
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from None


def _by_cluster(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Times by cluster, as in cluster-2=90s; under no name, that of all others."""
    split = (value.rpartition("=") for value in values)
    return {cluster: _seconds(context, param, text) for cluster, _, text in split}


@click.command()
@click.argument("placement", required=False)
@click.option("-n", "--namespace", help="The namespace of a ResourcePlacement.")
@click.option("-f", "--file", help="What would be applied: placements, staged runs, resources; - is standard input.")
@click.option(
    "--from", "source", help="A file with the fleet, instead of the hub: of --save, or of kubectl get -o yaml."
)
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the fleet as it is to this file.")
@click.option("--fail", multiple=True, metavar="CLUSTER", help="A cluster on which it never becomes available.")
@click.option(
    "--ready-after",
    "ready",
    callback=_by_cluster,
    multiple=True,
    metavar="[CLUSTER=]TIME",
    help="How long clusters take, or one does.  [default: as measured last time]",
)
@click.option(
    "--approve-after", callback=_seconds, default="0s", metavar="TIME", help="How long approvals take.  [default: 0s]"
)
@click.option("--no-approval", is_flag=True, help="Nobody approves anything.")
@click.option("--within", callback=_seconds, default="24h", show_default=True, metavar="TIME", help="How far to look.")
@click.option("--no-worst", is_flag=True, help="Leave out the worst case, which takes as long again.")
@click.option("--dialect", type=click.Choice(["seed", "kubefleet"]), default="seed", help="That of the hub's role.")
@output("text", "json", "yaml")
@asking
def plan(
    placement: str | None,
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
    """Show what a change would do, wave by wave, before anything is touched.

    With -f, of what the file holds; without, what becomes of PLACEMENT if it goes on from now. Nothing is written to
    any cluster. Exits with 0 if every cluster gets there, 3 if not, 1 if it cannot be told.
    """
    from kedge.api.dialect import Dialect
    from kedge.cli.plan import Asked
    from kedge.cli.plan import plan as planned_by
    from kedge.cli.planned import show

    if no_approval and approve_after:
        raise click.UsageError("--no-approval says that nobody approves, and --approve-after when: leave one out")
    asked = Asked(
        file=file,
        placement=placement,
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
    found = planned_by(hub, asked)
    if found is None:
        return
    show(found, form)
    if not found.is_done:
        raise SystemExit(NOT_DONE)


@click.command()
@of_placement
@asking
def pause(placement: str, namespace: str | None, hub: Hub) -> None:
    """Hold a rolling placement where it is."""
    from kedge.cli.changing import run_pause

    run_pause(hub, placement, namespace)


@click.command()
@of_placement
@asking
def resume(placement: str, namespace: str | None, hub: Hub) -> None:
    """Let a paused placement go on, or a stopped staged update run."""
    from kedge.cli.changing import run_resume

    run_resume(hub, placement, namespace)


@click.command()
@of_placement
@asking
def unpin(placement: str, namespace: str | None, hub: Hub) -> None:
    """Let a placement that was rolled back go on to the newest resources."""
    from kedge.cli.changing import run_unpin

    run_unpin(hub, placement, namespace)


@click.command()
@of_placement
@click.option(
    "--to", "index", type=click.IntRange(min=0), help="The revision to go back to.  [default: the one before]"
)
@asking
def rollback(placement: str, namespace: str | None, index: int | None, hub: Hub) -> None:
    """Roll a placement back to earlier resources, under the same budget; `kedge unpin` goes to the newest again.

    Of a staged update run: end it, and bring the clusters it has begun with back to what they had.
    """
    from kedge.cli.changing import run_rollback

    run_rollback(hub, placement, namespace, index)


def of_run(command: F) -> F:
    """Which run is meant."""
    command = click.option("-n", "--namespace", help="The namespace of a StagedUpdateRun.")(command)
    return click.argument("run")(command)


@click.command()
@of_run
@click.argument("stage", required=False)
@click.option("-m", "--message", default="", help="Why, for those who look at the run later.")
@asking
def approve(run: str, stage: str | None, namespace: str | None, message: str, hub: Hub) -> None:
    """Say yes to what a staged update run asks: the one stage it waits at, or STAGE."""
    from kedge.cli.runs import run_approve

    run_approve(hub, run, stage, namespace, message)


@click.command()
@of_run
@asking
def stop(run: str, namespace: str | None, hub: Hub) -> None:
    """Stop a staged update run: what is on its way arrives, nothing else begins; `kedge resume` goes on."""
    from kedge.cli.runs import run_verb
    from kedge.plan.staging.verbs import Verb

    run_verb(hub, Verb.stop, run, namespace)


@click.command()
@of_run
@asking
def retry(run: str, namespace: str | None, hub: Hub) -> None:
    """Try once more what failed of a staged update run."""
    from kedge.cli.runs import run_verb
    from kedge.plan.staging.verbs import Verb

    run_verb(hub, Verb.retry, run, namespace)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete kedge's commands: source it."""
    from click.shell_completion import get_completion_class

    from kedge.cli import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "kedge", "_KEDGE_COMPLETE").source())


VERBS = (get, status, explain, history, plan, pause, resume, rollback, unpin, approve, stop, retry, completion)
