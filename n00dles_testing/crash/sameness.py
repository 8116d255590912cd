"""E04 and E05: whether a resumed run is the same run, in what it returns and in what it asks of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .case import Case
from .history import Call, Life, same
from .typed import describe, first_difference, show

__all__ = ["same_calls", "same_output"]


def same_output(case: Case) -> Iterator[tuple[str, str]]:
    """E04: the resumed run gives the same output as the undisturbed one.

    Seen in: langchain-ai/langgraph #6718, strands-agents/harness-sdk PR #4240, dbos-inc/dbos-transact-py #688.
    """
    last = case.history.working[-1]
    outcome = case.history.outcome
    if outcome is None:
        timed_out = last.end is not None and last.end.timed_out
        how = f"did not end within its limit ({last.end.seconds:.0f} s)" if timed_out and last.end else _ended(last)
        yield (
            f"the run never got to its end: life {last.number} {how}",
            "every life beyond the plan is left undisturbed",
        )
        return
    if not outcome["ok"]:
        yield (
            f"the resumed run failed: {outcome['error']}: {outcome['message']}",
            f"undisturbed it returns {show(case.baseline.outcome.get('output'))}",
        )
        return
    difference = first_difference(case.baseline.outcome.get("output"), outcome["output"], "output")
    if difference is not None:
        path, before, after = difference
        yield (
            f"the resumed run returned {_at(after)} at {path}, where the undisturbed one returned {_at(before, after)}",
            "",
        )


def same_calls(case: Case) -> Iterator[tuple[str, str]]:
    """E05: the same arguments of the same types, byte-identical LLM requests, the same route, and sums that add up.

    Seen in: langchain-ai/langgraph #6102, google/adk-python #3633, stepflow-ai/stepflow #637.
    """
    yield from _same_arguments(case)
    yield from _same_requests(case)
    yield from _same_route(case)
    if case.history.outcome is not None and case.history.outcome["ok"] and case.history.keeps_counts:
        yield from _same_sums(case, case.history.outcome)


def _same_arguments(case: Case) -> Iterator[tuple[str, str]]:
    for call in _first_by_node(case.history.calls, lambda call: call.arguments is not None):
        known = [c.arguments for c in case.baseline.calls.get(call.node, ())]
        if not known or any(same(call.arguments, arguments) for arguments in known):
            continue
        difference = first_difference(known[0], call.arguments)
        if difference is None:
            continue
        path, before, after = difference
        when = f"on resume (life {call.life}" if call.life > 1 else "(life 1"
        where = f"`{call.node}` got {_at(after)} {when}, {path.lstrip('.') or 'arguments'})"
        if describe(before) != describe(after):
            yield (
                f"{where} where it got {_at(before, after)} before: annotate the parameter, or read it as "
                f"{describe(after)}",
                "what the first life held in memory is not what a store gives back",
            )
        else:
            yield f"{where} where it got {_at(before, after)} in the undisturbed run", ""


def _same_requests(case: Case) -> Iterator[tuple[str, str]]:
    for call in _first_by_node(case.history.calls, lambda call: call.request is not None):
        known = [c.request for c in case.baseline.calls.get(call.node, ()) if c.request is not None]
        if not known or any(same(call.request, request) for request in known):
            continue
        difference = first_difference(known[0], call.request)
        if difference is not None:
            path, before, after = difference
            yield (
                f"the LLM request of `{call.node}` differs in life {call.life}, in its "
                f"{path.lstrip('.') or 'content'}: {_at(after)} instead of {_at(before, after)}",
                "a request that differs is another question, and misses every cache",
            )


def _same_route(case: Case) -> Iterator[tuple[str, str]]:
    outcome = case.history.outcome
    called, usual = {call.node for call in case.history.calls}, set(case.baseline.calls)
    for node in sorted(called - usual):
        yield f"`{node}` was called, which the undisturbed run does not call: another route was taken", ""
    if outcome is not None and outcome["ok"]:
        for node in sorted(usual - called):
            yield f"`{node}` was never called in any life, and the run reported success", ""


def _same_sums(case: Case, outcome: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    traces = {trace["name"]: trace for trace in outcome["traces"]}
    for usual in case.baseline.outcome["traces"]:
        if usual["name"] not in traces:
            yield f"`{usual['name']}` is missing from the traces of the result; the undisturbed run has it", ""
    for what, cost in _COSTS.items():
        for name, trace in traces.items():
            calls = [call for call in case.history.calls if call.node == name]
            if not calls:
                continue
            # What a life has cost that was cut short may be saved, or be lost with it; that of the last one is not.
            most = sum(map(cost, calls))
            least = sum(cost(call) for call in calls if call.life == calls[-1].life)
            if not least <= trace[what] <= most:
                known = f"{least}" if least == most else f"{least} to {most}"
                yield f"`{name}` has {trace[what]} {what} in the result, where its calls make {known}", ""
    total = sum(trace["input_tokens"] + trace["output_tokens"] for trace in traces.values())
    if outcome["tokens"] != total:
        yield f"the result says {outcome['tokens']} tokens in all, and its traces add up to {total}", ""


_COSTS: dict[str, Callable[[Call], int]] = {
    "attempts": lambda call: 1,
    "input_tokens": lambda call: call.input_tokens,
    "output_tokens": lambda call: call.output_tokens,
}


def _first_by_node(calls: list[Call], fits: Callable[[Call], bool]) -> list[Call]:
    """Return every fitting call, without those that repeat what an earlier one of the node already had."""
    kept: list[Call] = []
    for call in filter(fits, calls):
        twins = (k for k in kept if k.node == call.node)
        if not any(same([k.arguments, k.request], [call.arguments, call.request]) for k in twins):
            kept.append(call)
    return kept


def _ended(life: Life) -> str:
    if life.end is None:
        return "left no trace"
    if life.end.signal is not None:
        return f"died by signal {life.end.signal}, which nobody had sent"
    return f"ended with exit code {life.end.exit_code} and no result"


def _at(value: Any, other: Any = None) -> str:
    """Name the type, or show the value where the types alone do not tell them apart."""
    scalar = not isinstance(value, dict | list)
    return show(value) if scalar and (other is None or not isinstance(other, dict | list)) else describe(value)
