"""`kedge align`: the role beside a Karmada. `align_process` runs it, and is imported only then."""

from __future__ import annotations

from typing import Any

import click

from kedge.cli.roles import file_option, leader_options, process_options


@click.command()
@file_option("--kubeconfig", "the Karmada")
@click.option("--context", help="The context of the Karmada.")
@leader_options
@process_options
def align(**told: Any) -> None:
    """Run beside a Karmada: its Deployments keep one budget over all clusters.

    Aligned are Deployments whose policy has the annotation kedge.dev/align: "true", divides their replicas, and selects
    nothing else. `kedge install align` prints the rights that this needs on the Karmada.
    """
    from kedge.cli.align_process import run_align

    run_align(**told)
