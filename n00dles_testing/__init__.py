"""Prove that an LLM pipeline survives a kill, and that a state store keeps what it acknowledged.

`check_store` holds a store against the contract, `StateStoreConformance` does so in pytest, `explore` kills a pipeline
at each of its crash points and resumes it, `PlainFunctions` does that for a loop of your own, `LLMServer` stands in for
the models. The pytest plugin is loaded by itself; its fixture is `crash_safety`. Importing this package imports none of
them: each comes with its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conformance import StoreReport, check_store
    from .crash import ExplorationError, ExplorationReport, explore
    from .crash.life import ExecutorUnderTest
    from .crash.safety import CrashSafety
    from .llm import LLMServer, Reply
    from .plain import PlainFunctions
    from .store_tests.suite import StateStoreConformance
    from .verdicts import ClauseResult, Finding, Verdict

__all__ = [
    "ClauseResult",
    "CrashSafety",
    "ExecutorUnderTest",
    "ExplorationError",
    "ExplorationReport",
    "Finding",
    "LLMServer",
    "PlainFunctions",
    "Reply",
    "StateStoreConformance",
    "StoreReport",
    "Verdict",
    "check_store",
    "explore",
]

_HOMES = {
    "ClauseResult": "verdicts",
    "CrashSafety": "crash.safety",
    "ExecutorUnderTest": "crash.life",
    "ExplorationError": "crash",
    "ExplorationReport": "crash",
    "Finding": "verdicts",
    "LLMServer": "llm",
    "PlainFunctions": "plain",
    "Reply": "llm",
    "StateStoreConformance": "store_tests.suite",
    "StoreReport": "conformance",
    "Verdict": "verdicts",
    "check_store": "conformance",
    "explore": "crash",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
