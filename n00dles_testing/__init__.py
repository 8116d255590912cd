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
    from n00dles.testing import mock_agent, mock_pipeline

    from .conformance import StoreReport, check_store
    from .crash import ExplorationError, ExplorationReport, explore
    from .crash.life import ExecutorUnderTest
    from .crash.safety import CrashSafety
    from .frozen_time import FrozenTime
    from .llm import LLMServer, Reply, ToolCall
    from .llm.faults import (
        ConnectionReset,
        DropsMidStream,
        Hangs,
        KillsClient,
        LostReply,
        MalformedJSON,
        Overloaded,
        RateLimited,
        Refusal,
        ServerError,
        SlowDrip,
        TruncatedJSON,
        WrongSchema,
    )
    from .llm.mock import MockLLM
    from .llm.scripted_server import ScriptedServer
    from .no_sleep import NoSleep, Sleep
    from .plain import PlainFunctions
    from .store_tests.suite import StateStoreConformance
    from .verdicts import ClauseResult, Finding, Verdict

__all__ = [
    "ClauseResult",
    "ConnectionReset",
    "CrashSafety",
    "DropsMidStream",
    "ExecutorUnderTest",
    "ExplorationError",
    "ExplorationReport",
    "Finding",
    "FrozenTime",
    "Hangs",
    "KillsClient",
    "LLMServer",
    "LostReply",
    "MalformedJSON",
    "MockLLM",
    "NoSleep",
    "Overloaded",
    "PlainFunctions",
    "RateLimited",
    "Refusal",
    "Reply",
    "ScriptedServer",
    "ServerError",
    "Sleep",
    "SlowDrip",
    "StateStoreConformance",
    "StoreReport",
    "ToolCall",
    "TruncatedJSON",
    "Verdict",
    "WrongSchema",
    "check_store",
    "explore",
    "mock_agent",
    "mock_pipeline",
]

_HOMES = {
    "ClauseResult": "verdicts",
    "ConnectionReset": "llm.faults",
    "CrashSafety": "crash.safety",
    "DropsMidStream": "llm.faults",
    "ExecutorUnderTest": "crash.life",
    "ExplorationError": "crash",
    "ExplorationReport": "crash",
    "Finding": "verdicts",
    "FrozenTime": "frozen_time",
    "Hangs": "llm.faults",
    "KillsClient": "llm.faults",
    "LLMServer": "llm",
    "LostReply": "llm.faults",
    "MalformedJSON": "llm.faults",
    "MockLLM": "llm.mock",
    "NoSleep": "no_sleep",
    "Overloaded": "llm.faults",
    "PlainFunctions": "plain",
    "RateLimited": "llm.faults",
    "Refusal": "llm.faults",
    "Reply": "llm",
    "ScriptedServer": "llm.scripted_server",
    "ServerError": "llm.faults",
    "Sleep": "no_sleep",
    "SlowDrip": "llm.faults",
    "StateStoreConformance": "store_tests.suite",
    "StoreReport": "conformance",
    "ToolCall": "llm",
    "TruncatedJSON": "llm.faults",
    "Verdict": "verdicts",
    "WrongSchema": "llm.faults",
    "check_store": "conformance",
    "explore": "crash",
    "mock_agent": "n00dles.testing",
    "mock_pipeline": "n00dles.testing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    return getattr(importlib.import_module(home if home.startswith("n00dles.") else f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
