"""E04: the resumed run gives the same output.

Whoever reads the result must not be able to tell whether the process has died on the way. A run that hangs, loops or
raises after a kill is the same fault in another dress. A pipeline that fails undisturbed has to fail, or to finish if
only its first attempts fail.

Seen in: langchain-ai/langgraph #6718 (an enum comes back as None); strands-agents/harness-sdk PR #4240 (a resume that
runs nothing, and reports success); dbos-inc/dbos-transact-py #688 (a recovery that never ends).

Fix: the author of a pipeline keeps time, chance and memory of the process out of its nodes: take a date or a seed as
an input of the run. The author of an executor gives a node's output on in the form in which the store gives it back,
also in the first life.
"""

from __future__ import annotations

from collections.abc import Iterator

from n00dles.executor import MAX_STALLED_LIVES

from ..case import Case
from ..history import Call, Life
from ..typed import first_difference, show
from .documentation import documented
from .e17_finished_stays_finished import results
from .endings import failed_nodes, raised, segments, stalled_lives
from .wording import at, failure

__all__ = ["CLAUSE"]


def same_output(case: Case) -> Iterator[tuple[str, str]]:
    """Yield how the end of the run differs from that of the undisturbed one."""
    last = case.history.working[-1]
    if last.was_finished and results(case):
        return  # what it returns is the affair of E17
    outcome = case.history.outcome
    usual = case.baseline.outcome
    if outcome is None:
        timed_out = last.end is not None and last.end.timed_out
        how = f"did not end within its limit ({last.end.seconds:.0f} s)" if timed_out and last.end else _ended(last)
        yield (
            f"the run never got to its end: life {last.number} {how}",
            "every life beyond the plan is left undisturbed",
        )
    elif not outcome["ok"]:
        if not _may_fail(case, last):
            yield (
                f"the resumed run failed: {failure(outcome)}",
                f"undisturbed it returns {show(usual.get('output'))}"
                if case.baseline.finishes
                else f"undisturbed it fails otherwise: {failure(usual) if usual else 'without a result'}",
            )
    elif case.baseline.finishes:
        difference = first_difference(usual.get("output"), outcome["output"], "output")
        if difference is not None:
            path, before, after = difference
            yield (
                f"the resumed run returned {at(after)} at {path}, where the undisturbed one returned "
                f"{at(before, after)}",
                "",
            )


def _may_fail(case: Case, last: Life) -> bool:
    """Whether a failure of the last life is what a correct executor makes of what the nodes have done.

    A pipeline that fails undisturbed may do so. One that does not may have used up its attempts on errors that it shows
    undisturbed as well, or may have killed too many processes.
    """
    outcome = last.outcomes[-1]
    if not case.baseline.finishes:
        return bool(failed_nodes(last)) or outcome["error"] == case.baseline.outcome.get("error")
    lives = segments(case.history.working)[-1]
    if not last.calls and len(stalled_lives(lives[:-1], last)) >= MAX_STALLED_LIVES:
        return True
    for node, allowed in case.baseline.shape.attempts.items():
        usual = {_kind(call) for call in case.baseline.calls.get(node, ()) if raised(call)}
        errors = [call for life in lives for call in life.calls if call.node == node and raised(call)]
        if usual and len(errors) >= allowed and {_kind(call) for call in errors} <= usual:
            return True
    return False


def _kind(call: Call) -> str:
    return (call.error or "").partition(":")[0]


def killed_and_finished(case: Case) -> int:
    """Count one, if the run was killed or disturbed and came to its end all the same."""
    return int(len(case.history.working) > 1 and case.history.outcome is not None)


def _ended(life: Life) -> str:
    if life.end is None:
        return "left no trace"
    if life.end.signal is not None:
        return f"died by signal {life.end.signal}, which nobody had sent"
    return f"ended with exit code {life.end.exit_code} and no result"


CLAUSE = documented(
    __doc__,
    check=same_output,
    occasions=killed_and_finished,
    without="no killed run was resumed to its end",
    unsettled=lambda baseline: baseline.unsettled_output,
)
