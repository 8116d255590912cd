"""A worker that has ended before it could answer, and how far it had come."""

from __future__ import annotations

__all__ = ["EndedError", "Story"]


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
    """The worker has ended, or was killed, before it could answer; `sentence` says how, and during what."""

    def __init__(self, what: str, story: Story, details: list[str]) -> None:
        self.story = story
        self.details = details
        self.last = story.lines[-1] if story.lines else ""
        self.sentence = f"{what}, during: {self.last}" if self.last else what
        super().__init__(self.sentence)
