"""A clean process that imports the user's module once, and is then copied for every life.

Why a process of its own: a fork of the test process would copy its threads' locks, event loop and connections in
whatever state they are. This one has a single thread, no event loop and no store when it forks.

It is told what to do over two pipes of its own, a JSON line each way, so that what the user's module prints or reads
does not matter. It ends with the process that started it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from n00dles.errors import ConfigurationError
from n00dles.pipeline import Pipeline

from .child import live_and_exit, load_subject
from .dependencies import describe
from .ledger import read_ledger
from .life import Executor
from .processes import AbandonedError, die_with_parent, life_end, start_interpreter, wait_for
from .scenario import BackendError, LifeEnd, LifeRequest, Scenario, Subject, play

__all__ = ["ForkServer", "fork_is_available", "main"]

_GRACE_SECONDS = 5.0


def fork_is_available() -> bool:
    """Whether this platform can copy a process."""
    return hasattr(os, "fork") and hasattr(signal, "SIGKILL")


class ForkServer:
    """The side of whoever wants lives lived. Starting it imports the target; `BackendError` says why that failed.

    `start_limit` is how many seconds the import may take.
    """

    def __init__(
        self, subject: Subject, environment: Mapping[str, str] | None = None, *, start_limit: float = 120.0
    ) -> None:
        self._target = subject.target
        requests_out, requests = os.pipe()
        replies, replies_in = os.pipe()
        self._requests: BinaryIO = os.fdopen(requests, "wb", buffering=0)
        self._replies: BinaryIO = os.fdopen(replies, "rb")
        try:
            self._process: subprocess.Popen[bytes] = start_interpreter(
                __name__, [str(requests_out), str(replies_in)], environment, keep=(requests_out, replies_in)
            )
        finally:
            os.close(requests_out)
            os.close(replies_in)
        try:
            self._send({"target": subject.target, "executor": subject.executor})
            self.description: dict[str, Any] = self._receive(start_limit)["description"]
        except BaseException:
            self.close()
            raise

    def play(self, scenario: Scenario) -> list[LifeEnd]:
        """Have all lives of `scenario` lived. Raises `BackendError` if the server is gone."""
        self._send(scenario.to_dict())
        # Every life has a limit of its own, and the server keeps it; this one is for a server that hangs.
        limit = (len(scenario.plan) + 2) * (scenario.time_limit + _GRACE_SECONDS)
        return [LifeEnd(**end) for end in self._receive(limit)["lives"]]

    def close(self) -> None:
        """End the server and, with it, any child that lives."""
        for pipe in (self._requests, self._replies):
            pipe.close()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: Mapping[str, Any]) -> None:
        # A server that is gone is noticed when its reply is read, and told better there.
        with suppress(BrokenPipeError):
            self._requests.write(json.dumps(message).encode() + b"\n")

    def _receive(self, limit: float) -> dict[str, Any]:
        ready, _, _ = select.select([self._replies], [], [], limit)
        if not ready:
            raise BackendError(f"the fork server of {self._target} did not answer within {limit:.0f} s, and was ended.")
        line = self._replies.readline()
        if not line:
            code = self._process.wait(_GRACE_SECONDS)
            raise BackendError(
                f"the process that imports {self._target} ended with exit code {code} before it answered; what it "
                "printed stands on stderr. Does the module end the process while it is imported?"
            )
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise BackendError(reply["error"])
        return reply


class _Server:
    """The side that forks."""

    def __init__(self, requests: int, replies: int) -> None:
        for descriptor in (requests, replies):
            os.set_inheritable(descriptor, False)
        self._requests = os.fdopen(requests, "rb")
        self._replies = os.fdopen(replies, "wb", buffering=0)
        self._imported: set[str] = set()

    def serve(self) -> None:
        """Import the target, then live scenario after scenario until nobody asks any more."""
        first = self._requests.readline()
        if not first:
            return
        subject = Subject(**json.loads(first))
        try:
            pipeline, executor = load_subject(subject)
            _preload(pipeline)
            _refuse_threads(subject.target)
        except (ConfigurationError, BackendError) as error:
            self._reply({"error": str(error)})
            return
        _settle()
        self._reply({"description": describe(pipeline)})
        while line := self._requests.readline():
            scenario = Scenario.from_dict(json.loads(line))
            ends = play(scenario, lambda request: self._live(request, pipeline, executor))
            if scenario.record:
                self._warm(scenario.ledger)
                try:
                    _refuse_threads(subject.target)
                except BackendError as error:
                    self._reply({"error": str(error)})
                    return
            self._reply({"lives": [_as_dict(end) for end in ends]})

    def _live(self, request: LifeRequest, pipeline: Pipeline, executor: Executor) -> LifeEnd:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # else the child would print it again
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent()
                self._requests.close()
                self._replies.close()
                live_and_exit(request, pipeline, executor)
            finally:
                os._exit(1)
        status, timed_out = wait_for(pid, request.scenario.time_limit, self._requests.fileno())
        return life_end(request, pid, status, time.monotonic() - started, timed_out=timed_out)

    def _warm(self, ledger: str) -> None:
        """Import what a first life had to import on its way, so that no later one has to."""
        for entry in read_ledger(ledger):
            for name in entry["names"] if entry.kind == "modules" else ():
                if name not in sys.modules:
                    with suppress(Exception):  # a module that cannot be imported by itself is left to who needs it
                        importlib.import_module(name)
        _settle()

    def _reply(self, message: Mapping[str, Any]) -> None:
        self._replies.write(json.dumps(message).encode() + b"\n")


def _preload(pipeline: Pipeline) -> None:
    """Import the SDKs that the agents are going to use."""
    for agent in pipeline.agents():
        if agent.model is not None:
            with suppress(Exception):  # the first run says what is missing, and says it better
                preload = getattr(agent.resolve_provider(), "preload", None)
                if preload is not None:
                    preload()


def _refuse_threads(target: str) -> None:
    others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others:
        raise BackendError(
            f"{target} starts a thread while it is imported ({', '.join(others)}); a fork would copy its locks but not "
            "the thread. Start it where it is first needed, or explore with mode='spawn'."
        )


def _settle() -> None:
    """Keep the collector away from what all children share: each look at it would copy the memory."""
    gc.collect()
    gc.freeze()


def _as_dict(end: LifeEnd) -> dict[str, Any]:
    return {name: getattr(end, name) for name in LifeEnd.__dataclass_fields__}


def main(requests: str, replies: str) -> None:
    """Be the fork server; the arguments are the numbers of two inherited descriptors."""
    with suppress(AbandonedError, BrokenPipeError, KeyboardInterrupt):
        _Server(int(requests), int(replies)).serve()
    os._exit(0)
