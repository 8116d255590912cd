"""The `n00dles` command: what an operator asks of the runs in a store."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import get_args

from . import runs_command, worker_command
from .errors import ConfigurationError, N00dlesError, RunLockedError
from .records import Status
from .stores.urls import DEFAULT_URL

__all__ = ["build_parser", "main"]

OK, FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

_EXIT_CODES = """
exit codes:
  0  done
  1  the run, or the store, failed; or there is no such run
  2  the command line or the configuration cannot be used; nothing was done
"""

_ENVIRONMENT = """
environment:
  N00DLES_STORE      the store, unless --store names one
  N00DLES_RETENTION  how old a finished run becomes before prune removes it
  N00DLES_DEBUG=1    print the traceback of an error
"""

DEFAULT_RETENTION = "30d"

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST_DIGITS = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Only `--help` and a usage error leave by `SystemExit`."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = _parsed(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` perhaps, has seen enough. What is left must not be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("n00dles: interrupted; what was completed is stored", file=sys.stderr)
        return INTERRUPTED
    except N00dlesError as error:
        if os.environ.get("N00DLES_DEBUG") == "1":
            traceback.print_exc()
        print(f"n00dles: {type(error).__name__}: {_in_one_line(error)}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigurationError) else FAILED
    return code


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and (not hasattr(options, "inputs") or any(text.startswith("-") for text in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        # argparse takes no positional arguments behind an option, if it has had some before it.
        options.inputs += rest
    return options


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = _parser(None, "n00dles", "Look after the runs of n00dles pipelines.", "  n00dles runs list\n")
    parser.add_argument("--version", action="version", version=f"n00dles {_version()}")
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    runs = _parser(
        groups,
        "runs",
        "List, inspect, resume and remove stored runs.",
        "  n00dles runs list --status failed\n"
        "  n00dles runs show r-81f2\n"
        "  n00dles runs resume r-81f2 app/flows.py:content_pipeline\n"
        "  n00dles runs prune --older-than 30d --dry-run\n",
    )
    commands = runs.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_list, _add_show, _add_resume, _add_delete, _add_prune):
        add(commands)
    _add_submit(groups)
    _add_worker(groups)
    return parser


def _add_list(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        commands,
        "list",
        "List the stored runs, the last updated first.",
        "  n00dles runs list --status failed --limit 20\n"
        "  n00dles runs list --store sqlite:////var/lib/app/runs.db --json\n",
    )
    parser.add_argument("--status", choices=get_args(Status), help="only runs of this status")
    parser.add_argument("--limit", type=_positive, metavar="N", help="at most N runs (default: all)")
    _add_json(parser)
    parser.set_defaults(command=runs_command.list_runs)


def _add_show(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        commands,
        "show",
        "Tell the story of one run: its inputs, its nodes in the order in which they completed, what each has cost, "
        "and the last error.",
        "  n00dles runs show r-81f2\n  n00dles runs show r-81f2 --json | jq .completed\n",
    )
    _add_run_id(parser)
    _add_json(parser)
    parser.set_defaults(command=runs_command.show_run)


def _add_resume(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        commands,
        "resume",
        "Continue a run from its last checkpoint and print its result as JSON. Completed nodes are not called again; a "
        "finished run returns its stored result and calls nothing. Progress goes to standard error.",
        "  n00dles runs resume r-81f2 app.flows:content_pipeline\n"
        "  n00dles runs resume r-81f2 app/flows.py:content_pipeline --quiet | jq .output\n",
    )
    _add_run_id(parser)
    parser.add_argument(
        "pipeline", metavar="PIPELINE", help="the pipeline of the run: package.module:name or path/to/file.py:name"
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    parser.add_argument(
        "--wait",
        type=_wait,
        default=0.0,
        metavar="TIME",
        help="how long to wait while another process works on the run: seconds, or with a unit as in 10m (default: 0)",
    )
    parser.set_defaults(command=runs_command.resume_run)


def _add_delete(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        commands,
        "delete",
        "Remove a run, all of it, for good. Asks first; without a terminal to ask on, --yes is needed.",
        "  n00dles runs delete r-81f2\n  n00dles runs delete r-81f2 --yes\n",
    )
    _add_run_id(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(command=runs_command.delete_run)


def _add_prune(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        commands,
        "prune",
        "Remove the finished runs that were last updated longer ago than a given time. Others stay.",
        "  n00dles runs prune --dry-run\n  n00dles runs prune --older-than 12h\n",
    )
    parser.add_argument(
        "--older-than",
        type=_duration,
        default=os.environ.get("N00DLES_RETENTION") or DEFAULT_RETENTION,
        metavar="TIME",
        help=f"a whole number and a unit: s, m, h or d (default: $N00DLES_RETENTION, else {DEFAULT_RETENTION})",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say which runs would be removed")
    parser.set_defaults(command=runs_command.prune_runs)


def _add_submit(groups: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        groups,
        "submit",
        "Store a run for a worker to start, and print its id. The inputs are checked first. With --run-id, a "
        "submission whose outcome is not known may be repeated: the run is stored once.",
        "  n00dles submit app.flows:content_pipeline topic='agentic search'\n"
        "  n00dles submit app/flows.py:content_pipeline --run-id order-17 topic=noodles depth:=3\n",
    )
    parser.add_argument("pipeline", metavar="PIPELINE", help="package.module:name or path/to/file.py:name")
    parser.add_argument("inputs", metavar="NAME=TEXT|NAME:=JSON", nargs="*", help="an input of the run")
    parser.add_argument("--run-id", metavar="RUN_ID", help="the id of the run (default: a new one)")
    parser.set_defaults(command=worker_command.submit_run)


def _add_worker(groups: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _store_parser(
        groups,
        "worker",
        "Work on the runs of these pipelines: those that wait to be started, and those whose worker is gone. Start as "
        "many workers as you like. SIGTERM, or Ctrl-C, lets the runs under way finish, and ends the worker; a second "
        "one ends it at once, as a kill would. A line is printed for each run.",
        "  n00dles worker app.flows:content_pipeline --store sqlite:////var/lib/app/runs.db\n"
        "  n00dles worker app.flows:content_pipeline app.flows:triage --concurrency 4 --drain-timeout 2m\n"
        "  n00dles worker app/flows.py:content_pipeline --until-idle --json\n",
    )
    parser.add_argument("pipelines", metavar="PIPELINE", nargs="+", help="package.module:name or path/to/file.py:name")
    parser.add_argument(
        "--concurrency", type=_positive, default=8, metavar="N", help="work on at most N runs at a time (default: 8)"
    )
    parser.add_argument(
        "--drain-timeout",
        type=_wait,
        default=25.0,
        metavar="TIME",
        help="after SIGTERM, release what has not finished in this time: seconds, or with a unit (default: 25)",
    )
    parser.add_argument(
        "--lease-ttl",
        type=_wait,
        metavar="TIME",
        help="how long a run stays locked after its worker was last heard of, where its death is not seen at once "
        "(default: 30, or what the program configures)",
    )
    parser.add_argument(
        "--heartbeat",
        type=Path,
        metavar="FILE",
        help="touch this file every 5 s while the worker is not stuck, for a liveness probe",
    )
    parser.add_argument("--until-idle", action="store_true", help="end when there is nothing to do")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line, for other programs")
    parser.set_defaults(command=worker_command.work)


def _parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser] | None, name: str, description: str, examples: str
) -> argparse.ArgumentParser:
    epilog = f"examples:\n{examples}{_ENVIRONMENT}{_EXIT_CODES}"
    if commands is None:
        return argparse.ArgumentParser(
            name, description=description, epilog=epilog, formatter_class=_HelpFormatter, allow_abbrev=False
        )
    return commands.add_parser(
        name,
        help=description.partition(".")[0],
        description=description,
        epilog=epilog,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )


def _store_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, description: str, examples: str
) -> argparse.ArgumentParser:
    parser = _parser(commands, name, description, examples)
    parser.add_argument(
        "--store",
        metavar="URL",
        default=os.environ.get("N00DLES_STORE") or DEFAULT_URL,
        help=f"where the runs are kept (default: $N00DLES_STORE, else {DEFAULT_URL})",
    )
    return parser


def _add_run_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN_ID", help="the id of the run, as `n00dles runs list` shows it")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def _duration(text: str) -> float:
    match = re.fullmatch(r"([0-9]+)([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write a whole number and a unit (s, m, h, d), as in 30d"
        )
    if len(match[1]) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"that is no time: it has {len(match[1])} digits")
    return float(int(match[1]) * _SECONDS[match[2]])


def _wait(text: str) -> float:
    return float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else _duration(text)


def _in_one_line(error: N00dlesError) -> str:
    """Return the message with its notes; what it says of the library's options, in those of this command."""
    text = " ".join(" ".join([str(error), *getattr(error, "__notes__", ())]).split())
    return text.replace("wait=60 waits", "--wait 60 waits") if isinstance(error, RunLockedError) else text


def _version() -> str:
    try:
        return version("n00dles-testing")
    except PackageNotFoundError:
        return "(not installed)"


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the description, and leaves the examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)
