"""The clauses E01 to E05 and E17, each a function from one scenario to the faults found in it.

Every check looks at what truly happened (the ledger) and at what the store held between the lives, and compares with an
undisturbed run of the same pipeline. Each has a mutant executor in the tests that it, and only it, catches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .history import Call, History, Life, same
from .typed import describe, first_difference, show

__all__ = ["CLAUSES", "Baseline", "Case", "Clause"]


class Baseline:
    """What an undisturbed run did, and whether a second one did the same. `needs` is by node, see `dependencies`."""

    def __init__(self, history: History, again: History, needs: Mapping[str, list[str]]) -> None:
        self.history = history
        self.needs = needs
        self.calls: dict[str, list[Call]] = {}
        for call in history.calls:
            self.calls.setdefault(call.node, []).append(call)
        self.outcome = history.outcome or {}
        self.unsettled = _unsettled(history, again)
        """Why two undisturbed runs cannot be compared, in a sentence; empty if they were the same."""

    @property
    def requests(self) -> int:
        """How many requests were sent to an LLM."""
        return sum(call.request is not None for call in self.history.calls)


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario before the judge. `paid` are calls that the LLM server counted, here and undisturbed, if it did."""

    history: History
    baseline: Baseline
    paid: tuple[int, int] | None = None


