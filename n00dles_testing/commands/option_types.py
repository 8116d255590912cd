"""What options of the commands are read as, beyond what click knows. What reads them is imported when one is typed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

__all__ = ["BudgetOption", "ReportFile", "SecondsOption", "TimeOption"]

_A_DAY = 86400.0


class ReportFile(click.Path):
    """A file to write a report to, tried before the work and not after it."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, if it can be written."""
        from ..report.json_file import check_writable

        path = Path(str(super().convert(value, param, ctx)))
        if problem := check_writable(path):
            self.fail(problem, param, ctx)
        return path


class SecondsOption(click.FloatRange):
    """Seconds, at most a day: what is no number, or without an end, is no limit."""

    def __init__(self, least: float, *, min_open: bool = False) -> None:
        super().__init__(least, _A_DAY, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return seconds


class BudgetOption(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A number of scenarios, or a time; it stays as it was typed."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what was typed, if `Budget` can read it."""
        from ..crash.budget import Budget

        try:
            Budget.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value


class TimeOption(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A time, with its unit: a number alone is one of scenarios in the other command. Becomes seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return seconds."""
        from ..crash.budget import Budget

        try:
            seconds = Budget.read(value).seconds
        except ValueError:
            seconds = None
        if seconds is None:
            self.fail(f"{value!r} is no time: write it as 60s, or 5m.", param, ctx)
        return seconds
