"""A family of scenarios: how they are drawn, and how one is judged. A campaign searches one family after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypothesis import strategies as st

from ..strategies import PipelineSpec, describe
from .stage import Stage

__all__ = ["Family", "Fault", "Judgement", "Trial"]

Fault = tuple[str, str, str]
"""A clause, a sentence, and the reason behind it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One scenario as data: a pipeline, and the rest in JSON types, which its family reads."""

    family: str
    spec: PipelineSpec
    rest: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int, int]:
        """What makes one scenario simpler than another: fewer nodes, a shorter rest, a shorter text."""
        return len(self.spec.nodes()), len(self.rest), len(describe(self.spec, nodes=True)) + sum(map(len, self.rest))


def _no_story(why: str) -> tuple[str, ...]:
    return (f"{'why':<9}{why}",) if why else ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one scenario.

    `occasions` says how often it could have broken each clause; `story` tells it, with a reason. With `vacuous` nothing
    was tried, and why.
    """

    faults: Sequence[Fault] = ()
    occasions: Mapping[str, int] = field(default_factory=Counter)
    story: Callable[[str], tuple[str, ...]] = _no_story
    vacuous: str = ""


class Family(Protocol):
    """A family of scenarios. `clauses` are those that it can speak of; `share` how much of a campaign is its.

    What is `on_disk` is left out for a store of somebody's own. One that is scouting tries no pipeline twice.
    """

    name: str
    clauses: frozenset[str]
    share: float
    on_disk: bool
    is_scouting: bool

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw trials of one pipeline, at least one; they are judged one after another."""

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Live and judge trials of one pipeline, and yield each as it is done."""

    def is_sound(self, trial: Trial) -> bool:
        """Whether its rest says something that can be tried; a token may say anything. May raise `ValueError`."""

    def plainer(self, trial: Trial) -> Iterator[Sequence[Trial]]:
        """Yield trials that a person would rather read, the best first; each time those of one pipeline.

        To these no single choice of hypothesis leads.
        """

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return what a person has to know of the trial, by heading."""
