"""E09: a run that is resumed as another one is refused with an error that names the difference, or is right.

A run is stopped by a node that fails, is killed in one, or is let finish; then its pipeline or its inputs are changed,
and it is resumed. Either an error of its own kind names what has changed, or the result is what the changed pipeline
has to give. Steps that are added behind what is complete are allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from n00dles.errors import PipelineFailure

from ..crash.history import same
from ..crash.typed import encode, show
from ..strategies import AttemptsInMemory, PipelineSpec, build, counted_by, predict
from .changes import changed, changes_of
from .direct import Ended, ended, failing_at, is_typed, killed
from .family import Fault, Judgement, Trial
from .simpler import simpler
from .stage import RUN_ID, Stage
from .subjects import specs

__all__ = ["IdentityFamily"]

_FINISHED = "finished"
_KILLED = "killed in "
_UNSAFE = ("drop", "retype", "input")
"""What an executor that does not compare takes no notice of; nodes with other names it calls by itself."""
_WHY = (
    "the completed outputs belong to the run as it was; used for another one, they give a wrong answer without a word"
)


class IdentityFamily:
    """Scenarios of E09: `rest` is where the run is stopped, the kind of the change, and what is changed."""

    name = "identity"
    clauses = frozenset({"E09"})
    share = 0.08
    on_disk = False
    is_scouting = False

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw a pipeline, where it is stopped, and a few changes."""
        return _groups()

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Stop, change and resume each."""
        for trial in trials:
            yield trial, _judged(trial, stage)

    def is_sound(self, trial: Trial) -> bool:
        """Whether the run can be stopped there, and changed in this way."""
        stopped, kind, subject = trial.rest
        return stopped in _stops(trial.spec) and (kind, subject) in changes_of(trial.spec)

    def plainer(self, trial: Trial) -> Iterator[Sequence[Trial]]:
        """Yield the same change to simpler pipelines."""
        stopped, kind, subject = trial.rest
        for less in simpler(trial.spec):
            if stopped in _stops(less) and changed(less, kind, subject) is not None:
                yield [replace(trial, spec=less)]

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return what was changed, and when."""
        stopped, kind, subject = trial.rest
        if stopped == _FINISHED:
            when = "after the run had finished"
        elif stopped.startswith(_KILLED):
            when = f"after the run was {stopped}"
        else:
            when = f"after {stopped} had failed"
        return {"change": f"{kind} {subject}, {when}"}


@st.composite
def _groups(draw: st.DrawFn) -> Sequence[Trial]:
    spec = draw(specs(failures=False))
    stops = _stops(spec)
    # The later it was killed, the more there is to take for another run's.
    killed_late = [stop for stop in stops if stop.startswith(_KILLED)][-1:]
    stopped = draw(st.sampled_from([*stops, *killed_late * len(stops)]))
    changes = changes_of(spec)
    unsafe = [change for change in changes if change[0] in _UNSAFE]
    drawn = st.lists(st.sampled_from([*unsafe, *unsafe, *changes]), min_size=1, max_size=3, unique=True)
    changes = draw(drawn)
    return [Trial(IdentityFamily.name, spec, (stopped, *change)) for change in changes]


def _stops(spec: PipelineSpec) -> list[str]:
    """Return where a run can be stopped that has something to lose."""
    nodes = list(predict(spec).calls)[1:]
    return [*nodes, *(f"{_KILLED}{node}" for node in nodes), _FINISHED]


def _judged(trial: Trial, stage: Stage) -> Judgement:
    stopped, kind, subject = trial.rest
    new = changed(trial.spec, kind, subject)
    if new is None:
        return Judgement(vacuous=f"{kind} of {subject} leaves no pipeline")
    stage.count()
    first, second = asyncio.run(_lived(trial.spec, new, stopped, stage, with_inputs=kind == "input"))
    story = (
        f"{'life 1':<9}{first.told}",
        f"{'change':<9}{kind} {subject}",
        f"{'life 2':<9}{second.told}",
    )
    if not first.calls or first.ok != (stopped == _FINISHED):
        return Judgement(vacuous="the first life did not stop where it should")
    faults = list(_faults(kind, subject, new, second))
    if faults:
        _, control = asyncio.run(_lived(trial.spec, trial.spec, stopped, stage, with_inputs=False))
        if not control.ok or not same(control.output, encode(predict(trial.spec).output)):
            return Judgement(vacuous="the executor does not resume this run unchanged either")
    return Judgement(faults[:1], {"E09": 1}, lambda why: (*story, *([f"{'why':<9}{why}"] if why else [])))


async def _lived(
    old: PipelineSpec, new: PipelineSpec, stopped: str, stage: Stage, *, with_inputs: bool
) -> tuple[Ended, Ended]:
    store = stage.make_store()
    given = old.input_values()
    with counted_by(AttemptsInMemory()):
        if stopped.startswith(_KILLED):
            node = stopped.removeprefix(_KILLED)
            first = await killed(stage.executor, build(old), store, RUN_ID, inputs=given, node=node)
        else:
            body = None if stopped == _FINISHED else failing_at(stopped)
            first = await ended(stage.executor, build(old), store, RUN_ID, inputs=given, body=body)
        inputs = new.input_values() if with_inputs else None
        second = await ended(stage.executor, build(new), store, RUN_ID, inputs=inputs)
    return first, second


def _faults(kind: str, subject: str, new: PipelineSpec, second: Ended) -> Iterator[Fault]:
    expected = predict(new)
    due = encode(expected.output)
    what = f"{kind} {subject}"
    if second.error is not None:
        error = second.error
        told = f"{type(error).__name__}: {error}"
        if kind == "append":
            yield "E09", f"a node was added behind the completed ones, and the resume failed: {told}", ""
        elif isinstance(error, PipelineFailure) and expected.finishes:
            yield "E09", f"after {what} the resume called nodes and failed: {told}", _WHY
        elif not is_typed(error):
            yield "E09", f"after {what} the resume failed with an error of no kind of its own: {told}", ""
        elif subject not in str(error) and not _names_a_neighbour(kind, new, str(error)):
            yield "E09", f"after {what} the error does not name what has changed: {told}", ""
    elif not same(second.output, due):
        nothing = " and called nothing" if not second.calls else ""
        yield (
            "E09",
            f"after {what} the resume reported success{nothing}, and returned {show(second.output)}, where the run as "
            f"it is now gives {show(due)}",
            _WHY,
        )


def _names_a_neighbour(kind: str, new: PipelineSpec, message: str) -> bool:
    """Whether a node is named beside one that was dropped or moved: where it was, another one is now."""
    return kind in ("drop", "reorder") and any(node.name in message for node in new.nodes())
