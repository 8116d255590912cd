"""A worker that has ended before it could answer, and how far it had come."""

from __future__ import annotations

from ..verdicts import Verdict

__all__ = ["EndedError", "Story", "not_through"]


def not_through(seconds: float) -> str:
    """Say that a clause came to no end in so many seconds, though no call of the store took too long."""
    return (
        f"the clause was not through after {seconds:g} s, though no call took too long: the store or the machine is "
        "slow, and --limit gives more time"
    )


class Story:
    """The steps of the scenario that was going on, by their numbers."""

    def __init__(self, scenario: int = 0) -> None:
        self.scenario = scenario
        self.steps: dict[int, str] = {}

    @property
    def lines(self) -> list[str]:
        """The steps, in their order."""
        return [self.steps[number] for number in sorted(self.steps)]


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
