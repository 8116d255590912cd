"""Naming a missing annotation as the cause, where a body fails on plain data that it took for a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from .agent import Agent
from .errors import N00dlesError
from .pipeline import Branch, Pipeline, Step
from .serialization import JSONValue
from .wiring import Source

__all__ = ["missing_annotations"]

_MODULES = re.compile(r"[\w.<>]+\.(?=\w)")
_MISTAKEN = (AttributeError, TypeError, KeyError)


def missing_annotations(
    agent: Agent, sources: Mapping[str, Source], stored: Mapping[str, JSONValue], error: BaseException
) -> str:
    """Return what to annotate, as sentences, if that is why a body has failed as it did; else nothing.

    `sources` and `stored` are those of the node's arguments.
    """
    if not isinstance(error, _MISTAKEN) or isinstance(error, N00dlesError):
        return ""
    return " ".join(_sentences(agent, sources, stored))


def _sentences(agent: Agent, sources: Mapping[str, Source], stored: Mapping[str, JSONValue]) -> Iterator[str]:
    for candidate in agent.lineup():
        whose = "Its parameter" if candidate is agent else f"The parameter of its fallback {candidate.name!r},"
        for name, source in sources.items():
            declared = candidate.annotations.get(name, Any)
            is_plain = declared is Any and isinstance(stored.get(name), dict | list) and source.kind != "input"
            giver = _last_agent(source.step) if is_plain and candidate.model is None else None
            if giver is not None and _has_model(giver.returns):
                kind = _short(giver.returns)
                lacks = "is annotated with Any" if name in candidate.annotations else "has no annotation"
                yield (
                    f"{whose} `{name}` {lacks}, so it gets plain data; `{giver.name}` returns `{kind}`: write "
                    f"`{name}: {kind}`."
                )


def _last_agent(step: Step | None) -> Agent | None:
    """Return the agent whose output is that of the step; None if it depends on the run, or is put together."""
    while isinstance(step, Pipeline):
        step = step.steps[-1]
    if isinstance(step, Branch):
        ends = {_last_agent(child) for child in step.children}
        return ends.pop() if len(ends) == 1 else None
    return step if isinstance(step, Agent) else None


def _has_model(declared: Any) -> bool:
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return True
    return any(_has_model(argument) for argument in get_args(declared))


def _short(declared: Any) -> str:
    """Return an annotation as one would write it."""
    if isinstance(declared, type) and not get_args(declared):
        return declared.__name__
    return _MODULES.sub("", repr(declared))
