"""The commands `n00dles submit` and `n00dles worker`: each takes its parsed options and returns an exit code."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from .command_inputs import InputSyntaxError, read_inputs
from .config import configure
from .errors import ConfigurationError
from .pipeline import Step
from .runs_text import one_line
from .stores.base import Closable
from .stores.urls import open_store
from .submitting import submit
from .targets import load_target
from .worker import Note, NoteKind, RunWorker, by_name

__all__ = ["submit_run", "work"]

_TOLD_IN_WORDS: dict[NoteKind, bool] = {"claimed": False}
"""A run has one line, at its end; the JSON lines say when it began, too."""

_SECONDS_A_BEAT = 5.0
_HEARD = (signal.SIGTERM, signal.SIGINT)


def submit_run(options: argparse.Namespace) -> int:
    """Store a run without starting it, and print its id."""
    pipeline = load_target(options.pipeline, Step)
    try:
        inputs = read_inputs(options.inputs)
    except InputSyntaxError as error:
        raise ConfigurationError(f"{error}.") from error
    taken = sorted(inputs.keys() & {"run_id", "store"})
    if taken:
        raise ConfigurationError(f"{taken[0]!r} is an option (--{taken[0].replace('_', '-')}), and no input.")
    _check_outlives(options.store)
    print(submit(pipeline, run_id=options.run_id, store=options.store, **inputs))
    return 0


def _check_outlives(url: str) -> None:
    """Raise `ConfigurationError` for a store in memory: what one process submits to it, no other one would find."""
    if url.startswith("memory:"):
        raise ConfigurationError(
            "memory:// ends with this process, so no worker would ever find a run in it. Name a store that lasts, as "
            "in --store sqlite:///runs.db."
        )


def work(options: argparse.Namespace) -> int:
    """Work on runs until a signal comes, or until there is nothing to do."""
    _check_outlives(options.store)
    pipelines = by_name((target, load_target(target, Step)) for target in options.pipelines)
    if options.lease_ttl is not None:
        configure(lease_ttl=options.lease_ttl)
    tell = _tell_json if options.json else _tell

    async def session() -> int:
        store = open_store(options.store)
        worker = RunWorker(
            pipelines,
            store,
            tell,
            concurrency=options.concurrency,
            drain_timeout=options.drain_timeout,
            until_idle=options.until_idle,
        )
        _listen(worker)
        with _beating(options.heartbeat):
            left = await worker.work()
        if left:
            # asyncio would wait for the threads that these calls are in.
            _end_at_once(1)
        if isinstance(store, Closable):
            await store.aclose()
        return 0

    return asyncio.run(session())


def _listen(worker: RunWorker) -> None:
    """Let the first SIGTERM or SIGINT drain the worker, and the second end it."""
    loop, signals = asyncio.get_running_loop(), list[int]()

    def receive(number: int) -> None:
        signals.append(number)
        if len(signals) > 1:
            print("n00dles: a second signal: ended at once; other workers go on with its runs", file=sys.stderr)
            _end_at_once(128 + number)
        worker.drain()

    for number in _HEARD:
        with suppress(NotImplementedError):  # there, Ctrl-C interrupts
            loop.add_signal_handler(number, receive, number)
    if hasattr(os, "register_at_fork"):
        # Until the child hears for itself, what is sent to it has to wait.
        os.register_at_fork(
            before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, _HEARD),
            after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _HEARD),
            after_in_child=_hear_as_others_do,
        )


def _hear_as_others_do() -> None:
    """Undo `_listen` in a process that a node has forked, as multiprocessing does.

    It has the pipe by which the worker hears of signals, too: one that is to end it would drain the worker instead.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)


@contextmanager
def _beating(path: Path | None) -> Iterator[None]:
    """`with`: touch a file every few seconds, as long as the event loop turns: leases are then renewed, too."""
    if path is None:
        yield
        return
    loop = asyncio.get_running_loop()
    timers = list[asyncio.TimerHandle]()

    def beat() -> None:
        with suppress(OSError):  # whoever watches the file sees that it grows old
            path.touch()
        timers[:] = [loop.call_later(_SECONDS_A_BEAT, beat)]

    try:
        path.touch()
    except OSError as error:
        raise ConfigurationError(f"the heartbeat cannot be written to {str(path)!r}: {error.strerror}.") from error
    beat()
    try:
        yield
    finally:
        timers[0].cancel()


def _end_at_once(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _tell(note: Note) -> None:
    if not _TOLD_IN_WORDS.get(note.kind, True):
        return
    subject = f"run {one_line(note.run_id)} of {note.pipeline}" if note.run_id is not None else "worker"
    facts = [
        *([f"life {note.life}"] if note.life is not None else []),
        *([f"{note.calls} call{'' if note.calls == 1 else 's'}"] if note.calls is not None else []),
        *([f"{note.seconds:.1f} s"] if note.seconds is not None else []),
    ]
    line = f"{subject}: {note.kind}" + (f" ({', '.join(facts)})" if facts else "")
    _print(f"{line}: {one_line(note.message)}" if note.message else line)


def _tell_json(note: Note) -> None:
    said = {name: value for name, value in asdict(note).items() if value not in (None, "")}
    if note.seconds is not None:
        said["seconds"] = round(note.seconds, 3)
    said["at"] = datetime.fromtimestamp(note.at, UTC).isoformat()
    _print(json.dumps(said, ensure_ascii=False))


def _print(line: str) -> None:
    with suppress(OSError):  # that nobody reads along is no reason to stop working
        print(line, flush=True)
