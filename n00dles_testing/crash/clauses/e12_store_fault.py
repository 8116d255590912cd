"""E12: a store fault is not a node fault.

When a save fails after the node has run, the node has done its work and is paid for. It is not called again for that,
its fallback is not asked, and the error that ends the run names the store, so that nobody looks for the fault in the
node. In a process that goes on, the output is still in hand: the next save carries it.

Seen in: aws/aws-durable-execution-sdk-rust #43 (the failed save can be caught as an error of the step);
aws/aws-durable-execution-sdk-python #342 (a result that is too large to be stored is asked for again and again);
openai/openai-agents-python #4690 (an append that fails loses the output, or can never be repeated);
ModernRelay/omnigraph #513 (the reply is lost, the commit was done, and it is done again).

Fix: the author of an executor keeps the save outside of what retries and fallbacks guard, repeats only the save, raises
an error of its own kind, and keeps what is not stored for the next resume in the process. The author of a store
recognises a save that it has committed already.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import Life, Save
from .documentation import documented
from .endings import failed_nodes, pairs, raised
from .wording import named

__all__ = ["CLAUSE"]


def store_is_blamed(case: Case) -> Iterator[tuple[str, str]]:
    """Yield second calls, wrong errors and lost outputs after a save that failed or was slow."""
    for life in case.history.working:
        if _was_failed_by_its_store(life):
            yield from _called_again(life)
            yield from _wrong_end(case, life)
    for life, following in pairs(case.history):
        if _was_failed_by_its_store(life) and following.same_process:
            yield from _not_in_hand(life, following)


def store_faults(case: Case) -> int:
    """Count lives in which the store failed, or was slow."""
    return sum(_was_failed_by_its_store(life) for life in case.history.working)


def _was_failed_by_its_store(life: Life) -> bool:
    return life.how is not None and life.how.is_store_fault and life.at_point is not None


def _called_again(life: Life) -> Iterator[tuple[str, str]]:
    for save in life.saves:
        fresh = set(save.nodes) - set(life.stored)
        for call in life.calls:
            if call.node in fresh and call.began > save.began and _had_returned(life, call.node, save):
                failed = "had failed" if save.error is not None else "was going on"
                yield (
                    f"`{call.node}` was called again in life {life.number} after its save {failed}",
                    "the node has done its work; only the save is tried again",
                )
                return


def _had_returned(life: Life, node: str, save: Save) -> bool:
    return any(c.node == node and c.succeeded and (c.ended or 0) < save.began for c in life.calls)


def _wrong_end(case: Case, life: Life) -> Iterator[tuple[str, str]]:
    if not life.outcomes:
        return
    outcome = life.outcomes[0]
    refused = [save for save in life.saves if save.error is not None]
    if outcome["ok"]:
        kept = {node for save in life.saves if save.acknowledged for node in save.nodes} | _committed(case, life)
        lost = sorted({node for save in refused for node in save.nodes} - kept - set(life.stored))
        if lost:
            yield (
                f"life {life.number} reported success, though every save of {named(lost)} had failed",
                "a result whose checkpoint is not stored is not finished",
            )
    elif outcome.get("blame") == "node" and _unsaved(life) and case.baseline.finishes and not _some_node_failed(life):
        yield (
            f"the store failed in life {life.number}, and a node was blamed: {outcome['error']}: {outcome['message']}",
            "an error of the store has a kind of its own, which no handler of node failures catches",
        )


def _committed(case: Case, life: Life) -> set[str]:
    """Return what was on disk after it: a save may have been committed though its reply was lost."""
    return next((set(after.stored) for after in case.history.lives if after.number == life.number + 1), set())


def _some_node_failed(life: Life) -> bool:
    """Whether a node has really failed; that the executor says so of one whose save has failed is no proof."""
    raising = {call.node for call in life.calls if raised(call)}
    unsaved = _unsaved(life)
    return any(node in raising or node not in unsaved for node in failed_nodes(life))


def _unsaved(life: Life) -> set[str]:
    """Return the nodes whose output was in a save that failed, and not in the store before."""
    return {node for save in life.saves if save.error is not None for node in save.nodes} - set(life.stored)


def _not_in_hand(life: Life, following: Life) -> Iterator[tuple[str, str]]:
    kept = {node for save in life.saves if save.acknowledged for node in save.nodes} | set(following.stored)
    in_hand = sorted({node for save in life.saves if save.error is not None for node in save.nodes} - kept)
    again = [node for node in in_hand if any(call.node == node for call in following.calls)]
    if again:
        yield (
            f"{named(again)} was called again in life {following.number}, in the same process, though only the save of "
            f"it had failed in life {life.number}",
            "what a node has returned is kept in the process until it is stored",
        )
    elif in_hand and following.saves and not set(in_hand) <= set(following.saves[0].nodes):
        yield (
            f"the first save of life {following.number} left out {named(in_hand)}, whose save had failed in life "
            f"{life.number}",
            "the next save carries what the last one could not",
        )


CLAUSE = documented(
    __doc__,
    check=store_is_blamed,
    occasions=store_faults,
    without="the store did not fail in any life",
    sharpens=("E03", "E04"),
)
