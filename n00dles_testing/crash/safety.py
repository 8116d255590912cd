"""What stands behind the `crash_safety` fixture: one call in a test that fails with the story of what went wrong."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from n00dles.pipeline import Pipeline, Step
from n00dles.pipeline import pipeline as build
from n00dles.wiring import wire

from .backends import Environment
from .exploration import ExplorationError, ExplorationReport
from .explorer import DEFAULT_TIME_LIMIT, explore
from .player import Paid

__all__ = ["CrashSafety"]

_log = logging.getLogger("n00dles_testing")


class CrashSafety:
    """Checks that a pipeline survives being killed, or disturbed otherwise, anywhere.

    Bodies are run for real, a few times more often than there are crash points; models may be faked, nothing else is.
    The processes that are killed import the pipeline anew, so `monkeypatch` and fixtures do not reach them: have the
    code look at an environment variable, or check with `mode="in-process"`.

        def test_survives(crash_safety):
            crash_safety.check(content_pipeline, topic="agentic search")

    `reports` keeps what each call found. `environment` and `paid` are those of `explore`, for all calls.
    """

    def __init__(self, *, environment: Environment = None, paid: Paid | None = None) -> None:
        self.reports: list[ExplorationReport] = []
        self._environment = environment
        self._paid = paid

    def wiring_for(self, pipeline: Any) -> tuple[Environment, Paid | None]:
        """Return `environment` and `paid` for a pipeline; a hook for those who choose them by the pipeline."""
        return self._environment, self._paid

    def check(
        self,
        pipeline: Any,
        /,
        *,
        mode: str | None = None,
        at: str | Sequence[str] | None = None,
        how: str | Sequence[str] | None = None,
        budget: int | str | None = None,
        lives: int = 1,
        store: Any = None,
        executor: Any = None,
        time_limit: float = DEFAULT_TIME_LIMIT,
        allow_unknown: bool = False,
        inputs: Mapping[str, Any] | None = None,
        **more_inputs: Any,
    ) -> ExplorationReport:
        """Kill and resume `pipeline` at its crash points, with these inputs, and return the report.

        The options are those of `explore`; with `how="all"` it is also cancelled, interrupted and timed out there, and
        its store fails. Inputs are given by name; one that has the name of an option goes into `inputs={"budget": 3}`.
        A pipeline at the top level of a module is killed in processes of its own; one that is made inside a test
        function is run in-process, and the report says so. Raises `AssertionError` if a clause is broken, if a kill did
        not happen, or if a clause could not be told since the pipeline differs by itself; with `allow_unknown` the
        latter is logged as a warning instead, see `report.unknown`.
        """
        __tracebackhide__ = True
        options = {"mode": mode, "at": at, "how": how, "budget": budget, "store": store, "executor": executor}
        given = [name for name, value in options.items() if value is not None]
        environment, paid = self.wiring_for(pipeline)
        try:
            report = explore(
                pipeline,
                _all_inputs(pipeline, inputs, more_inputs, given),
                mode=mode,
                at=at,
                how=how,
                budget=budget,
                store=store,
                executor=executor,
                lives=lives,
                time_limit=time_limit,
                allow_unknown=allow_unknown,
                environment=environment,
                paid=paid,
            )
        except ExplorationError as error:
            # What is wrong is said in its message; the reader wants to see the line of the test.
            hint = _mistyped(str(error), more_inputs)
            raise (ExplorationError(f"{error} {hint}") if hint else error.with_traceback(None)) from None
        self.reports.append(report)
        if not report.ok:
            raise AssertionError(str(report))
        if report.unknown:
            _log.warning("%s: %s", report.target, report.unknown)
        return report


def _all_inputs(
    pipeline: Any, mapping: Mapping[str, Any] | None, named: Mapping[str, Any], options: Sequence[str]
) -> dict[str, Any]:
    """Return all inputs. Raises `TypeError` where it is not clear whether something is an input or an option."""
    if mapping is not None and not isinstance(mapping, Mapping):
        raise TypeError(
            f"inputs={mapping!r} is no mapping; an input with the name 'inputs' is given as inputs={{'inputs': …}}."
        )
    given = dict(mapping or {})
    if twice := sorted(given.keys() & named.keys()):
        raise TypeError(f"{', '.join(twice)} is given twice: by name, and in inputs=.")
    if isinstance(pipeline, Step):
        sources = wire(pipeline if isinstance(pipeline, Pipeline) else build(pipeline)).sources.values()
        reads = {source.name for by_name in sources for source in by_name.values() if source.kind == "input"}
        for name in options:
            if name in reads and name not in given:
                raise TypeError(
                    f"{name}= is an option of check, and {pipeline.name!r} has an input of that name. Give the input "
                    f"as inputs={{{name!r}: …}}."
                )
    return {**given, **named}


def _mistyped(problem: str, named: Mapping[str, Any]) -> str:
    """Return a hint if the problem is an input that is none, and looks like an option of `check`."""
    parameters = inspect.signature(CrashSafety.check).parameters.values()
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for name in named:
        if repr(name) in problem and (close := difflib.get_close_matches(name, options, n=1)):
            return f"{name}= was taken for an input; did you mean the option {close[0]}= of check?"
    return ""
