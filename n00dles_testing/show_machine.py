"""What `n00dles-testing replay` shows of a sequence of operations: what is played, what came, and the verdict."""

from __future__ import annotations

import click
from rich.text import Text

from n00dles.errors import ConfigurationError

from .conformance.machine import PlanToken
from .conformance.machine.operations import describe
from .conformance.machine.replay import replay
from .crash.tokens import BadTokenError
from .exits import FAILED, INTERRUPTED, PASSED, UnusableError
from .report.escape import one_line
from .report.terminal import console_for, print_findings, print_notes
from .terminated import cleaning_up_at_sigterm

__all__ = ["run_machine_replay"]


def run_machine_replay(text: str) -> int:
    """Play the sequence of a token again, tell its story, and return the exit code. Raises `UnusableError`."""
    try:
        token = PlanToken.decode(text)
    except BadTokenError as error:
        raise UnusableError(str(error)) from error
    console = console_for()
    count = len(token.plan.operations)
    console.print(Text(f"replaying {count} operation{'s' * (count > 1)} on {one_line(token.target)}", "bold"))
    ids = "plain run ids" if token.plan.ids == "plain" else f"run ids that differ by {token.plan.ids}"
    print_notes(console, [f"  with {ids}, on a fresh location"])
    steps = enumerate(token.plan.operations, start=1)
    print_notes(console, [f"  {number:>2}. {one_line(describe(operation))}" for number, operation in steps])
    try:
        with cleaning_up_at_sigterm("the store's processes are ended and the temporary folder is removed"):
            result = replay(token)
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    print_findings(console, result.findings[:1])
    says = f": {one_line(result.reason)}" if result.reason else ": each reply is one that the model allows"
    console.print(Text(f"\n{result.clause}  {result.verdict.value}{says}", "bold" if result.ok else "bold red"))
    return PASSED if result.ok else FAILED