Check = Callable[[Case], Iterator[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of the contract with its check, which yields each fault as a sentence and the reason behind it.

    `comparing` ones need two undisturbed runs to be the same.
    """

    id: str
    title: str
    check: Check
    comparing: bool = False


def durable_before_dispatch(case: Case) -> Iterator[tuple[str, str]]:
    """E01: a node's output is in the store before any node that depends on it starts.

    Checked twice: each call against the saves acknowledged before it, and each kill against what was on disk after it.
    Seen in: langchain-ai/langgraph #5672 (write at exit), mastra-ai/mastra #20225.
    """
    reported: set[tuple[str, str]] = set()
    called = {call.node for call in case.history.calls}
    for life, following in _with_next(case.history):
        stored = set(life.stored)
        for node, position in _starts(life):
            acknowledged = stored.union(*(s.nodes for s in life.saves if s.acknowledged and (s.ended or 0) < position))
            on_disk = None if following is None or following.disk is None else set(following.stored)
            for needed in case.baseline.needs.get(node, ()):
                late = needed not in acknowledged or (on_disk is not None and needed not in on_disk)
                if late and needed in called and (node, needed) not in reported:
                    reported.add((node, needed))
                    yield (
                        f"`{node}` was started in life {life.number} before the output of `{needed}` was in the store",
                        f"a kill now loses the output of `{needed}`, on which `{node}` has already acted; save it, and "
                        "wait for the store's reply, before starting what comes next",
                    )


def no_completed_node_again(case: Case) -> Iterator[tuple[str, str]]:
    """E02: no node whose save was acknowledged is called again.

    Seen in: microsoft/agent-framework #2075, #1695; mastra-ai/mastra #20225.
    """
    for life in case.history.working[1:]:
        if life.was_finished:
            continue  # the affair of E17
        completed = case.history.completed_before(life)
        for node in dict.fromkeys(call.node for call in life.calls):
            if node in completed:
                paid = " (paid twice)" if any(c.request is not None for c in life.calls if c.node == node) else ""
                lost = "" if node in life.stored else "; the store no longer had it"
                yield (
                    f"`{node}` was called again in life {life.number}{paid}, though {completed[node]}{lost}",
                    _why(life, node),
                )


def only_nodes_in_flight_again(case: Case) -> Iterator[tuple[str, str]]:
    """E03: at most the nodes in flight at the kill are called again.

    A node is in flight from its start until its save is acknowledged. One that had returned before a save began, and
    was left out of it, is in flight no more. Nor is a node called more often in one life than it needs, or paid for.
    Seen in: microsoft/agent-framework #2075, strands-agents/harness-sdk #3633.
    """
    for life in case.history.working[1:]:
        called = {call.node for call in life.calls}
        for earlier in case.history.working:
            if earlier.number < life.number:
                for node in sorted(called & _overdue(earlier)):
                    yield (
                        f"`{node}` was called again in life {life.number}, though it had returned in life "
                        f"{earlier.number} before a save that left it out",
                        f"`{node}` waited for more than one save; put what has returned into the next save, whatever "
                        "else is still running",
                    )
    yield from _twice_in_one_life(case)
    yield from _overpaid(case)


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
    if case.history.outcome is not None and case.history.outcome["ok"]:
        yield from _same_sums(case, case.history.outcome)


def finished_stays_finished(case: Case) -> Iterator[tuple[str, str]]:
    """E17: a finished run returns its stored result and calls nothing.

    Seen in: microsoft/agent-framework #1695, dbos-inc/dbos-transact-ts PR #726.
    """
    finished = [life for life in case.history.lives if life.was_finished]
    known = [case.baseline.outcome.get("output")]
    if case.history.outcome is not None and case.history.outcome["ok"]:
        known.append(case.history.outcome["output"])
    for life in finished:
        nodes = list(dict.fromkeys(call.node for call in life.calls))
        if nodes:
            named = ", ".join(f"`{node}`" for node in nodes)
            yield f"the run was finished, and life {life.number} called {named} again", _why(life, nodes[0])
        for outcome in life.outcomes:
            if not outcome["ok"]:
                yield f"{outcome['how']} of the finished run failed: {outcome['error']}: {outcome['message']}", ""
            elif not any(same(outcome["output"], output) for output in known):
                yield (
                    f"{outcome['how']} of the finished run returned {show(outcome['output'])}, where the run itself "
                    f"had returned {show(known[-1])}",
                    "",
                )


CLAUSES: tuple[Clause, ...] = (
    Clause("E01", "a node's output is stored before any node that depends on it starts", durable_before_dispatch),
    Clause("E02", "no node whose save was acknowledged is called again", no_completed_node_again),
    Clause("E03", "at most the nodes in flight at the kill are called again", only_nodes_in_flight_again),
    Clause("E04", "the resumed run gives the same output", same_output, comparing=True),
    Clause("E05", "the same arguments, types, requests, route and sums", same_calls, comparing=True),
    Clause("E17", "a finished run returns its stored result and calls nothing", finished_stays_finished),
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
        where = f"`{call.node}` got {_at(after)} on resume (life {call.life}, {path.lstrip('.') or 'arguments'})"
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
            if not calls or not _is_counted(case.baseline, name, what):
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


def _is_counted(baseline: Baseline, node: str, what: str) -> bool:
    """Whether the undisturbed run counts as the ledger does: an executor may leave out fallbacks, say."""
    traces = {trace["name"]: trace for trace in baseline.outcome["traces"]}
    return node in traces and traces[node][what] == sum(map(_COSTS[what], baseline.calls.get(node, ())))


def _twice_in_one_life(case: Case) -> Iterator[tuple[str, str]]:
    for life in case.history.working:
        for node in dict.fromkeys(call.node for call in life.calls):
            calls = [call for call in life.calls if call.node == node]
            usual = max(1, len(case.baseline.calls.get(node, ())))
            repeated = any(
                one.succeeded and not _turned_down(life, node, one, other) for one, other in itertools.pairwise(calls)
            )
            if repeated and len(calls) > usual:
                yield f"`{node}` was called {len(calls)} times in life {life.number}; undisturbed it takes {usual}", ""


def _turned_down(life: Life, node: str, one: Call, other: Call) -> bool:
    """Whether the executor said between two calls that the first was no good: an answer that does not validate."""
    return any(
        event in ("node_retried", "node_failed") and fields["node"] == node and (one.ended or 0) < at < other.began
        for at, event, fields in life.events
    )


def _overpaid(case: Case) -> Iterator[tuple[str, str]]:
    if case.paid is None or case.paid[1] != case.baseline.requests:
        return  # nobody counts, or bodies call models on their own
    requests = sum(call.request is not None for call in case.history.calls)
    if case.paid[0] > requests:
        yield (
            f"the LLM server was paid for {case.paid[0]} calls, though the nodes sent only {requests} requests",
            "an SDK that repeats a request by itself pays for it again; turn its own retries off",
        )


def _overdue(life: Life) -> set[str]:
    """Return the nodes that had returned before a save began that was acknowledged and did not carry them."""
    overdue: set[str] = set()
    for position, event, fields in life.events:
        if event == "node_returned":
            left_out = [
                s for s in life.saves if s.began > position and s.acknowledged and fields["node"] not in s.nodes
            ]
            if left_out:
                overdue.add(fields["node"])
    return overdue - {node for save in life.saves if save.acknowledged for node in save.nodes}


def _starts(life: Life) -> list[tuple[str, int]]:
    """Return each node that was started, with its place in the ledger: called, or announced right before a kill."""
    announced = [(fields["node"], position) for position, event, fields in life.events if event == "node_started"]
    return [*announced, *((call.node, call.began) for call in life.calls)]


def _with_next(history: History) -> list[tuple[Life, Life | None]]:
    lives = history.lives
    following: list[Life | None] = [*lives[1:], None]
    return [(life, after) for life, after in zip(lives, following, strict=True) if not life.again]


def _first_by_node(calls: list[Call], fits: Callable[[Call], bool]) -> list[Call]:
    """Return every fitting call, without those that repeat what an earlier one of the node already had."""
    kept: list[Call] = []
    for call in filter(fits, calls):
        twins = (k for k in kept if k.node == call.node)
        if not any(same([k.arguments, k.request], [call.arguments, call.request]) for k in twins):
            kept.append(call)
    return kept


def _why(life: Life, node: str) -> str:
    if node in life.stored:
        return f"the store had the output of `{node}`, and the executor did not use it"
    return f"the store did not have the output of `{node}` when life {life.number} started"


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


def _unsettled(one: History, other: History) -> str:
    """Say which node first returned something else in a second undisturbed run."""
    for call in one.calls:
        outputs = [c.output for c in other.calls if c.node == call.node and c.succeeded]
        if call.succeeded and not any(same(call.output, output) for output in outputs):
            seen = f"{show(call.output)}, then {show(outputs[0])}" if outputs else f"{show(call.output)}, then nothing"
            return f"two undisturbed runs differ: `{call.node}` returned {seen}"
    if not same((one.outcome or {}).get("output"), (other.outcome or {}).get("output")):
        return "two undisturbed runs returned different outputs, though every node returned the same"
    return ""
