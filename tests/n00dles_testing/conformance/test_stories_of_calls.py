"""From what is told of a scenario it is known whether the store may be in a call, or the suite is busy itself."""

from __future__ import annotations

from n00dles_testing.conformance.ended import STEPS_OF_A_JOURNAL, Story
from n00dles_testing.conformance.journal import Journal

FIRST = STEPS_OF_A_JOURNAL


def listened(story: Story) -> Journal:
    return Journal("two saves", lambda number, text: story.tell(FIRST + number, text))


def test_a_call_lasts_from_its_step_to_its_outcome() -> None:
    story = Story()
    journal = listened(story)
    told = [story.is_in_a_call]

    step = journal.write("save('r')")
    told.append(story.is_in_a_call)
    journal.goes_on(step)
    told.append(story.is_in_a_call)
    journal.outcome(step, "acknowledged")
    told.append(story.is_in_a_call)

    assert told == [False, True, True, False]


def test_a_step_of_another_probe_with_the_same_number_is_a_call_of_its_own() -> None:
    story = Story()
    journal, other = listened(story), listened(story)
    journal.outcome(journal.write("open(apart-1)"), "open")

    other.write("close()")

    assert story.is_in_a_call
