"""How agents are put together: chains (`>>`), fan-outs (`|`), branches, and pipelines as steps of others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from .errors import PipelineBuildError, PipelineFailure
from .retry import RetryPolicy, retry_policy

if TYPE_CHECKING:
    from .agent import Agent

__all__ = ["Branch", "OnError", "Parallel", "Pipeline", "Step", "branch", "parallel", "pipeline"]

OnError = Callable[[PipelineFailure], Awaitable[None] | None]

_NAME = re.compile(r"[\w.-]+")
_LISTED = 4


class Step:
    """Anything that can stand in a pipeline. `children` are the steps inside it; an agent has none."""

    name: str

    @property
    def children(self) -> tuple[Step, ...]:
        """The steps that this one is made of, in order."""
        return ()

    def __rshift__(self, other: Step) -> Pipeline:
        """`a >> b`: b follows a and gets its output."""
        return Pipeline([*_links(self), *_links(_checked_step(other, ">>"))])

    def __or__(self, other: Step) -> Parallel:
        """`a | b`: both run at once; the output is a dict by member name."""
        mine = self.members if isinstance(self, Parallel) and self.max_concurrency is None else (self,)
        theirs = other.members if isinstance(other, Parallel) and other.max_concurrency is None else (other,)
        return Parallel([*mine, *theirs])

    def agents(self) -> list[Agent]:
        """Return every agent in this step, in order of appearance, nested pipelines and all routes included."""
        return list(self._leaves())

    def _leaves(self) -> Iterator[Agent]:
        if not self.children:
            yield cast("Agent", self)
        for child in self.children:
            yield from child._leaves()


class Parallel(Step):
    """A fan-out: all `members` get the same previous output, at most `max_concurrency` of them at a time."""

    def __init__(self, members: list[Step], max_concurrency: int | None = None) -> None:
        if len(members) < 2:  # noqa: PLR2004
            raise PipelineBuildError(f"a fan-out has at least two members; got {len(members)}.")
        if max_concurrency is not None and (isinstance(max_concurrency, bool) or max_concurrency < 1):
            raise PipelineBuildError(
                f"max_concurrency={max_concurrency!r} lets no member run; use at least 1, or None."
            )
        self.members = tuple(_checked_step(member, "|") for member in members)
        self.max_concurrency = max_concurrency
        self.name = f"parallel[{','.join(member.name for member in self.members)}]"
        _refuse_twins((member.name for member in self.members), "two members of one fan-out are named")

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def children(self) -> tuple[Step, ...]:
        """The members."""
        return self.members


class Branch(Step):
    """Exactly one of `routes`, chosen by the previous output: itself if it is a string, else its field `category`."""

    def __init__(self, routes: Mapping[str, Step], default: Step | None = None) -> None:
        if not routes:
            raise PipelineBuildError(
                "a branch has at least one route: branch(billing=handle_billing, default=handle_other)."
            )
        self.routes = {key: _checked_step(step, "branch()") for key, step in routes.items()}
        self.default = None if default is None else _checked_step(default, "branch()")
        self.name = f"branch[{','.join(self.routes)}]"

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def children(self) -> tuple[Step, ...]:
        """The different steps among the routes and the default; one step may serve several routes."""
        return tuple(dict.fromkeys([*self.routes.values(), *([self.default] if self.default else [])]))


class Pipeline(Step):
    """A chain of steps with common settings; made by `>>` and `pipeline()`.

    `has_own_name` tells a pipeline that was named from one whose name is derived from its steps.
    """

    def __init__(
        self,
        steps: list[Step],
        *,
        name: str | None = None,
        retry: int | RetryPolicy | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        if not steps:
            raise PipelineBuildError("a pipeline has at least one step.")
        self.steps = tuple(steps)
        self.has_own_name = name is not None
        self._agents = tuple(agent for step in self.steps for agent in step.agents())
        self.name = checked_name(name) if name is not None else _derived_name(self._agents)
        self.retry = retry_policy(retry)
        self.timeout = checked_timeout(timeout, self.name)
        self.on_error = on_error
        self._signature: list[str] | None = None
        _refuse_twins(_outputs_by_name(self.steps), "two steps of one pipeline are named")

    def __repr__(self) -> str:
        return f"<pipeline {self.name}>"

    @property
    def children(self) -> tuple[Step, ...]:
        """The steps."""
        return self.steps

    def agents(self) -> list[Agent]:
        """Return every agent in this pipeline, in order of appearance, nested ones and all routes included."""
        return list(self._agents)

    @property
    def is_bare_chain(self) -> bool:
        """Whether this is just what `>>` made, so that another `>>` may continue it."""
        return not self.has_own_name and self.retry is None and self.timeout is None and self.on_error is None

    def signature(self) -> list[str]:
        """Return one line a step, as it is compared when a run is resumed: names, parameters, declared types, shape."""
        if self._signature is None:
            self._signature = [_described(step) for step in self.steps]
        return list(self._signature)


def pipeline(
    chain: Step,
    *,
    name: str | None = None,
    retry: int | RetryPolicy | None = None,
    timeout: float | None = None,
    on_error: OnError | None = None,
) -> Pipeline:
    """Make a pipeline of a chain, with settings for all agents in it that have none of their own.

    `retry` (default 3 attempts) and `timeout` (default 60 seconds an attempt) go from the outside in: the most specific
    setting wins. `on_error` is called, and awaited, with the `PipelineFailure` before it is raised. Raises
    `PipelineBuildError` for two nodes of one name (see `Agent.named`).
    """
    step = _checked_step(chain, "pipeline()")
    return Pipeline(_links(step), name=name, retry=retry, timeout=timeout, on_error=on_error)


def parallel(*members: Step, max_concurrency: int | None = None) -> Parallel:
    """Run all members at once, or `max_concurrency` at a time; the output is a dict by member name."""
    return Parallel(list(members), max_concurrency)


def branch(*, default: Step | None = None, **routes: Step) -> Branch:
    """Run the one route that the previous output names, else `default`, else raise `BranchError`."""
    return Branch(routes, default)


def checked_name(name: str) -> str:
    """Return `name` if it can name a node or a pipeline. Raises `PipelineBuildError`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PipelineBuildError(
            f"{name!r} cannot be the name of a node; use letters, digits, '_', '-' and '.' (a lambda needs a def)."
        )
    return name


