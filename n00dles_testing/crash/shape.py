"""The shape of a pipeline as a judge needs it: what runs side by side, what excludes what, how often one may try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from n00dles.agent import Agent
from n00dles.pipeline import Branch, Parallel, Pipeline, Step
from n00dles.retry import RetryPolicy

__all__ = ["Branching", "Group", "Shape", "describe_shape"]


@dataclass(frozen=True, slots=True)
class Group:
    """A fan-out: the nodes of each member, and how many members may run at once (None: all)."""

    name: str
    members: Mapping[str, tuple[str, ...]]
    max_concurrency: int | None

    def member_of(self, node: str) -> str | None:
        """Return the member that `node` is, or is in."""
        return next((member for member, nodes in self.members.items() if node in nodes), None)


@dataclass(frozen=True, slots=True)
class Branching:
    """A branch: the nodes of each of its routes, of which a run takes one."""

    name: str
    routes: Mapping[str, tuple[str, ...]]

    def route_of(self, node: str) -> str | None:
        """Return the route that `node` is, or is on."""
        return next((route for route, nodes in self.routes.items() if node in nodes), None)


@dataclass(frozen=True, slots=True)
class Shape:
    """All fan-outs and branches of a pipeline. `attempts` is how often each node may be called, fallbacks included.

    `untold` are clauses that cannot be told of this subject, by id, each with the reason. `sees_saves` is False for one
    that saves in its own way, so that it cannot be told when a save begins.
    """

    groups: tuple[Group, ...] = ()
    branches: tuple[Branching, ...] = ()
    attempts: Mapping[str, int] = field(default_factory=dict)
    untold: Mapping[str, str] = field(default_factory=dict)
    sees_saves: bool = True

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Self:
        """Read what `describe_shape` made, as a part of a larger description or alone."""
        return cls(
            tuple(
                Group(group["name"], _tuples(group["members"]), group["max_concurrency"])
                for group in description.get("groups", ())
            ),
            tuple(Branching(branch["name"], _tuples(branch["routes"])) for branch in description.get("branches", ())),
            dict(description.get("attempts", {})),
            dict(description.get("untold", {})),
            description.get("sees_saves", True),
        )


def describe_shape(pipeline: Pipeline) -> dict[str, Any]:
    """Return the shape of `pipeline` in JSON types, for a judge in another process."""
    found: dict[str, Any] = {"groups": [], "branches": [], "attempts": {}}
    _walk(pipeline, RetryPolicy(), found)
    return found


def _walk(step: Step, retry: RetryPolicy, found: dict[str, Any]) -> None:
    if isinstance(step, Agent):
        found["attempts"][step.name] = _attempts(step, retry)
        return
    if isinstance(step, Pipeline):
        retry = step.retry or retry
    if isinstance(step, Parallel):
        members = {member.name: _nodes(member) for member in step.members}
        found["groups"].append({"name": step.name, "members": members, "max_concurrency": step.max_concurrency})
    if isinstance(step, Branch):
        found["branches"].append({"name": step.name, "routes": {route.name: _nodes(route) for route in step.children}})
    for child in step.children:
        _walk(child, retry, found)


def _attempts(agent: Agent, retry: RetryPolicy) -> int:
    """A fallback is tried once, unless it says otherwise."""
    first, *fallbacks = agent.lineup()
    return (first.retry or retry).max_attempts + sum(
        fallback.retry.max_attempts if fallback.retry else 1 for fallback in fallbacks
    )


def _nodes(step: Step) -> list[str]:
    return [step.name] if isinstance(step, Agent) else [node for child in step.children for node in _nodes(child)]


def _tuples(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(nodes) for name, nodes in lists.items()}
