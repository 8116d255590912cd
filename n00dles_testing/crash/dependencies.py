"""Which nodes have to be stored before which node starts, read off the shape of a pipeline."""

from __future__ import annotations

from typing import Any

from n00dles.agent import Agent
from n00dles.pipeline import Pipeline, Step

from .shape import describe_shape

__all__ = ["dependencies", "describe"]


def dependencies(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return, for every node, the nodes that come before it. Of the routes of a branch only one is taken in a run."""
    found: dict[str, list[str]] = {}
    _walk(pipeline, [], found)
    return found


def describe(pipeline: Pipeline) -> dict[str, Any]:
    """Return what a judge in another process has to know of a pipeline, in JSON types.

    `nodes` has, by node, `model` (None for a body) and `needs` (see `dependencies`); the rest is its `Shape`.
    """
    needs = dependencies(pipeline)
    nodes = {
        agent.name: {
            "model": agent.model,
            "needs": needs.get(agent.name, []),
        }
        for agent in pipeline.agents()
    }
    return {"name": pipeline.name, "nodes": nodes, **describe_shape(pipeline)}


def _walk(step: Step, before: list[str], found: dict[str, list[str]]) -> list[str]:
    """Note what the nodes of `step` need, and return what may be complete once `step` is."""
    if isinstance(step, Agent):
        found[step.name] = before
        return [*before, step.name]
    after = before
    for child in step.children:
        if isinstance(step, Pipeline):
            after = _walk(child, after, found)
        else:
            after = [*after, *(node for node in _walk(child, before, found) if node not in after)]
    return after
