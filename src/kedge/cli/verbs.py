"""The daily verbs: get, status, explain, history; pause, resume, rollback, unpin; approve, stop, retry, abort.

Every verb that changes something patches one object, so kubectl can do it too. What a verb needs is imported when it
runs, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kedge.cli.targets import Hub

F = TypeVar("F", bound=Callable[..., Any])

NOT_DONE = 3
"""Exit code: the placement exists, and is not available (yet)."""


def hub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose the hub. The command gets that hub."""

    @wraps(command)
    def with_hub(*, kubeconfig: Path | None, context: str | None, **told: Any) -> Any:
        from kedge.cli.targets import Hub

        return command(hub=Hub(kubeconfig, context), **told)

    asked: Callable[..., Any] = with_hub
    for option in (
        click.option("--context", help="The context of the hub.  [default: the current one]"),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The kubeconfig of the hub.  [default: $KUBECONFIG, then ~/.kube/config]",
        ),
    ):
        asked = option(asked)
    return asked


def _suited(context: click.Context, _: click.Parameter, name: str) -> str:
    """Refuse KIND/NAME of a kind that the verb is not for."""
    from kedge.cli.unsuited_verbs import unsuited

    if problem := unsuited(context.info_name or "", name):
        raise click.ClickException(problem)
    return name


def placement_argument(command: F) -> F:
    """The argument that names a placement."""
    command = click.option("-n", "--namespace", help="The namespace of a namespaced object.")(command)
    return click.argument("placement", metavar="[KIND/]NAME", callback=_suited)(command)


def output_option(*forms: str) -> Callable[[F], F]:
    """The option for the form of the output."""
    return click.option("-o", "--output", "form", type=click.Choice(forms), default=forms[0], show_default=True,
                        help="The form of the output.")  # fmt: skip


@click.command()
@click.argument("names", nargs=-1, metavar="[groups | rollouts | bindings] [NAME]...")
@click.option("-n", "--namespace", help="List only what is in this namespace.")
@output_option("table", "json", "yaml")
@hub_options
def get(names: tuple[str, ...], namespace: str | None, form: str, hub: Hub) -> None:
    """List placements and staged update runs, and their progress.

    `kedge get groups [GROUP]...` lists rollout groups: StatefulSets in zones. `kedge get rollouts [NAME]...` lists
    rollouts in batches, of one kind with `rollouttraits`, `approllouts` and so on. `kedge get bindings [NAME]...` lists
    workloads that are divided over clusters by one budget.
    """
    from kedge.cli.batches import kinds_named, run_get_rollouts
    from kedge.cli.bindings import bindings_named, run_get_bindings
    from kedge.cli.groups import GROUPS, run_get_groups
    from kedge.cli.output import run_get

    rollouts, bindings = kinds_named(names), bindings_named(names)
    if rollouts is not None:
        run_get_rollouts(hub, *rollouts, namespace, form)
    elif bindings is not None:
        run_get_bindings(hub, *bindings, namespace, form)
    elif names and names[0] in GROUPS:
        run_get_groups(hub, names[1:], namespace, form)
    else:
        run_get(hub, names, namespace, form)


@click.command()
@placement_argument
@click.option("-w", "--watch", is_flag=True, help="Follow it until it is available, or until the run has ended.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Follow it for at most this many seconds.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show everything, however long the tree.")
@output_option("tree", "json", "yaml")
@hub_options
def status(
    placement: str,
    namespace: str | None,
    watch: bool,
    timeout: float | None,
    everything: bool,
    form: str,
    hub: Hub,
) -> None:
    """Show a placement, a staged update run, a rollout group, a rollout in batches or a binding as a tree.

    Shows the clusters of a placement and the objects on them, the stages of a run, the zones of a group, the batches of
    a rollout, or what the clusters of a binding were granted. KIND/NAME leaves no doubt: placement/web, run/web,
    group/web, rollouttrait/web, rollout/web, approllout/web, applicationdeployment/web. A binding is always named so:
    binding/web-deployment.

    Exits with 0 if what the hub has now is available on every cluster, if the run or the rollout has succeeded and was
    not rolled back, or if every pod of the group is updated and ready; with 3 if not (yet); with 1 if that is unknown.
    """
    from kedge.cli.batches import rollout_status
    from kedge.cli.bindings import binding_status
    from kedge.cli.groups import group_status
    from kedge.cli.output import run_status

    for of_kind in (binding_status, rollout_status, group_status):
        done = of_kind(hub, placement, namespace, watch=watch, timeout=timeout, form=form)
        if done is not None:
            raise SystemExit(0 if done else NOT_DONE)
    if not run_status(hub, placement, namespace, watch=watch, timeout=timeout, everything=everything, form=form):
        raise SystemExit(NOT_DONE)


@click.command()
@placement_argument
@click.argument("cluster", required=False)
@output_option("text", "json", "yaml")
@hub_options
def explain(placement: str, cluster: str | None, namespace: str | None, form: str, hub: Hub) -> None:
    """Explain why a placement, a staged update run, a rollout group, a rollout in batches or a binding is where it is.

    With CLUSTER, explain that cluster alone; of a rollout group, that zone or pod; of a rollout in batches, that batch.
    """
    from kedge.cli.batches import explain_rollout
    from kedge.cli.bindings import explain_binding
    from kedge.cli.groups import explain_group
    from kedge.cli.output import run_explain

    for of_kind in (explain_binding, explain_rollout, explain_group):
        if of_kind(hub, placement, namespace, cluster, form):
            return
    run_explain(hub, placement, namespace, cluster, form)


