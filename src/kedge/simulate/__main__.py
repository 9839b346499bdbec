"""`python -m kedge.simulate MODULE:FUNCTION --seed N`: run a scenario, or see a failed one again."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter

import click
import msgspec

from kedge.simulate.faults import NAMED, Counts, Faults, fault_table, parse_faults
from kedge.simulate.run import Failed, Report, load, run
from kedge.simulate.trace import Entry


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("scenario")
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="How many, from that one on.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Take each nth seed only.")
@click.option("--faults", default="none", show_default=True, help=f"{', '.join(NAMED)}, or NAME=SHARE,...")
@click.option("--trace", is_flag=True, help="Print everything that passes between processes and servers.")
@click.option("--figures", is_flag=True, help="Print what each run came to, and how fast.")
@click.option("--counts", is_flag=True, help="Print what was counted in all runs, as a last line of JSON.")
@click.option("--table", "tells", is_flag=True, help="Print which faults hit which writes, in all runs.")
@click.option("--go-on", is_flag=True, help="Go on after a seed that fails.")
def main(
    scenario: str,
    seed: int,
    seeds: int,
    every: int,
    faults: str,
    trace: bool,
    figures: bool,
    counts: bool,
    tells: bool,
    go_on: bool,
) -> None:
    """Run SCENARIO (module:function) in virtual time, from one seed or several; prints a digest for each."""
    chosen = _faults(faults)
    _check(scenario)
    counted: Counts = Counter()
    failures = 0
    for number in range(seed, seed + seeds * every, every):
        if number > seed:
            _keep_what_stays()
        began = time.perf_counter()
        try:
            report = run(scenario, seed=number, faults=chosen, tell=_print if trace else None)
        except Failed as failed:
            click.echo(f"seed {number} failed: {failed}", err=True)
            failures += 1
            if go_on:
                continue
            break
        counted.update(dict(report.counts))
        click.echo(f"{number} {report.digest}")
        if figures:
            click.echo(_figures(report, time.perf_counter() - began))
    if tells:
        click.echo(fault_table(counted))
    if counts:
        click.echo(msgspec.json.encode(sorted(counted.items())).decode())
    sys.exit(1 if failures else 0)


def _keep_what_stays() -> None:
    """Have no later collection look at what outlives the runs: modules, and what was compiled from schemas."""
    gc.collect()
    gc.freeze()


def _faults(text: str) -> Faults:
    try:
        return parse_faults(text)
    except (ValueError, TypeError) as error:
        raise click.BadParameter(str(error), param_hint="--faults") from None


def _check(scenario: str) -> None:
    try:
        load(scenario)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="SCENARIO") from None


def _print(entry: Entry) -> None:
    click.echo(str(entry))


def _figures(report: Report, took: float) -> str:
    counts = {"requests": report.requests, "watch lines": report.lines, "turns": report.turns, "steps": report.steps}
    rates = ", ".join(f"{count} {what} ({count / took:.0f}/s)" for what, count in counts.items())
    return f"  {report.seconds:.0f} s of virtual time in {took:.2f} s: {rates}, {report.writes} writes"


if __name__ == "__main__":
    main()
