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

from ..case import Case
from ..history import Life
from ..typed import first_difference, show
from .documentation import documented
from .wording import at

__all__ = ["CLAUSE"]


def same_output(case: Case) -> Iterator[tuple[str, str]]:
    """Yield how the end of the run differs from that of the undisturbed one."""
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
            f"the resumed run returned {at(after)} at {path}, where the undisturbed one returned {at(before, after)}",
            "",
        )


def killed_and_finished(case: Case) -> int:
    """Count one, if the run was killed and came to its end all the same."""
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
