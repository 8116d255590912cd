"""The `n00dles-testing` command. What can be typed is in `commands`; what it starts is imported when it is started."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from .commands.check import check
from .commands.executor import executor
from .commands.explore import explore
from .commands.faults import faults
from .commands.history import history
from .commands.llm_server import llm_server
from .commands.powerloss import powerloss
from .commands.replay import replay
from .commands.report import report
from .exits import BROKEN_PIPE, EXIT_CODES, INTERRUPTED
from .surroundings import expect_docstrings, open_standard_streams, telling_what_the_system_refuses

__all__ = ["main"]


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

{EXIT_CODES}""",
)
@click.version_option(None, "--version", message="n00dles-testing %(version)s", package_name="n00dles-testing")
def main() -> None:
    """Prove that a pipeline survives a kill, and that a state store keeps what it acknowledged."""
    expect_docstrings()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


for _command in (check, powerloss, faults, report, history, explore, replay, executor, llm_server):
    main.add_command(_command)
