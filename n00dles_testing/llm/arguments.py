"""Whether what a test hands to `reply` and `fail` is what they take; else a `TypeError` that says what to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from n00dles.agent import Agent

from .calls import ToolCall
from .faults import Fault

__all__ = ["check_count", "check_fault", "check_said", "check_tool_calls", "name_of"]


def name_of(node: Any, call: str) -> str | None:
    """Return the name of the node that is meant. `call` is what the test has called, for the message."""
    if isinstance(node, Agent):
        return node.name
    if node is None or isinstance(node, str):
        return node
    raise TypeError(
        f"{call}({node!r}, …): a node is meant by its name, by the agent itself, or by None for any caller; this is "
        f"{_kind(node)}. Of a pipeline name the node that calls the model."
    )


def check_said(what: Any, call: str) -> None:
    """Refuse a class where one of its instances is meant."""
    if isinstance(what, type):
        raise TypeError(f"{call}(…, {what.__name__}) has a class; write what the model says, {what.__name__}(…)")


def check_fault(fault: Any, call: str) -> None:
    """Refuse what is no fault."""
    if isinstance(fault, Fault):
        return
    if isinstance(fault, type) and issubclass(fault, Fault):
        raise TypeError(f"{call}(…, {fault.__name__}) has a class; write {fault.__name__}()")
    raise TypeError(
        f"{call}(…, {fault!r}): this is {_kind(fault)}, and no fault. Write one of n00dles_testing, such as "
        "RateLimited() or Hangs(): they happen on the wire, and the SDK raises what it raises in production. To raise "
        "an exception in place of a call, use n00dles.testing.mock_agent(agent, raises=…)."
    )


def check_tool_calls(tool_calls: Sequence[Any], call: str) -> None:
    """Refuse anything but a sequence of `ToolCall`s."""
    wrong = tool_calls if isinstance(tool_calls, (str, dict, ToolCall)) else None
    for each in [wrong] if wrong is not None else tool_calls:
        if wrong is not None or not isinstance(each, ToolCall):
            raise TypeError(f'{call}(…, tool_calls={tool_calls!r}): write tool_calls=[ToolCall("search", {{…}})]')


def check_count(times: Any, call: str, *, none: bool = True) -> None:
    """Refuse anything but a number; `none`: or None."""
    if isinstance(times, int) and not isinstance(times, bool):
        return
    if times is not None or not none:
        or_none = ", or None for as often as it fits" if none else ""
        raise TypeError(f"{call}(…, times={times!r}): write a number{or_none}")


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of the type {type(value).__name__}"
