"""`n00dles-testing powerloss`: what can be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..exits import EXIT_CODES
from .shared_options import expect_two_files, html_option, json_option, limit_option, sample_option, seed_option

__all__ = ["powerloss"]


@click.command(
    epilog=f"""\b
Examples:
  n00dles-testing powerloss sqlite:///runs.db
  n00dles-testing powerloss tests/my_store.py:open_store --model ext4 --json powerloss.json
  n00dles-testing powerloss mypackage.store:open_store --html powerloss.html

\b
Models, each of which is required but strict:
  kill       the process is killed and the machine stays up
  ext4       ext4 as it is mounted by default
  journaled  XFS, or ext4 with noauto_da_alloc
  strict     nothing but what POSIX promises

System calls are traced on Linux, where the kernel permits it, without root and without strace; elsewhere nothing is
tried, and the output says so.

{EXIT_CODES}"""
)
@click.argument("target")
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(["kill", "ext4", "journaled", "strict"]),
    help="Only this model of what a disk keeps. May be repeated. Default: all, and syncs that fail.",
)
@sample_option(
    "At most N states of the disk under each model, but always the least and the most it may hold at a moment."
)
@seed_option("the sample")
@limit_option(
    5.0,
    "A call that takes longer, on what a power loss has left, hangs: a fault (WEDGED). After three such states "
    "the rest of a model is not tried.",
)
@json_option("the report")
@html_option
def powerloss(target: str, json_file: Path | None, html_file: Path | None, **options: Any) -> None:
    """Cut the power under a state store at every moment, and open it on everything the disk may then hold.

    TARGET is what check takes. A few calls of the store are traced: two runs are created, saved, also both at once,
    closed, opened again, saved, and one is deleted and created anew. From the recording every state is built that the
    disk could be in had the power failed at any moment, and in each the store must open, load what it acknowledged, and
    keep saving. Of a store that survives this, each sync fails once as well. These are the clauses P01, P02 and P03. A
    fault under a model that was named counts, also one under strict.
    """
    from ..command_powerloss import run_powerloss

    expect_two_files(json_file, html_file)
    raise SystemExit(run_powerloss(target, options, json_file, html_file))
