"""What stands behind the fixtures of the pytest plugin, apart from it so that it loads only when a test uses one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from n00dles.pipeline import Step

from .crash import CrashSafety, ExplorationReport
from .crash.backends import Environment
from .crash.player import Paid
from .crash.points import How
from .llm import LLMServer
from .targets import brings_its_pipeline, load_target
from .verdicts import Verdict

__all__ = ["LazyLLM", "PluginCrashSafety", "counts", "unpatched"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SDKS = ("openai", "anthropic")


class LazyLLM:
    """A fake LLM server that is started when it is first needed."""

    def __init__(self) -> None:
        self._server: LLMServer | None = None

    def server(self) -> LLMServer:
        """Return the server, running."""
        if self._server is None:
            server = LLMServer()
            server.start()
            self._server = server
        return self._server

    def stop(self) -> None:
        """End the server, if it was started."""
        if self._server is not None:
            self._server.stop()


class PluginCrashSafety(CrashSafety):
    """`CrashSafety` that answers for models by itself, where the test has not arranged for that.

    `defaults` are options and inputs of all checks, where a check does not say otherwise.
    """

    def __init__(self, llm: LazyLLM, defaults: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.checks = 0
        self._llm = llm
        self._defaults = dict(defaults or {})

    def check(self, pipeline: Any, /, **options: Any) -> ExplorationReport:
        """Check as `CrashSafety` does, with the defaults. `checks` counts the calls, however they end."""
        __tracebackhide__ = True
        self.checks += 1
        return super().check(pipeline, **{**self._defaults, **options})

    def wiring_for(self, pipeline: Any) -> tuple[Environment, Paid | None]:
        """Return those of the fake server, if the pipeline may need it; what bodies pay for is not counted."""
        step = load_target(pipeline, "pipeline") if isinstance(pipeline, str) else pipeline
        models = has_models(step)
        if _leads_here("OPENAI_BASE_URL") or _leads_here("ANTHROPIC_BASE_URL") or not (models or may_call_models(step)):
            return None, None
        server = self._llm.server()
        return server.environment_of, (lambda scenario: len(server.journal(scenario))) if models else None


def has_models(step: Any) -> bool:
    """Whether a pipeline calls a model through an SDK. Models with a provider of their own are the test's affair.

    What a home-made loop calls cannot be told, and must not be paid for.
    """
    if not isinstance(step, Step):
        return brings_its_pipeline(step)
    lineups = (agent.lineup() for agent in step.agents())
    return any(agent.model is not None and agent.provider is None for lineup in lineups for agent in lineup)


def may_call_models(step: Any) -> bool:
    """Whether a body of a pipeline can call a model by itself: if there is an official SDK, any body can."""
    if not isinstance(step, Step) or not any(name in sys.modules or find_spec(name) for name in _SDKS):
        return False
    return any(agent.model is None for first in step.agents() for agent in first.lineup())


def counts(reports: Iterable[ExplorationReport]) -> dict[str, int]:
    """Return what was tried and what of it happened.

    Crash points, how many died by a signal, how many simulated; other disturbances, how many of them happened;
    re-calls; how often bodies were run; UNKNOWN clauses.
    """
    reports = list(reports)
    rows = [row for report in reports for row in report.rows]
    kills = sum(row.point.how is How.KILL for row in rows)
    return {
        "crash_points": kills,
        "disturbances": len(rows) - kills,
        "disturbed": sum(row.disturbed for row in rows),
        "killed": sum(row.point.how is How.KILL and row.killed_by is not None for row in rows),
        "simulated": sum(row.point.how is How.KILL and row.simulated for row in rows),
        "re_calls": sum(len(row.recalled) for row in rows),
        "bodies": sum(report.bodies for report in reports),
        "unknown": sum(clause.verdict is Verdict.UNKNOWN for report in reports for clause in report.clauses),
    }


def unpatched(reports: Iterable[ExplorationReport], fixtures: Iterable[str]) -> str:
    """Say in a sentence that what a test has patched was not patched where it was run, if so; else nothing."""
    patching = [name for name in ("monkeypatch", "mocker", "frozen_time", "no_sleep") if name in fixtures]
    modes = sorted({report.mode for report in reports} & {"fork", "spawn"})
    if not patching or not modes:
        return ""
    return (
        f"it uses {' and '.join(patching)}, but the processes that are killed (mode: {', '.join(modes)}) import the "
        "pipeline anew: what is patched in this process is not patched in them, so their bodies did the real thing. "
        "Only environment variables reach them (monkeypatch.setenv, before the check); or use mode='in-process'"
    )


def _leads_here(variable: str) -> bool:
    return urlsplit(os.environ.get(variable, "")).hostname in _LOOPBACK
