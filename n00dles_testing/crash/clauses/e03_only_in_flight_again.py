"""E03: at most the nodes in flight at the kill are called again.

A node is in flight from its start until its save is acknowledged; a kill in between means that nobody knows whether
its effect has happened, and it is called again. No finished node waits longer than one save for that: one that had
returned before a save began, and was left out of it, is in flight no more, nor is one for which no save was begun while
others went on, one after another. Nor is a node called again in the life in which it has returned, or paid for twice.

Every attempt of a node carries the same idempotency key, and no other node and no other run has it, so that whoever
carries out its effect can see that it is the same one.

Seen in: microsoft/agent-framework #2075 (a fan-out that is saved when all members are done);
microsoft/agent-framework #3938 (effects happen twice, and nothing tells them apart).

Fix: the author of a pipeline gives `idempotency_key()` to whoever carries out the effect of a node (a payment API, a
mail server, a table with a unique column). The author of an executor begins a save as soon as a node has returned,
whatever else is running, and makes the key from the run and the node, never from the attempt or the life.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..case import Case
from ..history import Call, History, Life, Said
from ..points import How
from .documentation import documented

__all__ = ["CLAUSE", "same_key_in_two_runs"]


def only_nodes_in_flight_again(case: Case) -> Iterator[tuple[str, str]]:
    """Yield each call of a node that was in flight no more, each that came too often, and each changed key."""
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
    yield from _keys(case)
    yield from _overpaid(case)


def nodes_before_a_kill(case: Case) -> int:
    """Count nodes that had returned or were in flight at a kill, with a life after it that could call them again."""
    return sum(len({node for node, _ in life.starts}) for life in case.history.working[:-1])


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


def _keys(case: Case) -> Iterator[tuple[str, str]]:
    """An executor may offer none at all; then a node has nothing to rely on, and knows it."""
    keys: dict[str, str | None] = {}
    owners: dict[str, str] = {}
    told: set[str] = set()
    for call in case.history.calls:
        node, key = call.node, call.key
        owner = node if key is None else owners.setdefault(key, node)
        if node not in told and keys.setdefault(node, key) != key:
            told.add(node)
            yield (
                f"`{node}` got another idempotency key in life {call.life} than before"
                if key is not None
                else f"`{node}` got no idempotency key in life {call.life}, and had one before",
                "whoever carries out its effect cannot see that it is the same one, and does it again",
            )
        if node not in told and owner != node:
            told.add(node)
            yield (
                f"`{node}` and `{owner}` got the same idempotency key",
                f"whoever carries out the effect of `{node}` takes it for that of `{owner}`, and leaves it out",
            )


def same_key_in_two_runs(one: History, other: History) -> Iterator[tuple[str, str]]:
    """Yield each node that got the same idempotency key in two runs of different ids."""
    owners = {call.key: call.node for call in one.calls if call.key is not None}
    told: set[str] = set()
    for call in other.calls:
        if call.key in owners and call.node not in told:
            told.add(call.node)
            yield (
                f"`{call.node}` got the same idempotency key in a run of another id",
                "whoever carries out its effect takes the second run for the first, and leaves it out",
            )


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
    if not case.baseline.shape.sees_saves:
        return found
    for said in life.events:
        if said.event == "node_returned" and said.fields["node"] not in saved:
            node = said.fields["node"]
            if any(s.began > said.position and s.acknowledged and node not in s.nodes for s in life.saves):
                found[node] = "before a save that left it out"
            elif _is_neglected(case, life, said):
                found[node] = "and no save of it was begun, though other nodes went on"
    return found


def _is_neglected(case: Case, life: Life, returned: Said) -> bool:
    """Whether nobody began to save a node that had returned, while a sibling was called and ended and another followed.

    How much time has passed says nothing: a machine may be slow. But whoever is to save has had its turn when the event
    loop has seen to two calls in a row. A life that was told to end need not save any more. If what depends on the node
    was started, that is the affair of E01.
    """
    if any(save.ended is None or save.ended > returned.position for save in life.saves) or life.how in _TOLD_TO_END:
        return False
    node = returned.fields["node"]
    since = [call for call in life.calls if call.began > returned.position and call.node != node]
    if any(node in case.baseline.needs.get(call.node, ()) for call in since):
        return False
    return any(one.ended is not None and one.ended < other.began for one, other in itertools.pairwise(since))


_TOLD_TO_END = (How.CANCEL, How.TIMEOUT, How.INTERRUPT)


CLAUSE = documented(
    __doc__,
    check=only_nodes_in_flight_again,
    occasions=nodes_before_a_kill,
    without="no node had been started at a kill",
    undisturbed=True,
)
