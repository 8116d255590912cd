"""Whether an executor can be called, and tells anything: else every clause would be VACUOUS, whatever is drawn."""

from __future__ import annotations

import inspect
import re

from ..strategies import NodeSpec, PipelineSpec
from .named import NamedExecutor
from .report import CampaignError
from .stage import Stage

__all__ = ["probe"]

_ONE_NODE = PipelineSpec((NodeSpec("a", "str"),))
_GIVEN = {"run": ("run_id", "store", "observers", "inputs"), "resume": ("run_id", "store", "observers")}
_DUE = """It is called as
    async def run(self, pipeline, *, run_id, store, observers, inputs) -> RunResult
    async def resume(self, pipeline, *, run_id, store, observers) -> RunResult
see test-another-executor.md for one that can be."""
_ABOUT_A_CALL = re.compile(r"(run|resume)\(\) (missing|got|takes) ")


def probe(named: NamedExecutor, stage: Stage) -> None:
    """Live a run of one node. Raises `CampaignError` if it cannot be called, or if its observers are told nothing.

    A run that fails in any other way is left to the campaign, whose clauses say what is wrong.
    """
    for method, names in _GIVEN.items():
        try:
            inspect.signature(getattr(named.executor, method)).bind(None, **dict.fromkeys(names))
        except TypeError as error:
            raise CampaignError(f"{named.title}: {method} cannot be called: {error}. {_DUE}") from None
        except ValueError:  # it has no signature to look at
            continue
    life = stage.play(_ONE_NODE).history.working[0]
    if stage.executor.not_awaited:
        raise CampaignError(f"{named.title}: {stage.executor.not_awaited}. {_DUE}")
    outcome = life.outcomes[-1] if life.outcomes else None
    if outcome is not None and not outcome["ok"]:
        called = _ABOUT_A_CALL.search(outcome["message"])
        if outcome["error"] == "TypeError" and called is not None:
            raise CampaignError(f"{named.title}: {called[1]} cannot be called: {outcome['message']}. {_DUE}")
    if outcome is not None and outcome["ok"] and not life.events:
        raise CampaignError(
            f"{named.title}: it ran a pipeline of one node, and no event arrived. `run` and `resume` have to call each "
            "of `observers` with RunStarted, NodeStarted, NodeReturned, … as they happen: these are the moments at "
            "which its lives are disturbed. See events.md, and test-another-executor.md for an example."
        )
