"""What is kept for each user, of the server or of `mock_llm`: a journal, a place in the script, an armed kill."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from .calls import LLMCall, Reply
from .replies import ReplySource
from .shapes import Completion, LLMRequest, TurnedDownError, unread

__all__ = ["ArmedKill", "Channel"]


class ArmedKill:
    """A process to be killed at a coming request: the `request`-th, of those that carry `key` if one is given.

    Where the system has process descriptors it is held by one, so that a pid that has been given to another process
    since is never hit.
    """

    def __init__(self, pid: int, request: int, key: str = "") -> None:
        if pid <= 1 or pid == os.getpid() or request < 1:
            raise ValueError(f"a kill of pid {pid} at the coming request number {request} cannot be armed")
        self.pid = pid
        self._requests_left = request
        self._key = key
        self._descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def is_due(self, request: LLMRequest) -> bool:
        """Count `request` if it is one of those that are meant, and return whether it is the one to kill at."""
        if not self._key or request.idempotency_key == self._key:
            self._requests_left -= 1
        return self._requests_left <= 0

    def fire(self) -> str:
        """Kill it with SIGKILL. Return why not, or an empty text."""
        try:
            if self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
        except OSError as error:
            return f"pid {self.pid} could not be killed: {error}"
        finally:
            self.let_go()
        return ""

    def let_go(self) -> None:
        """Forget the process."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Channel:
    """One user's script and journal; nothing that one does is seen by another. Safe to use from all threads."""

    def __init__(self, name: str, source: Callable[[], ReplySource]) -> None:
        self.name = name
        self._new_source = source
        self._changed = threading.Condition()
        self._kill: ArmedKill | None = None
        self.reset()

    def reset(self) -> None:
        """Forget all calls and the armed kill, and start the script anew."""
        with self._changed:
            if self._kill is not None:
                self._kill.let_go()
            self._kill = None
            self._calls: list[LLMCall] = []
            self._under_way: set[int] = set()
            self._source = self._new_source()

    def script(self, replies: Sequence[Reply], *, automatic: bool, name: str = "") -> None:
        """Append entries to the script. `automatic`: what it does not have is made up. `name` is for messages."""
        with self._changed:
            self._source.name = name or self._source.name
            for reply in replies:
                self._source.add(reply)
            self._source.automatic = automatic

    def arm(self, kill: ArmedKill) -> None:
        """Have `kill` fired at a coming request, instead of any that was armed before."""
        with self._changed:
            if self._kill is not None:
                self._kill.let_go()
            self._kill = kill

    def pay(self, request: LLMRequest, where: Callable[[], str] = str) -> tuple[LLMCall, Completion]:
        """Choose the reply and record the call, paid or not, before a byte of it is sent; then kill, if that is armed.

        What is returned may have a fault: whoever delivers it has that happen. Raises `TurnedDownError` after recording
        the request as turned down; `where` is asked what to add if the script has no reply. `settle` must follow
        otherwise.
        """
        with self._changed:
            try:
                completion = self._source.reply_to(request)
            except TurnedDownError as error:
                place = where() if error.unexpected else ""
                told = TurnedDownError(f"{error}\n{place}", error.status, unexpected=True) if place else error
                self._record(request, error=told)
                raise told from error.__cause__
            call = self._record(request, completion)
            self._under_way.add(id(call))
            if self._kill is not None and self._kill.is_due(request):
                self._fire(self._kill, call)
                self._kill = None
            return call, completion

    def turn_down(self, error: TurnedDownError, request: LLMRequest | None = None) -> None:
        """Record a request that gets an error before the script is asked; `request` is what can be told of it."""
        with self._changed:
            self._record(request or unread(), error=error)

    def kill(self, call: LLMCall, kill: ArmedKill) -> None:
        """Kill a process on account of a call that has been paid."""
        with self._changed:
            self._fire(kill, call)

    def fail(self, call: LLMCall, note: str) -> None:
        """Record that what the script has for a call could not be done."""
        with self._changed:
            call.note = note
            call.unexpected = True

    def _fire(self, kill: ArmedKill, call: LLMCall) -> None:
        call.note = kill.fire()
        call.killed = not call.note

    def settle(self, call: LLMCall, *, sent: bool, note: str = "") -> None:
        """Record what became of a call's reply. Only the first time counts."""
        with self._changed:
            if id(call) not in self._under_way:
                return
            call.sent = sent
            call.note = call.note or note
            self._under_way.discard(id(call))
            self._changed.notify_all()

    @property
    def calls(self) -> list[LLMCall]:
        """All calls so far, in order."""
        with self._changed:
            return list(self._calls)

    @property
    def unused(self) -> list[Reply]:
        """The entries of the script that have not been used as often as they say."""
        with self._changed:
            return self._source.unused()

    def report(self, patience: float) -> dict[str, Any]:
        """Return all calls and what is left of the script, once no reply is on its way, or after `patience` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, timeout=patience)
            return {
                "calls": [call.to_dict() for call in self._calls],
                "unused": [reply.to_dict() for reply in self._source.unused()],
                "armed": self._kill.pid if self._kill is not None else None,
            }

    def _record(
        self,
        request: LLMRequest,
        completion: Completion | None = None,
        *,
        error: TurnedDownError | None = None,
    ) -> LLMCall:
        call = LLMCall(
            n=len(self._calls) + 1,
            channel=self.name,
            time=time.time(),
            shape=request.shape,
            model=request.model,
            system=request.system,
            prompt=request.prompt,
            request=request.canonical,
            sha256=request.sha256,
            body_sha256=request.body_sha256,
            reply=completion.text if completion else "",
            input_tokens=completion.input_tokens if completion else 0,
            output_tokens=completion.output_tokens if completion else 0,
            paid=completion is not None and (completion.fault is None or completion.fault.paid),
            node=request.node,
            agent=request.agent,
            messages=request.messages,
            tool_calls=[asdict(each) for each in completion.tool_calls] if completion else [],
            fault=repr(completion.fault) if completion and completion.fault else "",
            idempotency_key=request.idempotency_key,
            unexpected=error is not None and error.unexpected,
            note=str(error or ""),
        )
        self._calls.append(call)
        return call
