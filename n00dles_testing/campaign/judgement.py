"""One scene before all clauses: each is judged against an undisturbed run, and against what the oracle says."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

from ..crash.case import Case
from ..crash.clauses import JUDGED
from ..crash.clauses.e03_only_in_flight_again import same_key_in_two_runs
from ..crash.story import tell
from ..strategies import PipelineSpec, Prediction, predict
from .failures import can_fail, healed
from .family import Fault, Judgement
from .oracle import faults_of
from .stage import RUN_ID, Scene, Stage

__all__ = ["Subject"]

_TWO_RUNS = 3
"""For every third pipeline a second run is made, of another id."""

_COMPARING = ("E04",)
"""Clauses that compare how a run ends with how the undisturbed one did; with nodes that fail, only the oracle can."""

_CAUSES = {"E04": {"E05", "E06", "E07", "E11", "E15"}, "E10": {"E14", "E15"}}
"""A wrong output follows from a wrong argument, a missing member or route; so only the cause is told."""


class Subject:
    """A pipeline on a stage, with its undisturbed run, which is made once and serves for all plans."""

    def __init__(self, spec: PipelineSpec, stage: Stage) -> None:
        self.spec = spec
        self._stage = stage
        self.prediction: Prediction = predict(spec)
        whole = spec if self.prediction.finishes else healed(spec)
        self._outputs: dict[str, Any] = (self.prediction if whole is spec else predict(whole)).outputs
        self.undisturbed: Scene = stage.play(spec)
        usual = self.undisturbed if whole is spec else stage.play(whole)
        self._usual = usual.baseline
        self._failing = self.undisturbed.baseline

    def undisturbed_judged(self) -> Judgement:
        """Judge the undisturbed run; for some pipelines a run of another id as well, for its idempotency keys."""
        judged = self.judged(self.undisturbed)
        if zlib.crc32(repr(self.spec).encode()) % _TWO_RUNS or any(fault[0] == "E03" for fault in judged.faults):
            return judged
        other = self._stage.play(self.spec, run_id=f"{RUN_ID}-2")
        found = [
            ("E03", message, why) for message, why in same_key_in_two_runs(self.undisturbed.history, other.history)
        ]
        return replace(judged, faults=[*judged.faults, *found[:1]])

    def judged(self, scene: Scene) -> Judgement:
        """Judge a run. One that was to be disturbed, and whose first disturbance did not happen, is vacuous."""
        if scene.plan and not scene.happened:
            return Judgement(vacuous=f"{scene.plan[0]} did not happen")
        history = scene.history
        finished = history.outcome is not None and history.outcome["ok"]
        case = Case(history, self._usual if finished or self.prediction.finishes else self._failing)
        faults: list[Fault] = [
            (clause.id, message, why)
            for clause in JUDGED
            if not (clause.id in _COMPARING and can_fail(self.spec))
            for message, why in clause.faults(case)
        ]
        seen = {clause for clause, _, _ in faults}
        # One fault is told once: what the clause's own check has seen needs no second opinion.
        faults += [
            fault
            for fault in faults_of(self.spec, history, scene.counted, self._outputs)
            if fault[0] not in seen and not seen & _CAUSES.get(fault[0], set())
        ]
        occasions = Counter({clause.id: clause.occasions(case) for clause in JUDGED})
        return Judgement(faults, occasions, lambda why: tell(history, why))
