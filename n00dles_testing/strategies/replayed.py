"""Pipelines by token: `n00dles_testing.strategies.replayed:TOKEN` is a target in every process, on every machine.

    n00dles-testing explore n00dles_testing.strategies.replayed:n1eNqr… --input text=x

`codec.target_of(spec)` writes the target. The pipelines are made when their name is asked for, once in a process.
"""

from __future__ import annotations

from collections import deque

from n00dles.pipeline import Pipeline

from .build import build_for_other_processes
from .codec import from_token

_MAX_MADE = 256
_made: deque[str] = deque()


def __getattr__(token: str) -> Pipeline:
    if token.startswith("_") or not token.startswith("n1"):
        raise AttributeError(token)
    made = build_for_other_processes(from_token(token))
    # As an attribute of this module it can be found again from the object, too (see `targets.target_of`).
    if len(_made) >= _MAX_MADE:
        del globals()[_made.popleft()]
    _made.append(token)
    globals()[token] = made
    return made
