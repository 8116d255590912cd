"""Models that are answered inside the test's own process: what stands behind the fixture `mock_llm`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest import mock
from urllib.parse import urlsplit

from _pytest.outcomes import Failed  # pytest.fail.Exception, without an import of pytest where there is none

from n00dles.idempotency import current_agent, current_node

from ..callers import find_caller
from ..local_addresses import stays_here
from ..older_threads import OlderThreads, told
from .calls import LLMCall, Reply
from .channels import Channel
from .client import ScriptError
from .delivery import in_drops, until_the_drop
from .faults import ConnectionReset, DropsMidStream, Fault, Hangs, KillsClient, LostReply, SlowDrip
from .forks import ForkNotes
from .interception import Ending, Played, Sent, intercepting
from .known_shapes import shape_for
from .other_requests import advice, answered
from .replies import ReplySource
from .scripting import Scripted
from .shapes import Answer, Shape, TurnedDownError, unread
from .written import written

__all__ = ["MockLLM", "NotMocked"]

_KEYS = {"OPENAI_API_KEY": "sk-fake", "ANTHROPIC_API_KEY": "sk-ant-fake"}


class NotMocked(Failed):
    """A request that `mock_llm` can neither answer nor let through.

    As whatever pytest.fail raises, it is no `Exception`, so that neither an SDK's retries nor a fallback hides it, and
    plugins that run tests on an event loop of their own let it through. It is recorded, too: a test fails that has it
    swallowed, or raised in a thread.
    """


class MockLLM(Scripted):
    """Answers clients of httpx and httpx2, and so the SDKs that are built on them, without a connection.

        with MockLLM().checked() as mock_llm:
            mock_llm.reply("researcher", "Three facts.")
            run(content_pipeline, topic="x", store="memory://")

    Requests whose path is that of OpenAI's chat completions or responses, or of Anthropic's messages, are answered from
    the script, whatever their host. Others pass through to this machine and to `allowed` hosts, and raise `NotMocked`
    for all others. What clients of another make send (aiohttp, requests) is not seen; `llm_server` answers those.
    """

    name = "mock_llm"
    no_calls = (
        "nothing, over httpx or httpx2 and in this process. Clients over aiohttp and other processes, such as those "
        "that crash_safety kills, are answered by llm_server"
    )

    def __init__(self, *, allowed: Collection[str] = ()) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)
        self._channel = Channel(self.name, lambda: ReplySource([], automatic=False, name=self.name))
        self._left_to: set[str] = set()
        self._forks = ForkNotes()
        self._older_threads = OlderThreads()
        self._outer_server = ""

    @contextmanager
    def started(self) -> Iterator[MockLLM]:
        """Answer in the `with` block, in all threads. Where no API key is set, one that opens nothing is set there."""
        self._older_threads, self._outer_server = OlderThreads(), _server()
        missing = {name: key for name, key in _KEYS.items() if not os.environ.get(name)}
        with mock.patch.dict(os.environ, missing), self._forks, intercepting(self._play):
            yield self

    @contextmanager
    def checked(self) -> Iterator[MockLLM]:
        """Like `started`, and raise `ScriptError` at the end if a call had no reply or a reply was not asked for."""
        with self.started():
            yield self
            problems = self.problems()
        if problems:
            raise ScriptError("\n".join(problems))

    @property
    def calls(self) -> list[LLMCall]:
        """Every call so far, in order, also those that got an error (`paid` is then false)."""
        return self._channel.calls

    @property
    def unused(self) -> list[Reply]:
        """The entries that have been used less often than they say."""
        return self._channel.unused

    def leave_to(self, url: str) -> None:
        """Let the calls to the fake LLM server at `url` through, which has a script of its own."""
        self._left_to.add(urlsplit(url).netloc)

    def unscripted(self) -> list[str]:
        """Say which calls had no reply, or were refused, of those that have not been told of before; forks' too."""
        for note in self._forks.news():
            self._turn_down(note)
        return super().unscripted()

    def _add(self, reply: Reply) -> None:
        self._channel.script([reply], automatic=False, name=self.name)

    def _play(self, sent: Sent, others_mock: bool) -> Played | None:
        """Answer a request, or return None to let it through."""
        inner_server = {_server()} - {self._outer_server}
        if urlsplit(sent.url).netloc in self._left_to | inner_server:
            return None
        shape = shape_for(sent.path) if sent.method == "POST" else None
        if shape is not None:
            return self._answered(shape, sent)
        if others_mock or stays_here(sent.host) or sent.host.lower() in self._allowed:
            return None
        raise self._refused(
            f"{self.name} was asked for {sent.method} {sent.url}, which it cannot answer{self._where()}. Nothing was "
            f"sent. It answers {answered()}. {advice(sent.path) or 'Mock this request with respx'}; or lead it to a "
            f'server on this machine, or mark the test @pytest.mark.n00dles_network("{sent.host}") to let it through.'
        )

    def _asked_at(self, node: str) -> str:
        """Say where a call without a reply comes from, if its node does not say that already."""
        thread = self._older_threads.name_of_current()
        caller = None if node and thread is None else find_caller(sys._getframe(1))
        said = [f" at {caller}"] if caller else []
        said += [f" by {told(thread)}"] if thread is not None else []
        return f"  asked{','.join(said)}" if said else ""

    def _where(self) -> str:
        node, thread = current_node(), self._older_threads.name_of_current()
        caller = find_caller(sys._getframe(1))
        said = [f", in node {node!r}"] if node else []
        said += [f", at {caller}"] if caller else []
        said += [f", by {told(thread)}"] if thread is not None else []
        return "".join(said)

    def _refused(self, note: str, call: LLMCall | None = None) -> NotMocked:
        """Record a request that cannot be answered, and return the error to raise."""
        if call is None:
            self._turn_down(note)
        else:
            self._channel.fail(call, note)
        self._forks.tell(note)
        return NotMocked(note)

    def _turn_down(self, note: str) -> None:
        self._channel.turn_down(TurnedDownError(note, 404, unexpected=True))

    def _answered(self, shape: Shape, sent: Sent) -> Played:
        node, agent = current_node() or "", current_agent() or ""
        try:
            request = shape.read(sent.body, sent.headers, node=node, agent=agent)
        except TurnedDownError as error:
            refusal = error
            if error.unexpected:
                refusal = TurnedDownError(f"{self.name}: {error}", error.status, unexpected=True)
            self._channel.turn_down(refusal, unread(shape.name, sent.body, node=node, agent=agent))
            if refusal.unexpected:
                self._forks.tell(str(refusal))
            return _whole(shape.turned_down(refusal))
        try:
            call, completion = self._channel.pay(request, partial(self._asked_at, request.node))
        except TurnedDownError as error:
            if error.unexpected:
                self._forks.tell(str(error))
            return _whole(shape.turned_down(error))
        answer = written(shape, request, completion, f"{self.name}{call.n:08d}")
        played = self._delivered(answer, completion.fault, call, sent.read_timeout)
        return replace(played, done=partial(_settle, self._channel, call))

    def _delivered(self, answer: Answer, fault: Fault | None, call: LLMCall, read_timeout: float | None) -> Played:
        match fault:
            case Hangs():
                if read_timeout is None:
                    raise self._refused(
                        f"{self.name}: the script has this call hang, and its client has no time-out for reading, so "
                        f"it would wait for ever: a call of {call.model!r}{self._where()}. Give the client a timeout.",
                        call,
                    )
                return Played(ending=Ending.TIMEOUT)
            case ConnectionReset():
                return Played(ending=Ending.RESET)
            case LostReply():
                return Played(ending=Ending.CLOSED)
            case KillsClient():
                sys.stderr.write(f"{self.name}: the script kills this process now, pid {os.getpid()} (KillsClient)\n")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            case DropsMidStream(after=after):
                return _whole(answer, pieces=until_the_drop(answer, after), ending=Ending.CUT)
            case SlowDrip(seconds=seconds):
                return _whole(answer, pieces=in_drops(answer), pause=seconds)
        return _whole(answer)


def _server() -> str:
    """Return the place of the fake LLM server whose environment is set, or an empty text."""
    return urlsplit(os.environ.get("N00DLES_LLM_CONTROL", "")).netloc


def _whole(
    answer: Answer,
    *,
    pieces: list[bytes] | None = None,
    pause: float = 0.0,
    ending: Ending = Ending.WHOLE,
) -> Played:
    headers = [("content-type", answer.content_type), *answer.headers.items()]
    if len(answer.pieces) == 1:
        headers.append(("content-length", str(len(answer.pieces[0]))))
    return Played(answer.status, headers, answer.pieces if pieces is None else pieces, pause, ending)


def _settle(channel: Channel, call: LLMCall, sent: bool) -> None:
    channel.settle(call, sent=sent)
