"""The fork server's own process: import once, then a fork a life, several scenarios side by side.

It never runs an event loop or a thread. While children live it sleeps in one `poll`: for a new request, for the end of
a child, for the first time limit, and for the end of whoever asked.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from n00dles.errors import ConfigurationError
from n00dles.pipeline import Pipeline

from ..channel import Channel
from ..parent import adopt_orphans, die_with_parent, end_descendants
from ..temporary_folder import is_guard
from .child import describe_subject, keep_the_network_guard, live_and_exit, load_subject
from .import_limit import import_limit
from .instrument import callees
from .ledger import read_ledger
from .life import Executor
from .processes import LIFE_VARIABLE, children, end_group, end_orphans, has_ended, life_end
from .rehearsal import rehearse
from .scenario import BackendError, LifeEnd, LifeRequest, PlannedRun, Subject, lives

__all__ = ["main"]

_POLL_SECONDS = 0.002
"""How often children are looked at where the kernel does not tell of their end."""


@dataclass(slots=True)
class _Lane:
    """One scenario on its way, and the life that it is in."""

    scenario: PlannedRun
    steps: Generator[LifeRequest, Sequence[LifeEnd], list[LifeEnd]]
    request: LifeRequest
    pid: int
    watch: int | None
    started: float
    timed_out: bool = False

    @property
    def deadline(self) -> float:
        """When this process has to be over, in monotonic seconds."""
        return self.started + self.request.time_limit


class _Server:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._is_over = False
        self._lanes: list[_Lane] = []
        self._helpers = list[int]()  # which the target has started while it was imported, for all lives
        self._pid = os.getpid()

    def serve(self) -> None:
        """Import the target, then live what is asked for until nobody asks any more."""
        first = self._channel.receive()
        if first is None:
            return
        subject = Subject(**first["subject"])
        try:
            with import_limit(subject.target, first["seconds"]):
                self._pipeline, self._executor = load_subject(subject)
                description = describe_subject(subject, self._pipeline, self._executor)
            _preload(self._pipeline)
            _refuse_threads(" or ".join(filter(None, (subject.target, subject.store, subject.executor))))
            rehearse()
        except (ConfigurationError, BackendError) as error:
            self._reply({"error": str(error)})
            return
        _settle()
        self._helpers = children()
        adopt_orphans()
        self._reply({"description": description})
        try:
            while not self._is_over:
                self._wait()
                for lane in list(self._lanes):
                    self._look_at(lane)
        finally:
            for lane in self._lanes:
                os.kill(lane.pid, signal.SIGKILL)
                end_group(lane.pid)
                os.waitpid(lane.pid, 0)
            end_descendants(self._pid, spared=is_guard)

    def _wait(self) -> None:
        """Sleep until something has to be done; take in one request if there is one."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        for lane in self._lanes:
            if lane.watch is not None:
                poll.register(lane.watch, select.POLLIN)
        limits = [lane.deadline - time.monotonic() for lane in self._lanes if not lane.timed_out]
        limits += [_POLL_SECONDS for lane in self._lanes if lane.watch is None]
        ready = poll.poll(max(0.0, min(limits)) * 1000 if limits else None)
        if any(descriptor == self._channel.fileno() for descriptor, _ in ready):
            self._take_in_requests()

    def _take_in_requests(self) -> None:
        with suppress(TimeoutError):  # no more for now
            while (form := self._channel.receive(0)) is not None:
                scenario = PlannedRun.from_dict(form)
                steps = lives(scenario, thrifty=True)
                self._lanes.append(self._begin(scenario, steps, next(steps)))
            self._is_over = True

    def _reply(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # nobody asks any more, as the next look at the channel shows
            self._channel.send(message)

    def _look_at(self, lane: _Lane) -> None:
        """Go on to the next life of a scenario if its child has ended; end the child if its time is over."""
        if not has_ended(lane.pid):
            if time.monotonic() >= lane.deadline and not lane.timed_out:
                lane.timed_out = True
                os.kill(lane.pid, signal.SIGKILL)
            return
        end_group(lane.pid)  # a program that a body has started must not go on beside the next life
        _, status = os.waitpid(lane.pid, 0)
        self._lanes.remove(lane)
        end_orphans({each.pid for each in self._lanes}, self._helpers)
        if lane.watch is not None:
            os.close(lane.watch)
        seconds = time.monotonic() - lane.started
        end = life_end(lane.request.last, lane.pid, status, seconds, timed_out=lane.timed_out)
        try:
            self._lanes.append(self._begin(lane.scenario, lane.steps, lane.steps.send([end])))
        except StopIteration as stop:
            if lane.scenario.record:
                _warm(lane.scenario)
            self._reply({"id": lane.scenario.id, "lives": [asdict(end) for end in stop.value]})

    def _begin(
        self,
        scenario: PlannedRun,
        steps: Generator[LifeRequest, Sequence[LifeEnd], list[LifeEnd]],
        request: LifeRequest,
    ) -> _Lane:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # else the child would print it again
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            self._become(request)
        with suppress(OSError):  # the child does it too; whoever comes first, the group is there when it is needed
            os.setpgid(pid, pid)
        watch = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        return _Lane(scenario, steps, request, pid, watch, started)

    def _become(self, request: LifeRequest) -> NoReturn:
        """Be the child: never come back to the loop of the server."""
        try:
            os.setpgid(0, 0)
            die_with_parent(self._pid)
            os.environ[LIFE_VARIABLE] = str(os.getpid())
            self._channel.close()
            for lane in self._lanes:
                if lane.watch is not None:
                    os.close(lane.watch)
            live_and_exit(request, self._pipeline, self._executor)
        finally:
            os._exit(1)

    _pipeline: Pipeline
    _executor: Executor


def _preload(pipeline: Pipeline) -> None:
    """Import the SDKs that the agents are going to use."""
    for agent in (callee.agent for callee in callees(pipeline)):
        with suppress(Exception):  # the first run says what is missing, and says it better
            if agent.model is not None:
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


def _warm(scenario: PlannedRun) -> None:
    """Import what a first life had to import on its way, so that no later one has to."""
    for entry in read_ledger(scenario.ledger):
        for name in entry["names"] if entry.kind == "modules" else ():
            if name not in sys.modules:
                with suppress(Exception):  # a module that cannot be imported by itself is left to who needs it
                    importlib.import_module(name)
    _settle()


def _settle() -> None:
    """Keep the collector away from what all children share: each look at it would copy the memory."""
    gc.collect()
    gc.freeze()


def main(requests: str, replies: str) -> None:
    """Be the fork server; the arguments are the numbers of two inherited descriptors."""
    keep_the_network_guard()
    with suppress(KeyboardInterrupt):
        _Server(Channel(int(requests), int(replies))).serve()
    os._exit(0)
