"""One life of a home-made loop: its calls are reported as by an executor, and what it stores is looked for."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import FunctionType
from typing import Any

from n00dles.errors import ConfigurationError
from n00dles.events import Event, NodeReturned, NodeStarted, Observer, Observers, RunFinished, RunStarted

from .events import CheckpointWriting, KnownStored
from .interception import intercepted
from .nodes import PlainNode, pick
from .place import Place
from .writes import watching_writes

__all__ = ["PlainLife"]

_NO_DEATHS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
_inside: ContextVar[frozenset[str]] = ContextVar("n00dles_testing_inside_functions", default=frozenset())


class PlainLife:
    """What is known in one process of a loop. Safe to use from several threads."""

    def __init__(
        self,
        nodes: Mapping[str, PlainNode],
        needs: Mapping[str, list[str]],
        place: Place,
        run_id: str,
        observers: Sequence[Observer],
    ) -> None:
        self._nodes = nodes
        self._needs = needs
        self._place = place
        self._run_id = run_id
        self._observers = Observers(observers)
        self._lock = threading.RLock()
        self._started: Counter[str] = Counter()
        self._returned: Counter[str] = Counter()
        self._returned_in: dict[str, tuple[asyncio.Task[Any] | None, int]] = {}
        self._own_thread = 0
        self._known: set[str] = set()
        self._death: BaseException | None = None

    @contextmanager
    def watched(self, name: str, *, is_first: bool) -> Iterator[None]:
        """See the calls of the functions, and the writes in the folder, while inside."""
        self._emit(RunStarted(run_id=self._run_id, pipeline=name, life=1 if is_first else 2, completed=()))
        with intercepted(self._handlers()), watching_writes(self._place.folder, self._writes):
            yield

    def call(self, loop: Callable[[], Any]) -> Any:
        """Call the loop, in the thread in which it is to run."""
        self._own_thread = threading.get_ident()
        return loop()

    def look(self, why: str) -> None:
        """Look at what the loop has stored by now, if it can be told, and report what is new."""
        try:
            found = self._place.stored()
        except ConfigurationError:
            raise
        except Exception:  # it may be in the middle of a save, in another thread; the next look tells
            return
        if found is not None:
            self._report(found, f"its output was in the store as {why}", presumed=False)

    def finished(self) -> None:
        """Report the end of the run."""
        self._emit(RunFinished(run_id=self._run_id, calls=sum(self._started.values())))

    def check_fresh(self, folder: str) -> None:
        """Raise `ConfigurationError` if something is stored before the loop was called for the first time.

        `folder` is the name of the parameter by which the loop is told where to keep it.
        """
        try:
            found = self._place.stored()
        except ConfigurationError:
            raise
        except Exception:  # there is nothing yet that it could read
            return
        if found:
            raise ConfigurationError(
                f"{', '.join(f'`{name}`' for name in found)} is stored in a fresh folder, before the loop was called: "
                f"{_outside(folder)}"
            )

    def check_calls(self, folder: str) -> None:
        """Raise `ConfigurationError` if no function was called, or one was called again though it had returned.

        `folder` see `check_fresh`.
        """
        if not self._started:
            none = f"none of {', '.join(self._nodes)} was called, as far as can be seen"
            if self._place.is_empty:
                none += f", and nothing was written in the fresh folder: {_outside(folder)} If that is not so"
            raise ConfigurationError(
                f"{none}: calls are seen in the process of the loop, and of the very functions that are listed, not "
                "in other processes, and not of a copy that a module which was imported twice has."
            )
        for name, times in self._returned.items():
            if times > 1:
                raise ConfigurationError(
                    f"`{name}` returned {times} times in one run, and these calls cannot be told apart. List them by "
                    f"a parameter that differs: nodes=[…, *each({name}, 'chapter', [1, 2])]."
                )

    def _handlers(self) -> dict[FunctionType, Callable[..., Any]]:
        nodes: dict[FunctionType, list[PlainNode]] = {}
        for node in self._nodes.values():
            nodes.setdefault(node.function, []).append(node)
        return {
            function: partial(self._called_async if of_function[0].is_async else self._called, of_function)
            for function, of_function in nodes.items()
        }

    def _called(self, nodes: Sequence[PlainNode], *args: Any, **named: Any) -> Any:
        node = pick(nodes, args, named)
        call, arguments = node.call(args, named)
        if node.name in _inside.get():  # it calls itself, which is its own affair
            return call()
        attempt = self._starts(node.name, arguments)
        began = time.monotonic()
        with self._inside(node.name):
            output = call()
        if inspect.isawaitable(output):
            return self._awaited(node.name, attempt, output)
        self._returns(node.name, attempt, output, time.monotonic() - began)
        return output

    async def _called_async(self, nodes: Sequence[PlainNode], *args: Any, **named: Any) -> Any:
        node = pick(nodes, args, named)
        call, arguments = node.call(args, named)
        if node.name in _inside.get():
            return await call()
        attempt = self._starts(node.name, arguments)
        began = time.monotonic()
        with self._inside(node.name):
            output = await call()
        self._returns(node.name, attempt, output, time.monotonic() - began)
        return output

    async def _awaited(self, name: str, attempt: int, work: Awaitable[Any]) -> Any:
        began = time.monotonic()
        output = await work
        self._returns(name, attempt, output, time.monotonic() - began)
        return output

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        token = _inside.set(_inside.get() | {name})
        try:
            with self._noticing_death():
                yield
        finally:
            _inside.reset(token)

    def _starts(self, name: str, arguments: Mapping[str, Any]) -> int:
        self.refuse_the_dead()
        with self._lock:
            self._started[name] += 1
            attempt = self._started[name]
            self.look(f"`{name}` started")
            if self._place.is_silent:
                self._report(self._needs[name], f"`{name}`, which needs it, was started", presumed=True)
            # Whoever goes on in the same place has had the time to save. A thread of a pool is no such place: who saves
            # may be whoever waits for it.
            task, thread = _place()
            if task is not None or thread == self._own_thread:
                done = [other for other in self._returned_here() if other != name]
                self._report(done, f"`{name}` was started after it had returned", presumed=True)
        self._emit(NodeStarted(run_id=self._run_id, node=name, attempt=attempt, arguments=arguments))
        return attempt

    def _returns(self, name: str, attempt: int, output: Any, seconds: float) -> None:
        self.refuse_the_dead()
        with self._lock:
            self._returned[name] += 1
            self._returned_in.pop(name, None)
            self._returned_in[name] = _place()
        self._emit(
            NodeReturned(
                run_id=self._run_id,
                node=name,
                attempt=attempt,
                output=output,
                duration_ms=seconds * 1000,
                input_tokens=0,
                output_tokens=0,
            )
        )

    def _writes(self) -> None:
        """Note that the loop writes. What a function writes is its own effect, and no checkpoint."""
        self.refuse_the_dead()
        if not _inside.get():
            with self._lock:
                node = self._just_returned()
            self._emit(CheckpointWriting(run_id=self._run_id, node=node))

    def _just_returned(self) -> str:
        """Return the function whose output is probably being saved: the last one, of those side by side the one here.

        The thread of a pool may have run one before and save another now, if that one has come later in the chain.
        """
        last, here = (list(self._returned_in) or [""])[-1], (self._returned_here() or [""])[-1]
        return here if here and here not in self._needs.get(last, ()) else last

    def _returned_here(self) -> list[str]:
        """Return the functions that have returned in this task, or in this thread if no task runs in it."""
        task, thread = _place()
        places = self._returned_in.items()
        return [node for node, (its, in_thread) in places if (its is task if task else in_thread == thread)]

    def _report(self, nodes: Sequence[str], why: str, *, presumed: bool) -> None:
        if set(nodes) - self._known:
            self._known |= set(nodes)
            self._emit(KnownStored(run_id=self._run_id, nodes=tuple(nodes), why=why, presumed=presumed))

    def _emit(self, event: Event) -> None:
        with self._noticing_death():
            self._observers.emit(event)

    @contextmanager
    def _noticing_death(self) -> Iterator[None]:
        """Notice what stands for a kill where nothing is killed, so that other threads and handlers end as well."""
        try:
            yield
        except (Exception, *_NO_DEATHS):
            raise
        except BaseException as death:
            self._death = death
            raise

    def refuse_the_dead(self) -> None:
        """Raise the death of this life again, if it has died: nothing is done or told after it."""
        if self._death is not None:
            raise self._death


def _outside(folder: str) -> str:
    """Say where the checkpoints are, and what to do about it."""
    return (
        f"the loop keeps its checkpoints outside of `{folder}`, where an earlier run has left its own. Make each path "
        f"from `{folder}`, and remove what lies elsewhere."
    )


def _place() -> tuple[asyncio.Task[Any] | None, int]:
    """Return the task, if one runs, and the thread in which this goes on."""
    try:
        return asyncio.current_task(), threading.get_ident()
    except RuntimeError:
        return None, threading.get_ident()
