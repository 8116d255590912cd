"""The options that several commands have, and what of them cannot be typed together.

What an option does is told in the words of its command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from .option_types import ReportFile, SecondsOption

__all__ = [
    "dask_option",
    "expect_one_kind_of_workers",
    "expect_two_files",
    "html_option",
    "json_option",
    "limit_option",
    "llm_option",
    "sample_option",
    "seed_option",
    "workers_option",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])

html_option = click.option(
    "--html", "html_file", type=ReportFile(), metavar="FILE", help="Write the report as one page for a browser."
)
llm_option = click.option(
    "--llm", type=click.Choice(["auto", "off"]), default="auto", show_default=True, help="The fake LLM server."
)


def json_option(what: str) -> Callable[[_Command], _Command]:
    """Return `--json`, the file that this is written to."""
    return click.option(
        "--json", "json_file", type=ReportFile(), metavar="FILE", help=f"Write {what} for other programs."
    )


def seed_option(decided: str) -> Callable[[_Command], _Command]:
    """Return `--seed`, which decides this."""
    return click.option("--seed", type=int, default=0, show_default=True, help=f"Decides {decided}.")


def limit_option(seconds: float, help_: str) -> Callable[[_Command], _Command]:
    """Return `--limit`: how long a call of a store may take, by default so many seconds."""
    return click.option(
        "--limit", type=SecondsOption(0.1), default=seconds, show_default=True, metavar="SECONDS", help=help_
    )


def sample_option(help_: str) -> Callable[[_Command], _Command]:
    """Return `--budget`, where it is a number: how many of all that could be tried are tried at most."""
    return click.option("--budget", type=click.IntRange(1), default=600, show_default=True, metavar="N", help=help_)


def workers_option(help_: str) -> Callable[[_Command], _Command]:
    """Return `--workers`: how many processes of this machine work at a time."""
    return click.option("--workers", type=click.IntRange(1), metavar="N", help=help_)


def dask_option(what_is_done: str) -> Callable[[_Command], _Command]:
    """Return `--dask`, by which the workers of a cluster do this."""
    return click.option(
        "--dask",
        metavar="ADDRESS",
        help=f"Have {what_is_done} by the workers of a Dask cluster, as tcp://10.0.0.7:8786. Needs the extra dask.",
    )


def expect_two_files(json_file: Path | None, html_file: Path | None) -> None:
    """Raise `click.UsageError` if both reports would go into the same file."""
    if json_file is not None and html_file is not None and json_file.absolute() == html_file.absolute():
        raise click.UsageError(f"--json and --html both name {json_file}; one report would replace the other.")


def expect_one_kind_of_workers(options: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` if there are to be workers here, and those of a cluster."""
    if options["dask"] is not None and options["workers"] is not None:
        raise click.UsageError(
            "--workers counts processes of this machine, and --dask has workers of its own; give one."
        )
