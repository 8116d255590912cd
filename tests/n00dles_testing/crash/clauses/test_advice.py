"""What a report says to the author of a pipeline that is no fault of the executor."""

from __future__ import annotations

from n00dles import agent, idempotency_key, pipeline
from n00dles_testing.crash import explore
from n00dles_testing.crash.clauses.advice import advice
from tests.n00dles_testing.crash.clauses.tale import Tale, undisturbed


@agent
def write_mail(topic: str) -> str:
    return f"about {topic}"


@agent
def send_mail(text: str) -> str:
    return "sent"


@agent
async def charge(text: str) -> str:
    return idempotency_key("card")


def test_a_body_whose_effect_may_happen_twice_is_named_once() -> None:
    report = explore(pipeline(send_mail), {"text": "hello"}, mode="in-process", lives=2)

    assert [note for note in report.notes if "twice" in note] == [
        "`send_mail` may run twice: a kill can fall between a node's effect and its checkpoint; give idempotency_key() "
        "along with whatever it does outside"
    ]
    assert report.ok


def test_several_bodies_share_a_sentence_and_one_that_asks_for_its_key_is_left_out() -> None:
    report = explore(pipeline(write_mail >> send_mail >> charge), {"topic": "tea"}, mode="in-process")

    assert [note for note in report.notes if "twice" in note] == [
        "`write_mail`, `send_mail` may run twice: a kill can fall between a node's effect and its checkpoint; give "
        "idempotency_key() along with whatever it does outside"
    ]


def test_a_node_that_was_cut_short_or_was_stored_is_not_named() -> None:
    cut_short = Tale().life("during:a").starts("a").dies().life(stored=[]).calls("a").saves("a").finishes()
    stored = Tale().life("after-save:a").calls("a").saves("a").dies().life(stored=["a"]).calls("a").finishes()

    assert advice([undisturbed().history, cut_short.history, stored.history]) == []
