"""The clauses E01 to E05 and E17, each a function from one scenario to the faults found in it.

Every check looks at what truly happened (the ledger) and at what the store held between the lives, and compares with an
undisturbed run of the same pipeline. Each has a mutant executor in the tests that it, and only it, catches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from . import occasions
from .case import Case, Clause
from .history import Call, History, Life, Said, same
from .sameness import same_calls, same_output
from .typed import show

__all__ = ["CLAUSES"]


def durable_before_dispatch(case: Case) -> Iterator[tuple[str, str]]:
    """E01: a node's output is in the store before any node that depends on it starts.

    Checked twice: each call against the saves acknowledged before it, and each kill against what was on disk after it.
    Seen in: langchain-ai/langgraph #5672 (write at exit), mastra-ai/mastra #20225.
    """
    reported: set[tuple[str, str]] = set()
    called = {call.node for call in case.history.calls}
    for life, following in _with_next(case.history):
        stored = set(life.stored)
        for node, position in life.starts:
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
    was left out of it, is in flight no more, nor is one for which no save was begun while others went on. Nor is a node
    called again in the life in which it has returned, or paid for twice. Each attempt of a node carries the same
    idempotency key.
    Seen in: microsoft/agent-framework #2075 (a fan-out saved when all members are done), #3938 (no key).
    """
    for life in case.history.working[1:]:
        called = {call.node for call in life.calls}
        for earlier in case.history.working:
            if earlier.number < life.number:
                for node, how in _no_longer_in_flight(case, earlier).items():
                    if node in called:
                        yield (
                            f"`{node}` was called again in life {life.number}, though it had returned in life "
                            f"{earlier.number} {how}",
                            "what has returned belongs into the next save, and that begins at once, whatever else is "
                            "still running",
                        )
    yield from _twice_in_one_life(case)
    yield from _another_key(case)
    yield from _overpaid(case)


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
    Clause(
        "E01",
        "a node's output is stored before any node that depends on it starts",
        durable_before_dispatch,
        occasions.dependents_started,
        "no node depends on another",
    ),
    Clause(
        "E02",
        "no node whose save was acknowledged is called again",
        no_completed_node_again,
        occasions.resumed_half_way,
        "no life began with a completed node and something left to do",
    ),
    Clause(
        "E03",
        "at most the nodes in flight at the kill are called again",
        only_nodes_in_flight_again,
        occasions.nodes_before_a_kill,
        "no node had been started at a kill",
    ),
    Clause(
        "E04",
        "the resumed run gives the same output",
        same_output,
        occasions.killed_and_finished,
        "no killed run was resumed to its end",
        unsettled=lambda baseline: baseline.unsettled_output,
    ),
    Clause(
        "E05",
        "the same arguments, types, requests, route and sums",
        same_calls,
        occasions.calls_to_compare,
        "no resumed life called a node",
        unsettled=lambda baseline: baseline.unsettled,
    ),
    Clause(
        "E17",
        "a finished run returns its stored result and calls nothing",
        finished_stays_finished,
        occasions.finished_and_tried_again,
        "no run was finished and tried again",
    ),
)


def _twice_in_one_life(case: Case) -> Iterator[tuple[str, str]]:
    for life in case.history.working:
        for node in dict.fromkeys(call.node for call in life.calls):
            calls = [call for call in life.calls if call.node == node]
            # What the executor usually does is no measure: it may do the wrong thing always.
            if any(
                one.succeeded and not _turned_down(life, node, one, other) for one, other in itertools.pairwise(calls)
            ):
                yield (
                    f"`{node}` was called {len(calls)} times in life {life.number}, though it had returned before the "
                    "last of them",
                    "an output that is there is used, and not asked for again",
                )


def _another_key(case: Case) -> Iterator[tuple[str, str]]:
    keys: dict[str, str] = {}
    for call in case.history.calls:
        if call.key is not None and keys.setdefault(call.node, call.key) != call.key:
            yield (
                f"`{call.node}` got another idempotency key in life {call.life} than before",
                "whoever carries out its effect cannot see that it is the same one, and does it again",
            )
            return


def _turned_down(life: Life, node: str, one: Call, other: Call) -> bool:
    """Whether the executor said between two calls that the first was no good: an answer that does not validate.

    Or one that came too late: a body in a thread goes on after its time limit.
    """
    return any(
        said.event in ("node_retried", "node_failed")
        and said.fields["node"] == node
        and one.began < said.position < other.began
        for said in life.events
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


def _no_longer_in_flight(case: Case, life: Life) -> dict[str, str]:
    """Return the nodes that had returned and were not saved, though they could have been, with how that is known."""
    saved = {node for save in life.saves if save.acknowledged for node in save.nodes}
    found: dict[str, str] = {}
    for said in life.events:
        if said.event == "node_returned" and said.fields["node"] not in saved:
            node = said.fields["node"]
            if any(s.began > said.position and s.acknowledged and node not in s.nodes for s in life.saves):
                found[node] = "before a save that left it out"
            elif _is_neglected(case, life, said):
                found[node] = "and no save of it was begun, though other nodes went on"
    return found


def _is_neglected(case: Case, life: Life, returned: Said) -> bool:
    """Whether nobody began to save a node that had returned, while a sibling was called and returned.

    How much time has passed says nothing: a machine may be slow. If what depends on the node was started, that is the
    affair of E01.
    """
    if any(save.ended is None or save.ended > returned.position for save in life.saves):
        return False
    node = returned.fields["node"]
    since = [call for call in life.calls if call.began > returned.position and call.node != node]
    if any(node in case.baseline.needs.get(call.node, ()) for call in since):
        return False
    return any(call.ended is not None for call in since)


def _with_next(history: History) -> list[tuple[Life, Life | None]]:
    lives = history.lives
    following: list[Life | None] = [*lives[1:], None]
    return [(life, after) for life, after in zip(lives, following, strict=True) if not life.again]


def _why(life: Life, node: str) -> str:
    if node in life.stored:
        return f"the store had the output of `{node}`, and the executor did not use it"
    return f"the store did not have the output of `{node}` when life {life.number} started"
