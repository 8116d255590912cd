"""`n00dles-testing history`: what can be typed."""

from __future__ import annotations

from pathlib import Path

import click

from .shared_options import json_option

__all__ = ["history"]


@click.command(
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
@json_option("the judgement")
def history(file: Path, json_file: Path | None) -> None:
    """Judge a saved history of concurrent calls again.

    FILE is what a failed check of many workers has saved. Nothing is run: no store is opened, and the calls in the file
    are only compared. Of a failure the two or three calls that conflict are shown, as a time diagram.
    """
    from ..command_history import run_history

    raise SystemExit(run_history(file, json_file))