@click.command()
@placement_argument
@output_option("table", "json", "yaml")
@hub_options
def history(placement: str, namespace: str | None, form: str, hub: Hub) -> None:
    """List the revisions of a placement and the clusters that have them."""
    from kedge.cli.output import run_history

    run_history(hub, placement, namespace, form)


@click.command()
@placement_argument
@hub_options
def pause(placement: str, namespace: str | None, hub: Hub) -> None:
    """Pause the rollout of a placement, or a rollout in batches."""
    from kedge.cli.batches import rollout_verb
    from kedge.cli.placement_verbs import run_pause
    from kedge.plan.batching.rollout_verbs import RolloutVerb

    if not rollout_verb(hub, RolloutVerb.pause, placement, namespace):
        run_pause(hub, placement, namespace)


@click.command()
@placement_argument
@hub_options
def resume(placement: str, namespace: str | None, hub: Hub) -> None:
    """Resume a paused placement, a stopped staged update run or a paused rollout in batches."""
    from kedge.cli.batches import rollout_verb
    from kedge.cli.placement_verbs import run_resume
    from kedge.plan.batching.rollout_verbs import RolloutVerb

    if not rollout_verb(hub, RolloutVerb.resume, placement, namespace):
        run_resume(hub, placement, namespace)


@click.command()
@placement_argument
@hub_options
def unpin(placement: str, namespace: str | None, hub: Hub) -> None:
    """Let a rolled back placement move to the newest revision again."""
    from kedge.cli.placement_verbs import run_unpin

    run_unpin(hub, placement, namespace)


@click.command()
@placement_argument
@click.option(
    "--to", "index", type=click.IntRange(min=0), help="The revision to roll back to.  [default: the previous one]"
)
@hub_options
def rollback(placement: str, namespace: str | None, index: int | None, hub: Hub) -> None:
    """Roll back a placement, a staged update run or a rollout in batches.

    A placement goes back to an earlier revision, under the same budget; `kedge unpin` lets it move to the newest again.
    A run is ended, and the clusters it has started to update get back what they had. A rollout in batches moves back to
    what ran before it, in its batches.
    """
    from kedge.cli.batches import rollout_verb
    from kedge.cli.placement_verbs import run_rollback
    from kedge.plan.batching.rollout_verbs import RolloutVerb

    if index is not None or not rollout_verb(hub, RolloutVerb.rollback, placement, namespace):
        run_rollback(hub, placement, namespace, index)


def run_argument(command: F) -> F:
    """The argument that names a run."""
    command = click.option("-n", "--namespace", help="The namespace of a StagedUpdateRun.")(command)
    return click.argument("run", callback=_suited)(command)


@click.command()
@run_argument
@click.argument("stage", required=False)
@click.option("-m", "--message", default="", help="The reason, for those who read the run later.")
@hub_options
def approve(run: str, stage: str | None, namespace: str | None, message: str, hub: Hub) -> None:
    """Approve a stage of a staged update run.

    Without STAGE, approve the one stage that waits for approval.
    """
    from kedge.cli.runs import run_approve

    run_approve(hub, run, stage, namespace, message)


@click.command()
@run_argument
@hub_options
def stop(run: str, namespace: str | None, hub: Hub) -> None:
    """Stop a staged update run; `kedge resume` continues it.

    Clusters that are being updated finish. No other cluster starts.
    """
    from kedge.cli.runs import run_verb
    from kedge.plan.staging.verbs import RunVerb

    run_verb(hub, RunVerb.stop, run, namespace)


@click.command()
@placement_argument
@hub_options
def abort(placement: str, namespace: str | None, hub: Hub) -> None:
    """Abort a rollout in batches for good. What has moved stays where it is.

    `kedge retry` starts it again, `kedge rollback` goes back.
    """
    from kedge.cli.batches import rollout_verb
    from kedge.plan.batching.rollout_verbs import RolloutVerb

    rollout_verb(hub, RolloutVerb.abort, placement, namespace, must_be=True)


@click.command()
@placement_argument
@hub_options
def retry(placement: str, namespace: str | None, hub: Hub) -> None:
    """Retry what failed in a staged update run, or start a failed rollout in batches again."""
    from kedge.cli.batches import rollout_verb
    from kedge.cli.runs import run_verb
    from kedge.plan.batching.rollout_verbs import RolloutVerb
    from kedge.plan.staging.verbs import RunVerb

    if not rollout_verb(hub, RolloutVerb.retry, placement, namespace):
        run_verb(hub, RunVerb.retry, placement, namespace)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for a shell to source."""
    from click.shell_completion import get_completion_class

    main = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "kedge", "_KEDGE_COMPLETE").source())


VERBS = (get, status, explain, history, pause, resume, rollback, unpin, approve, stop, abort, retry, completion)
