"""Where each argument comes from, settled before the first node is called.

A node with one parameter gets the previous output; otherwise a parameter is filled by its name, from the outputs that
are certainly complete by then, then from the run's inputs, then from its default. Nothing depends on which sibling
happens to be faster, so a resumed run fills every parameter as the undisturbed one did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, cast

from .agent import Agent
from .errors import InputsError, PipelineBuildError
from .pipeline import Branch, Parallel, Pipeline, Step

__all__ = ["RESERVED_INPUTS", "Source", "Wiring", "wire"]

RESERVED_INPUTS = frozenset({"run_id", "store", "observers", "tags", "timeout", "wait"})
"""Options of `run`; an input cannot have one of these names."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where one argument comes from: the previous output, the output of the step `name`, or the input `name`.

    An input that is not given leaves the parameter to its default, if `required` is false. `step` is the one whose
    output is read; of an input, the one before the reader, if there is one, whose output it does not read.
    """

    kind: Literal["previous", "step", "input"]
    name: str
    required: bool = True
    step: Step | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Wiring:
    """The sources of all arguments, by node and parameter."""

    sources: Mapping[str, Mapping[str, Source]]

    @cached_property
    def readers(self) -> Mapping[str, Sequence[str]]:
        """The nodes that read each input, by its name."""
        readers: dict[str, list[str]] = {}
        for node, sources in self.sources.items():
            for source in sources.values():
                if source.kind == "input":
                    readers.setdefault(source.name, []).append(node)
        return readers

    @cached_property
    def required(self) -> frozenset[str]:
        """The inputs without which a run is no run of this pipeline."""
        sources = (source for by_name in self.sources.values() for source in by_name.values())
        return frozenset(source.name for source in sources if source.kind == "input" and source.required)

    def check_inputs(self, inputs: Mapping[str, object], pipeline: str, *, has_begun: bool = False) -> None:
        """Raise `InputsError` if an input is missing, or if nothing reads one.

        Of a run that `has_begun`, whatever read it may have been replaced since.
        """
        readers = self.readers
        missing = sorted(self.required - inputs.keys())
        unread = [] if has_begun else sorted(inputs.keys() - readers.keys())
        if not missing and not unread:
            return
        problems = [f"{name!r} is missing (read by {', '.join(readers[name])})" for name in missing]
        problems += [f"{name!r} is read by no node" for name in unread]
        takes = ", ".join(sorted(readers)) or "no input at all"
        sentences = [f"the inputs do not fit pipeline {pipeline!r}: {'; '.join(problems)}", *self._unread(missing)]
        raise InputsError(f"{'. '.join(sentences)}. It takes {takes}. No node was called.")

    def _unread(self, missing: Sequence[str]) -> Iterator[str]:
        """Yield, for nodes that miss an input, that the output before them is what was perhaps meant by it."""
        for node, sources in self.sources.items():
            lacking = [name for name in sources if sources[name].kind == "input" and name in missing]
            before = next((sources[name].step for name in lacking), None)
            names = [step.name for step in (before.children if isinstance(before, Parallel) else (before,)) if step]
            if len(sources) == 1 or not names or isinstance(before, Branch) or not sources.keys().isdisjoint(names):
                continue
            one, several = len(names) == 1, ", ".join(f"`{name}`" for name in names)
            yield (
                f"`{node}` has {len(sources)} parameters, so each of them is filled by its name, and before it "
                f"{'comes' if one else 'come'} {several}: rename {' or '.join(f'`{name}`' for name in lacking)} to "
                f"{several if one else f'one of {several}'}, or pass {', '.join(f'{name}=…' for name in lacking)}"
            )


@dataclass
class _Scope:
    """What a step can see: names that are certainly complete, names that may be, and which step came before.

    `steps` are all of the pipeline, by name.
    """

    steps: Mapping[str, Step]

    certain: set[str] = field(default_factory=set)
    possible: set[str] = field(default_factory=set)
    previous: Step | None = None
    group: frozenset[str] = frozenset()


@lru_cache(maxsize=256)
def wire(pipeline: Pipeline) -> Wiring:
    """Settle the sources of all arguments of `pipeline`. Raises `PipelineBuildError` where one cannot be settled."""
    sources: dict[str, dict[str, Source]] = {}
    _wire_chain(pipeline, _Scope({step.name: step for step in _all_steps(pipeline)}), sources)
    return Wiring(sources)


def _all_steps(step: Step) -> Iterator[Step]:
    yield step
    for child in step.children:
        yield from _all_steps(child)


def _wire(step: Step, scope: _Scope, sources: dict[str, dict[str, Source]]) -> set[str]:
    """Settle a step, and return the names that are certainly complete after it; `scope` is left as it was found."""
    if isinstance(step, Pipeline):
        return _wire_chain(step, scope, sources) | ({step.name} if step.has_own_name else set())
    if isinstance(step, Parallel):
        return _wire_apart(step.members, scope, sources) | {member.name for member in step.members}
    if isinstance(step, Branch):
        if scope.previous is None:
            raise PipelineBuildError(f"{step.name} has no step before it whose output could choose the route.")
        scope.possible |= _wire_apart(step.children, scope, sources)
        return set()
    agent = cast(Agent, step)
    sources[agent.name] = {name: _source(agent, name, scope) for name in agent.parameters}
    return {agent.name}


def _wire_apart(steps: tuple[Step, ...], scope: _Scope, sources: dict[str, dict[str, Source]]) -> set[str]:
    """Settle steps none of which sees what another one does."""
    before, certain, possible = set(scope.possible), set[str](), set[str]()
    for step in steps:
        certain |= _wire(step, scope, sources)
        possible |= scope.possible
        scope.possible = set(before)
    scope.possible = possible
    return certain


def _wire_chain(chain: Pipeline, scope: _Scope, sources: dict[str, dict[str, Source]]) -> set[str]:
    # One set serves the whole chain, with what it adds taken back at the end: a copy a step would be quadratic.
    added: set[str] = set()
    previous, group = scope.previous, scope.group
    for step in chain.steps:
        new = _wire(step, scope, sources) - scope.certain
        scope.certain |= new
        added |= new
        scope.previous = step
        scope.group = frozenset(m.name for m in step.members) if isinstance(step, Parallel) else frozenset()
    scope.certain -= added
    scope.previous, scope.group = previous, group
    return added


def _source(agent: Agent, name: str, scope: _Scope) -> Source:
    required = agent.parameters[name].default is agent.parameters[name].empty
    if len(agent.parameters) == 1 and scope.previous is not None and name not in scope.group:
        return Source("previous", name, step=scope.previous)
    if name in scope.certain:
        return Source("step", name, step=scope.steps.get(name))
    if name in scope.possible and required:
        raise PipelineBuildError(
            f"node {agent.name!r} reads {name!r}, which runs on one route of a branch only; give the parameter a "
            "default, or read the branch's output."
        )
    if name in scope.possible:
        return Source("step", name, required=False, step=scope.steps.get(name))
    if name in RESERVED_INPUTS:
        raise PipelineBuildError(f"node {agent.name!r} would read the input {name!r}, an option of run(); rename it.")
    return Source("input", name, required, step=scope.previous)