def checked_timeout(timeout: float | None, owner: str) -> float | None:
    """Return `timeout` if it is a positive number of seconds, or None. Raises `PipelineBuildError`."""
    if timeout is not None and not timeout > 0:
        raise PipelineBuildError(f"timeout={timeout!r} of {owner!r} is not a positive number of seconds.")
    return timeout


def _links(step: Step) -> list[Step]:
    return list(step.steps) if isinstance(step, Pipeline) and step.is_bare_chain else [step]


def _checked_step(candidate: Any, where: str) -> Step:
    if isinstance(candidate, Step):
        return candidate
    if callable(candidate):
        name = getattr(candidate, "__name__", repr(candidate))
        raise PipelineBuildError(f"{name} is a plain function in {where}; decorate it with @agent.")
    raise PipelineBuildError(f"{candidate!r} is no step of a pipeline in {where}; use agents, '>>', '|' and branch().")


def _refuse_twins(names: Iterator[str], what: str) -> None:
    twins = [name for name, count in Counter(names).items() if count > 1]
    if twins:
        raise PipelineBuildError(
            f"{what} {twins[0]!r}, so a resume could not tell them apart; rename one: {twins[0]}.named('{twins[0]}_2')."
        )


def _outputs_by_name(steps: tuple[Step, ...], *, members: bool = False) -> Iterator[str]:
    """Yield the names under which later nodes can read something: of nodes, named pipelines and members of fan-outs."""
    for step in steps:
        if not step.children or members or (isinstance(step, Pipeline) and step.has_own_name):
            yield step.name
        yield from _outputs_by_name(step.children, members=isinstance(step, Parallel))


def _derived_name(agents: tuple[Agent, ...]) -> str:
    names = [agent.name for agent in agents]
    return "_".join(names) if len(names) <= _LISTED else f"{names[0]}_to_{names[-1]}"


def _described(step: Step) -> str:
    if isinstance(step, Parallel):
        return f"({' | '.join(_described(member) for member in step.members)})"
    if isinstance(step, Branch):
        routes = [f"{key}={_described(route)}" for key, route in step.routes.items()]
        return f"branch({', '.join([*routes, *([f'default={_described(step.default)}'] if step.default else [])])})"
    if isinstance(step, Pipeline):
        # Later nodes can read its output by its name, which is a member's key in the output of a fan-out, too.
        name = step.name if step.has_own_name else ""
        return f"{name}[{' >> '.join(_described(inner) for inner in step.steps)}]"
    return cast("Agent", step).signature
