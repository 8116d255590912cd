"""`n00dles-testing explore`: what can be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..exits import EXIT_CODES
from .option_types import BudgetOption, SecondsOption
from .shared_options import dask_option, expect_one_kind_of_workers, json_option, llm_option, workers_option

__all__ = ["explore"]

_HOWS = (
    "kill",
    "interrupt",
    "cancel",
    "timeout",
    "refused",
    "reply-lost",
    "refused-once",
    "reply-lost-once",
    "slow",
)
"""What can be done to a run: the values of `crash.points.How`, which is not imported to read a command line."""


@click.command(
    epilog=f"""\b
Examples:
  n00dles-testing explore app.flows:content_pipeline --input topic="agentic search"
  n00dles-testing explore flows.py:triage --input text="where is my invoice" --input retries:=2
  n00dles-testing explore flows.py:triage --input-json inputs.json --at 'after:*' --workers 2
  n00dles-testing explore flows.py:triage --input text=x --lives 3 --budget 200
  n00dles-testing explore flows.py:triage --input text=x --how all --budget 60s

\b
Inputs:
  name=text    a text, whatever it looks like: n=3 is the text "3"
  name:=json   JSON: n:=3 is a number, tags:='["a"]' a list

A fake LLM server answers every model (over the official SDKs, through their environment variables) and counts what was
paid; no request to a model leaves the machine and no key is needed. With --llm off the calls go to the real models, and
cost money. Nothing else is faked: what a body does (a mail, a payment, a file) it does for real, each time.

{EXIT_CODES}"""
)
@click.argument("target")
@click.option("--input", "typed", multiple=True, metavar="NAME=TEXT|NAME:=JSON", help="An input. May be repeated.")
@click.option(
    "--input-json",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A JSON object of inputs; --input wins over it.",
)
@click.option(
    "--store",
    metavar="URL",
    help="The store to run on, a URL or module:factory. The runs have random ids and are deleted again. Default: a "
    "SQLite file for each scenario.",
)
@click.option(
    "--mode",
    type=click.Choice(["fork", "spawn", "in-process"]),
    help="How processes are made. Default: fork, or spawn where there is no fork. in-process kills nothing for real.",
)
@click.option(
    "--at", multiple=True, metavar="POINT", help="Only these crash points, as before:writer. May be repeated."
)
@click.option(
    "--how",
    multiple=True,
    type=click.Choice([*_HOWS, "all"]),
    help="What is done at a point, or all of it. May be repeated. Default: kill.",
)
@click.option(
    "--budget",
    type=BudgetOption(),
    metavar="N|TIME",
    help="At most N scenarios, or as many as there is time for (30s, 5m), spread over the run.",
)
@click.option(
    "--lives",
    type=click.IntRange(1),
    metavar="N",
    help="Kill up to N lives of a run in a row: the resumed run is killed too, at each of its own points. --budget is "
    "shared among the first kills, the second ones and so on. Default: 1.",
)
@workers_option("So many at a time. Default: one a processor, at most two.")
@dask_option("the scenarios lived")
@click.option(
    "--time-limit",
    type=SecondsOption(0, min_open=True),
    metavar="SECONDS",
    help="How long a life may take; the import of the target may take four times as long. Default: 30.",
)
@click.option(
    "--allow-unknown",
    is_flag=True,
    help="Exit with 0 even if a clause is UNKNOWN, since the pipeline differs from run to run by itself.",
)
@click.option("--all", "show_all", is_flag=True, help="Show the story of every fault, and not of the first of a kind.")
@llm_option
@json_option("the report")
def explore(
    target: str,
    typed: tuple[str, ...],
    input_json: Path | None,
    llm: str,
    json_file: Path | None,
    *,
    show_all: bool,
    **options: Any,
) -> None:
    """Kill a pipeline at each of its crash points, resume it, and judge.

    TARGET is package.module:pipeline, or path/to/file.py:pipeline; a PlainFunctions, which is a home-made loop, may
    stand in the place of a pipeline. It is run undisturbed first; then, for each moment at which its process can die,
    once more: killed there by SIGKILL, resumed in a fresh process, and held against the undisturbed run. With --how it
    is cancelled, interrupted or timed out there as well, or its store fails.

    Bodies are run for real, about as often as there are crash points and a few times more. Let them see by an
    environment variable that this is a test, if that matters.
    """
    from n00dles.command_inputs import InputSyntaxError, read_inputs

    from ..command_explore import run_explore

    expect_one_kind_of_workers(options)
    try:
        inputs = read_inputs(typed, input_json)
    except InputSyntaxError as error:
        raise click.UsageError(str(error)) from error
    raise SystemExit(run_explore(target, inputs, llm == "auto", json_file, options, show_all=show_all))
