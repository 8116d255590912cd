"""The state machine: generated sequences of operations on a store, judged by a model that shares no code with any.

`operations` says what a sequence is (plain data), `generate` draws one, `play` does to a store what it says, `model`
knows what may come of it, `search` plays many and makes one that fails as short as it can be, `tokens` writes one as a
word that can be replayed.
"""

from __future__ import annotations

from .operations import Plan, PlanError
from .tokens import PREFIX, PlanToken

__all__ = ["PREFIX", "Plan", "PlanError", "PlanToken"]
