"""`n00dles-testing faults`: what can be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..exits import EXIT_CODES
from .shared_options import expect_two_files, html_option, json_option, limit_option, sample_option, seed_option

__all__ = ["faults"]


@click.command(
    epilog=f"""\b
Examples:
  n00dles-testing faults sqlite:///runs.db
  n00dles-testing faults mypackage.store:open_store --how fail --json faults.json
  n00dles-testing faults tests/my_store.py:open_store --how kill --budget 100 --seed 7

System calls are traced and disturbed on Linux, where the kernel permits it, without root and without strace. Elsewhere,
and of a store that keeps no files below its location, it is the calls that Python tells of; the output says so.

{EXIT_CODES}"""
)
@click.argument("target")
@click.option(
    "--how",
    type=click.Choice(["kill", "fail", "all"]),
    default="all",
    show_default=True,
    help="Kill the process, or have the call fail: a full disk, a failing one, a short write, no free descriptor.",
)
@sample_option("At most N kills, and at most N faults; of more a sample is drawn, spread over all calls.")
@seed_option("the sample and the values")
@limit_option(20.0, "A call of the store that takes longer is killed, and fails.")
@json_option("the report")
@html_option
def faults(target: str, how: str, json_file: Path | None, html_file: Path | None, **options: Any) -> None:
    """Kill a state store at each of its system calls, and have each of them fail.

    TARGET is what check takes. Each call of the store, from the first creation to a delete, is made in a process of its
    own that is disturbed at one system call on its files, with every fault that this can meet; then the store is
    opened, judged, saved to and loaded. These are the clauses C03 and C04, which check tries with one fault a call.
    """
    from ..command_faults import run_faults

    expect_two_files(json_file, html_file)
    raise SystemExit(run_faults(target, how, options, json_file, html_file))
