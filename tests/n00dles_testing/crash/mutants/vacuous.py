"""Executors with which nothing can be shown: a report must say so, and not that all is well."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from n00dles import RunResult
from tests.n00dles_testing.crash.mutants.base import Executor, Life


class SaysNothing(Executor):
    """Stops telling observers after the undisturbed runs, so that no crash point is ever passed."""

    breaks = "VACUOUS"

    def __init__(self) -> None:
        self.runs = 0

    async def live(self, life: Life) -> RunResult:
        if life.inputs is not None:
            self.runs += 1
        return await super().live(life if self.runs <= 4 else replace(life, observers=()))


class OffersNoKey(Executor):
    """Calls its nodes without an idempotency key, so that a request cannot be told from a sibling's."""

    breaks = "VACUOUS"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.attempts.node_call", lambda run_id, node, agent: nullcontext())
