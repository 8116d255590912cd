"""Mocks of pipelines: one node that is carried out in the place of all steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Union, cast
from unittest import mock

from .. import api
from ..agent import Agent
from ..calling import check_ready
from ..executor import Execution
from ..identity import check_pipeline_unchanged
from ..pipeline import Branch, Parallel, Pipeline, Step
from .agents import AgentMock
from .mock import Raises

__all__ = ["PipelineMock", "mocked_pipelines"]


class PipelineMock(AgentMock):
    """A mock of a whole pipeline."""

    def __init__(self, pipeline: Pipeline, returns: Any, raises: Raises) -> None:
        self._pipeline = pipeline
        self._double = _Double(pipeline)
        super().__init__(self._double.node, returns, raises)

    def _begin(self) -> None:
        # Not before: its annotations may name what is defined below the decorator.
        self._double.node.returns = _output_type(self._pipeline)
        super()._begin()
        _doubles.put(self._pipeline, self._double)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _doubles.take(self._pipeline, self._double)
        super().__exit__(kind, error, traceback)


def mocked_pipelines(step: Step) -> list[str]:
    """Return the names of the mocked pipelines in a step, itself included."""
    return [pipeline.name for pipeline in _pipelines(step) if _doubles.of(pipeline)]


class _Double:
    """What is executed in the place of a pipeline: the same, with one node instead of its steps."""

    def __init__(self, pipeline: Pipeline) -> None:
        # It answers as a model does, so that a date or an enum may be returned.
        self.node = Agent(_mocked_pipeline, model="mock", retry=1)
        self.node.name = pipeline.name
        self.pipeline = copy.copy(pipeline)
        self.pipeline.steps = (self.node,)


def _mocked_pipeline() -> None:
    """Stand for all nodes of a pipeline."""


def _output_type(step: Step) -> Any:
    """Return the declared type of what a step gives."""
    if isinstance(step, Pipeline):
        return _output_type(step.steps[-1])
    if isinstance(step, Parallel):
        from typing_extensions import TypedDict  # Pydantic needs this one before Python 3.12, and depends on it

        return TypedDict("Outputs", {member.name: _output_type(member) for member in step.members})  # type: ignore[operator]
    if isinstance(step, Branch):
        return Union[tuple(_output_type(route) for route in step.children)]  # noqa: UP007 - made of a list
    return cast(Agent, step).returns


class _Doubles:
    """The pipelines that are mocked now. The executor is told of them only while there are some."""

    def __init__(self) -> None:
        self._by_pipeline: dict[Pipeline, list[_Double]] = {}
        self._undo: ExitStack | None = None

    def put(self, pipeline: Pipeline, double: _Double) -> None:
        self._by_pipeline.setdefault(pipeline, []).append(double)
        if self._undo is None:
            self._undo = _told_to_the_executor()

    def take(self, pipeline: Pipeline, double: _Double) -> None:
        doubles = self._by_pipeline[pipeline]
        doubles.remove(double)
        if not doubles:
            del self._by_pipeline[pipeline]
        if not self._by_pipeline and self._undo is not None:
            self._undo.close()
            self._undo = None

    def of(self, step: Step) -> _Double | None:
        return self._by_pipeline[step][-1] if isinstance(step, Pipeline) and step in self._by_pipeline else None

    def covers(self, agent: Agent) -> bool:
        """Whether an agent is in a mocked pipeline, itself or as a fallback."""
        return any(agent in each.lineup() for pipeline in self._by_pipeline for each in pipeline.agents())


_doubles = _Doubles()


def _told_to_the_executor() -> ExitStack:
    """Have the executor carry out the double of a mocked pipeline, in whatever it is a step; undone by closing."""
    carry_out, typed = Execution._pipeline_step, Execution._typed

    async def pipeline_step(execution: Execution, pipeline: Pipeline, *rest: Any) -> Any:
        double = _doubles.of(pipeline)
        if double is None:
            return await carry_out(execution, pipeline, *rest)
        # The wiring is that of the real steps, so the inputs are checked as theirs; the double's node reads nothing.
        cast("dict[str, Any]", execution._wiring.sources).setdefault(double.node.name, {})
        return await carry_out(execution, double.pipeline, *rest)

    def typed_output(execution: Execution, step: Step, stored: Any) -> Any:
        double = _doubles.of(step)
        return typed(execution, double.node if double is not None else step, stored)

    def ready(agent: Agent) -> None:
        if not _doubles.covers(agent):
            check_ready(agent)

    def unchanged(context: Any, pipeline: Pipeline) -> None:
        # A run of the mocked pipeline has a node that the real one does not have.
        if not any(_doubles.of(each) for each in _pipelines(pipeline)):
            check_pipeline_unchanged(context, pipeline)

    undo = ExitStack()
    undo.enter_context(mock.patch.object(Execution, "_pipeline_step", pipeline_step))
    undo.enter_context(mock.patch.object(Execution, "_typed", typed_output))
    undo.enter_context(mock.patch.object(api, "check_ready", ready))
    undo.enter_context(mock.patch.object(api, "check_pipeline_unchanged", unchanged))
    return undo


def _pipelines(step: Step) -> Iterator[Pipeline]:
    if isinstance(step, Pipeline):
        yield step
    for child in step.children:
        yield from _pipelines(child)
