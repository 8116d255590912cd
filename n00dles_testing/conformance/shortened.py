"""A long story in few lines: what repeats is told once, and what is about the run that is judged stays."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["shorten"]

_SHOWN = 24
_ABOUT_THE_RUN = 12
_FEWEST_ALIKE = 3
_RUN = re.compile(r"run-[0-9a-z]+-[0-9a-z]+")
_SAME = re.compile(rf"{_RUN.pattern}|^process \d+")
_CHANGING = re.compile(rf"{_RUN.pattern}|0x[0-9a-f]+|\d+")


def shorten(steps: Sequence[str]) -> tuple[str, ...]:
    """Return a story of at most some 40 lines.

    Of calls in a row that are alike the first is kept, and how many there are; of calls that raised the same, whatever
    their runs and numbers, likewise. If that is not short enough, the middle is left out, but for the last calls of the
    run that the last one is about. The last call, and what has no outcome, is never left out: there it broke, or hangs.
    """
    steps = _in_a_row(steps)
    if len(steps) <= _SHOWN:
        return tuple(steps)
    told = _once(steps)
    if len(told) <= _SHOWN:
        return tuple(told)
    head, tail = _SHOWN // 3, _SHOWN - _SHOWN // 3
    middle = range(head, len(told) - tail)
    judged = set(_RUN.findall(told[-1]))
    about = [number for number in middle if judged.intersection(_RUN.findall(told[number]))]
    kept = {*about[-_ABOUT_THE_RUN:], *(number for number in middle if _is_open(told[number]))}
    lines, left_out = told[:head], 0
    for number in middle:
        if number not in kept:
            left_out += 1
            continue
        lines += [*_left_out(left_out), told[number]]
        left_out = 0
    return (*lines, *_left_out(left_out), *told[-tail:])


def _in_a_row(steps: Sequence[str]) -> list[str]:
    """Return the steps, but of calls in a row that differ by nothing but their process or run the first one only.

    What raised stays, and what has not returned, the last call, and those of the run that it is about.
    """
    if not steps:
        return []
    *before, last = steps
    judged = set(_RUN.findall(last))
    told: list[str] = []
    for key, group in itertools.groupby(before, lambda step: _SAME.sub("#", step)):
        alike = list(group)
        if (
            len(alike) < _FEWEST_ALIKE
            or "→" not in key
            or "→ raised " in key
            or judged.intersection(_RUN.findall("".join(alike)))
        ):
            told += alike
        else:
            told += [alike[0], f"… {len(alike) - 1} more like it …"]
    return [*told, last]


def _once(steps: Sequence[str]) -> list[str]:
    """Return the steps, but of errors that are alike the first one only, and a line that says how many more came."""
    *before, last = steps
    keys = [_CHANGING.sub("#", step) for step in before]
    alike = Counter(key for key in keys if "→ raised " in key)
    told: list[str] = []
    seen: set[str] = set()
    for step, key in zip(before, keys, strict=True):
        if alike[key] < _FEWEST_ALIKE:
            told.append(step)
        elif key not in seen:
            seen.add(key)
            told += [step, f"… {alike[key] - 1} more like it …"]
    return [*told, last]


def _is_open(step: str) -> bool:
    """Whether it is a call that has not returned."""
    return "→" not in step and "(" in step and step.endswith(")")


def _left_out(count: int) -> list[str]:
    return [f"… {count} more call{'' if count == 1 else 's'} …"] if count else []
