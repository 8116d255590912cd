"""A worker that has ended before it could answer, and how far it had come."""

from __future__ import annotations

from ..verdicts import Verdict

__all__ = ["STEPS_OF_A_JOURNAL", "EndedError", "Story", "not_called", "not_through"]

STEPS_OF_A_JOURNAL = 1_000_000
"""The steps of one journal have numbers from a multiple of this."""


def not_through(seconds: float) -> str:
    """Say that a clause came to no end in so many seconds, though no call of the store took too long."""
    return (
        f"the clause was not through after {seconds:g} s, though no call took too long: the store or the machine is "
        "slow, and --limit gives more time"
    )


def not_called(seconds: float) -> str:
    """Say that the suite did not come to its next call of the store in so many seconds."""
    return (
        f"the store was not called: what the suite does before, as to start a process, took more than {seconds:g} s; "
        "the machine is slow"
    )


class Story:
    """The steps of the scenario that was going on, and of the probe in the middle of it, if one was.

    Steps are told by their numbers: each journal has `STEPS_OF_A_JOURNAL` for its own.
    """

    def __init__(self, scenario: int = 0) -> None:
        """Begin the story of a scenario; 0: none has begun, only probes."""
        self.scenario = scenario
        self._journals: dict[int, dict[int, str]] = {}
        self._current = 0
        self.is_in_a_call = False
        """Whether the store may have been called and not have returned, by what was told last."""

    def tell(self, number: int, text: str) -> None:
        """Take a step in, or its outcome."""
        self._current = number // STEPS_OF_A_JOURNAL
        steps = self._journals.setdefault(self._current, {})
        has_ended = number in steps and text.startswith(f"{steps[number]} → ")  # told again, with its outcome
        begins = number % STEPS_OF_A_JOURNAL == 0  # the title of a scenario
        self.is_in_a_call = not has_ended and not begins
        steps[number] = text

    @property
    def lines(self) -> list[str]:
        """The steps, in their order: those of the scenario, and then those of the probe that was told last."""
        own = next(iter(self._journals), 0) if self.scenario else self._current
        shown = dict.fromkeys((own, self._current))
        return [text for journal in shown for _, text in sorted(self._journals.get(journal, {}).items())]


class EndedError(Exception):
    """The worker has ended, or was killed, before it could answer; `sentence` says how, and during what.

    `verdict` is what that says of the store: FAIL, unless it was not the store's doing.
    """

    def __init__(self, what: str, story: Story, details: list[str], verdict: Verdict = Verdict.FAIL) -> None:
        self.story = story
        self.verdict = verdict
        self.details = details
        self.last = story.lines[-1] if story.lines else ""
        self.sentence = f"{what}, during: {self.last}" if self.last else what
        super().__init__(self.sentence)
