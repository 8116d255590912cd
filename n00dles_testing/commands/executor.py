"""`n00dles-testing executor`: what can be typed."""

from __future__ import annotations

from pathlib import Path

import click

from .option_types import TimeOption
from .shared_options import json_option, seed_option

__all__ = ["executor"]


@click.command(
    epilog="""\b
Examples:
  n00dles-testing executor
  n00dles-testing executor mypackage.loop:executor --examples 5000
  n00dles-testing executor loop.py:executor --only E06 --budget 60s --seed 7

\b
Exit codes:
  0    something was tried for every clause that was asked for, and nothing failed
  1    a clause failed, or showed nothing (VACUOUS)
  2    the command line or the executor cannot be used; nothing was tried
  130  interrupted
"""
)
@click.argument("target", required=False)
@click.option("--examples", type=click.IntRange(1), metavar="N", help="Try N scenarios. Default: 1000.")
@click.option(
    "--budget",
    type=TimeOption(),
    metavar="TIME",
    help="Try for so long: 60s, 5m. Without --examples it is the only limit.",
)
@seed_option("what is drawn")
@click.option("--only", multiple=True, metavar="ID", help="Only this clause, as E06. May be repeated.")
@click.option("--confirm/--no-confirm", default=True, help="Try what was found with real processes as well.")
@json_option("the report")
def executor(  # noqa: PLR0917 - click passes them by name
    target: str | None,
    examples: int | None,
    budget: float | None,
    seed: int,
    only: tuple[str, ...],
    json_file: Path | None,
    *,
    confirm: bool,
) -> None:
    """Prove that an executor keeps the contract, E01 to E18.

    TARGET is package.module:object, or path/to/file.py:object, with the methods run and resume. Without it the executor
    of n00dles is tried. Pipelines are generated, disturbed at generated moments (killed, cancelled, timed out,
    interrupted, with a store that fails), and resumed; each is held against an undisturbed run, and against what the
    pipeline alone says is due.
    """
    from ..show_campaign import run_executor, run_watched

    run = run_executor if target is None else run_watched
    raise SystemExit(
        run(target, examples=examples, seed=seed, budget=budget, only=only, confirm=confirm, json_file=json_file)
    )
