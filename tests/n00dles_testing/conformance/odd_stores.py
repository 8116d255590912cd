"""Stores that are odd in ways that a checker must not stumble over."""

from __future__ import annotations

import os
import time
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles


class UnreadableError(Exception):
    """Its message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class RaisesWhatCannotBeRead(JSONFiles):
    def save(self, run_id: str, context: Any) -> None:
        raise UnreadableError


class ClosesNever(JSONFiles):
    def close(self) -> None:
        time.sleep(3600)


class GoesElsewhere(JSONFiles):
    """Changes the working folder of its process; all else is right."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        os.chdir("/")
