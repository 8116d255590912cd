"""E05: the same arguments, types, requests, route and sums.

Each node gets the same arguments, of the same types, whether or not the process has died before; each LLM request is
the same to the byte, so that caches hit and answers do not change; a branch takes the same route. Tokens, attempts and
traces in the result are those of all lives together.

Seen in: langchain-ai/langgraph #6102 (nested models come back as dicts); google/adk-python #3633 (the same);
stepflow-ai/stepflow #637 (attempts start again at 1 after each crash).

Fix: the author of a pipeline annotates the parameter with the model that it is to get, or reads a dict. In a home-made
loop, convert what is loaded (`Article(**stored)`), or hand on the stored form in the first life too. The author of an
executor makes every node's arguments from the stored form, in the first life as in the last, and keeps what a node
has cost beside its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..case import Case
from ..history import Call, same
from ..typed import describe, first_difference
from .documentation import documented
from .wording import at

__all__ = ["CLAUSE"]


def same_calls(case: Case) -> Iterator[tuple[str, str]]:
    """Yield what differs in what was asked of the nodes, and in what the result says that it has cost."""
    yield from _same_arguments(case)
    yield from _same_requests(case)
    yield from _same_route(case)
    if case.history.outcome is not None and case.history.outcome["ok"] and case.history.keeps_counts:
        yield from _same_sums(case, case.history.outcome)


def calls_to_compare(case: Case) -> int:
    """Count calls and requests of later lives than the first that the undisturbed run has made too."""
    return sum(
        call.node in case.baseline.calls and (call.arguments is not None or call.request is not None)
        for life in case.history.working[1:]
        for call in life.calls
    )


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
        where = f"`{call.node}` got {at(after)} {when}, {path.lstrip('.') or 'arguments'})"
        if describe(before) != describe(after):
            yield (
                f"{where} where it got {at(before, after)} before: {_remedy(case, before, after)}",
                "what the first life held in memory is not what a store gives back",
            )
        else:
            yield f"{where} where it got {at(before, after)} in the undisturbed run", ""


def _remedy(case: Case, before: Any, after: Any) -> str:
    """Say how a node gets the same type in every life; a home-made loop converts nothing by annotations."""
    if case.baseline.shape.sees_saves:
        return f"annotate the parameter, or read it as {describe(after)}"
    made = f" ({describe(before)[:-1]}(**…)`)" if isinstance(after, dict) and describe(before).startswith("`") else ""
    return f"convert it when it is loaded{made}, or hand on its stored form in the first life too"


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
                f"{path.lstrip('.') or 'content'}: {at(after)} instead of {at(before, after)}",
                "a request that differs is another question, and misses every cache",
            )


def _same_route(case: Case) -> Iterator[tuple[str, str]]:
    if not case.baseline.finishes:
        return  # a run that fails later than usual, or not at all, calls more
    outcome = case.history.outcome
    called, usual = {call.node for call in case.history.calls}, set(case.baseline.calls)
    for node in sorted(called - usual):
        yield f"`{node}` was called, which the undisturbed run does not call: another route was taken", ""
    if outcome is not None and outcome["ok"]:
        for node in sorted(usual - called):
            yield f"`{node}` was never called in any life, and the run reported success", ""


def _same_sums(case: Case, outcome: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    traces = {trace["name"]: trace for trace in outcome["traces"]}
    for usual in case.baseline.outcome.get("traces", ()):
        if usual["name"] not in traces:
            yield f"`{usual['name']}` is missing from the traces of the result; the undisturbed run has it", ""
    for what, cost in _COSTS.items():
        for name, trace in traces.items():
            calls = [call for call in case.history.calls if call.node == name]
            if not calls:
                continue
            # What a life has cost that was cut short may be saved, or be lost with it; that of the last one is not.
            most = sum(map(cost, calls)) + (_only_announced(case, name) if what == "attempts" else 0)
            least = sum(cost(call) for call in calls if call.life == calls[-1].life)
            if not least <= trace[what] <= most:
                known = f"{least}" if least == most else f"{least} to {most}"
                yield f"`{name}` has {trace[what]} {what} in the result, where its calls make {known}", ""
    total = sum(trace["input_tokens"] + trace["output_tokens"] for trace in traces.values())
    if outcome["tokens"] != total:
        yield f"the result says {outcome['tokens']} tokens in all, and its traces add up to {total}", ""


def _only_announced(case: Case, node: str) -> int:
    """Count the attempts that began for the executor, and were ended from outside before they came to a call."""
    announced = [
        said
        for life in case.history.working
        for said in life.events
        if said.event == "node_started" and said.fields["node"] == node
    ]
    return max(0, len(announced) - sum(call.node == node for call in case.history.calls))


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


CLAUSE = documented(
    __doc__,
    check=same_calls,
    occasions=calls_to_compare,
    without="no resumed life called a node",
    unsettled=lambda baseline: baseline.unsettled,
    undisturbed=True,
    sharpens=("E04",),
)
