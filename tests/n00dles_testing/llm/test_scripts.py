"""Replies from a script: which one answers, and what happens when the script and the calls disagree."""

from __future__ import annotations

import re
from typing import Any

import openai
import pytest

from n00dles_testing.llm import LLMServer, Reply, ScriptError


def ask(prompt: str, model: str = "gpt-4o-mini", system: str = "You are an editor.") -> Any:
    with openai.OpenAI(max_retries=0) as client:
        messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        return client.chat.completions.create(model=model, messages=messages).choices[0].message.content


def test_texts_answer_in_their_order() -> None:
    with LLMServer(["first", "second"]) as server, server.in_environment():
        answers = [ask("a"), ask("b")]

    assert answers == ["first", "second"]


def test_the_first_entry_that_fits_answers_as_often_as_it_says() -> None:
    script = [
        Reply(prompt="^dogs", text="about dogs"),
        Reply(model="^claude", text="from Claude"),
        Reply(system="editor", prompt="cats", data={"cats": ["Tom"]}, times=2),
        Reply(text="anything else", times=None),
    ]
    with LLMServer(script) as server, server.in_environment():
        answers = [ask(prompt) for prompt in ("cats", "dogs", "dogs", "more cats", "cats")]
        answers.append(ask("birds", model="claude-x"))

    assert answers == [
        '{"cats": ["Tom"]}',
        "about dogs",
        "anything else",
        '{"cats": ["Tom"]}',
        "anything else",
        "from Claude",
    ]


def test_an_unexpected_request_is_an_error_for_the_client_and_fails_the_test() -> None:
    records = []

    def test_of_somebody() -> None:
        with LLMServer(["first", Reply(prompt="two", text="second")]) as server, server.in_environment():
            ask("one")
            ask("two")
            with pytest.raises(openai.BadRequestError, match="2 of 2 entries are used up"):
                ask("the third")
            records.extend([*server.journal(), *server.turned_down()])

    with pytest.raises(ScriptError, match=r"1 unexpected request.*the third"):
        test_of_somebody()

    assert [(call.prompt, call.paid, call.unexpected) for call in records] == [
        ("one", True, False),
        ("two", True, False),
        ("the third", False, True),
    ]


def test_an_entry_that_nobody_asked_for_fails_the_test() -> None:
    script: list[str | Reply] = ["first", Reply(text="never asked", times=3), Reply(text="nor this", times=None)]

    def test_of_somebody() -> None:
        with LLMServer(script) as server, server.in_environment():
            ask("one")

    with pytest.raises(ScriptError, match=r"2 entries .* not used.*never asked"):
        test_of_somebody()


def test_an_error_of_the_test_itself_is_not_hidden_by_the_script() -> None:
    with pytest.raises(ZeroDivisionError), LLMServer(["unused"]):
        _ = 1 / 0


def test_a_script_may_be_followed_by_replies_that_are_made_up() -> None:
    with LLMServer(["first"], automatic=True) as server, server.in_environment():
        answers = [ask("a"), ask("b"), ask("b")]

    assert answers[0] == "first"
    assert answers[1] == answers[2] != "first"


def test_an_empty_script_allows_no_call() -> None:
    def test_of_somebody() -> None:
        with LLMServer([]) as server, server.in_environment(), pytest.raises(openai.BadRequestError):
            ask("a")

    with pytest.raises(ScriptError, match="unexpected"):
        test_of_somebody()


def test_a_scripted_error_is_no_surprise_and_not_paid() -> None:
    with LLMServer([Reply(status=529, text="overloaded"), "then well"]) as server, server.in_environment():
        with pytest.raises(openai.InternalServerError, match="overloaded"):
            ask("a")
        answer = ask("a")

        (paid,) = server.journal()
        assert (paid.reply, answer) == ("then well", "then well")
        assert [call.unexpected for call in server.turned_down()] == [False]


def test_each_channel_plays_the_script_from_its_start_and_a_reset_begins_again() -> None:
    with LLMServer(["first", "second"]) as server:
        answers = []
        for channel in ("a", "b"):
            with server.in_environment(channel):
                answers += [ask("x"), ask("y")]
        server.reset("a")
        with server.in_environment("a"):
            answers += [ask("x"), ask("y")]

    assert answers == ["first", "second"] * 3


def test_given_tokens_are_billed() -> None:
    with LLMServer([Reply(text="x", input_tokens=1000, output_tokens=0)]) as server, server.in_environment():
        ask("a")

        (call,) = server.journal()
    assert (call.input_tokens, call.output_tokens) == (1000, 0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"stop": "never"}, "stop="),
        ({"times": 0}, "times="),
        ({"status": 302}, "status="),
        ({"prompt": "("}, "missing"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_where_it_is_written(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, re.error), match=words):
        Reply(**wrong)
