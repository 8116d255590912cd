"""Runs of writes into a buffer: many calls from Python, between which nothing changes on disk.

`json.dump` makes one for each comma. The moments that matter are those around them: where the buffer is flushed, the
file is synced, closed or renamed. Without this they would be few among many, and most samples would miss them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from .spread import spread

if TYPE_CHECKING:
    from .subject import StoreSubject

__all__ = ["is_buffered", "source_of", "without_runs"]

_BUFFERED = ("file.write", "file.writelines")
_MOST = 4
"""So many writes of a run are tried, the first and the last among them: a buffer may be full in between, or be none."""


def is_buffered(name: str) -> bool:
    """Whether a call that Python tells of only fills a buffer, as a rule."""
    return name in _BUFFERED


def source_of(subject: StoreSubject) -> random.Random:
    """Return what draws from a run: another seed draws others."""
    return random.Random(f"{subject.clause}:{subject.seed}:runs")


def without_runs(names: Sequence[str], source: random.Random | None = None) -> list[int]:
    """Return the numbers of the calls that are worth a moment, from 1: all, but of each run of buffered writes a few.

    With N00DLES_PROFILE=deep it is all of them.
    """
    found: list[int] = []
    at = 1
    for name, run in groupby(names):
        count = len(list(run))
        is_bounded = is_buffered(name) and os.environ.get("N00DLES_PROFILE") != "deep"
        found += [at + number - 1 for number in spread(count, _MOST if is_bounded else count, source)]
        at += count
    return found
