"""Choosing how lives are started: from what the user named, and from what this platform can do."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

from n00dles.errors import ConfigurationError
from n00dles.pipeline import Pipeline, Step, pipeline
from n00dles.stores.adapt import as_store
from n00dles.stores.base import StateStore

from ..targets import brings_its_pipeline, load_target, target_of
from .child import CONTROL_VARIABLE, self_contained, shares_store
from .exploration import ExplorationError
from .fork_server import ForkServer, fork_is_available
from .import_limit import IMPORT_TIMES, import_limit
from .in_process import InProcess
from .life import Executor, ReferenceExecutor, SelfContained
from .points import How
from .scenario import Backend, BackendError, Subject
from .shares import Share, SharedOut
from .spawn import Spawn

__all__ = ["Environment", "Mode", "Setup", "prepare"]

Mode = Literal["fork", "spawn", "in-process"]
Environment = Mapping[str, str] | Callable[[str], Mapping[str, str]] | None

_MODES = ("fork", "spawn", "in-process")
_PRIVATE_SQLITE = "sqlite"
_OWN_STORE = "its own"
"""The name of a store that the subject brings."""


@dataclass(slots=True)
class Setup:
    """A backend that is ready, and all that was decided on the way to it.

    `target` and `store_name` are for the report. `is_private` says that scenarios do not share the store,
    `is_default_store` that nobody asked for it, `is_typed` that a command line can name all of it, and
    `pays_before_death` that a local LLM server can kill a process that it has been paid by, `is_in_memory` that no file
    is needed. `fresh` makes a backend whose lives share nothing with those of `backend`, where these share an import.
    `share` is what workers have to know that live scenarios for this process, None if they cannot.
    """

    mode: Mode
    target: str
    store_name: str
    backend: Backend
    notes: list[str]
    is_private: bool
    is_default_store: bool
    is_typed: bool
    pays_before_death: bool = False
    is_in_memory: bool = False
    fresh: Callable[[], Backend] | None = None
    share: Share | None = None

    def share_out(self, executor: futures.Executor) -> None:
        """Have all but the undisturbed runs lived by the workers of `executor`. Raises `ExplorationError`."""
        if self.share is None:
            raise ExplorationError(
                f"workers={executor!r}: other processes can live the scenarios only in mode='fork', and this is mode="
                f"{self.mode!r}. Give a number of workers instead, or none."
            )
        self.backend = SharedOut(self.backend, executor, self.share, self.notes)

    def store_at(self, location: str) -> str:
        """Return the text that opens the store of a scenario whose own folder is `location`."""
        return f"sqlite:///{location}/run.db" if self.store_name == _PRIVATE_SQLITE else self.store_name

    def hows(self, wanted: Sequence[How]) -> tuple[How, ...]:
        """Return what of it can be done to this target, and note what cannot.

        Raises `ExplorationError` if nothing is left.
        """
        possible = self.backend.description.get("how", list(How))
        found = tuple(how for how in wanted if how in possible)
        if not found:
            raise ExplorationError(
                f"{self.target} cannot be disturbed by {', '.join(wanted)}; it can by {', '.join(possible)}."
            )
        if left := [how for how in wanted if how not in found]:
            self.notes.append(f"not tried, since {self.target} cannot be disturbed so: {', '.join(left)}")
        return found

    def lanes(self, wanted: int | None) -> int:
        """Return how many scenarios are lived at a time: as many as wanted, by default one a processor, at most two."""
        if self.mode == "in-process":
            return 1
        return max(1, wanted) if wanted is not None else min(2, os.cpu_count() or 1)

    def close(self) -> None:
        """End the backend."""
        self.backend.close()


def prepare(
    target: Any, *, store: Any, mode: str | None, environment: Environment, executor: Any, time_limit: float
) -> Setup:
    """Choose the mode and start its first backend. Raises `ExplorationError` for what cannot be done."""
    if mode is not None and mode not in _MODES:
        raise ExplorationError(f"there is no mode {mode!r}; choose one of {', '.join(_MODES)}.")
    if not isinstance(target, str | Step) and not brings_its_pipeline(target):
        raise ExplorationError(
            f"{target!r} is no pipeline; give a pipeline(…), a PlainFunctions(…), module:pipeline or "
            "path/to/file.py:pipeline."
        )
    address = target if isinstance(target, str) else target_of(target)
    chosen, notes = _choose(cast(Mode | None, mode), address, store, executor)
    if chosen != "in-process":
        _refuse_mocks(target, chosen)
    try:
        if chosen == "in-process":
            with import_limit(address or "the pipeline", IMPORT_TIMES * time_limit):
                return _in_process(target, address, store, executor, notes)
        return _in_processes(
            chosen,
            cast(str, address),
            store=store,
            executor=executor,
            environment=environment,
            notes=notes,
            time_limit=time_limit,
        )
    except (ConfigurationError, BackendError) as error:
        raise ExplorationError(str(error)) from error


def _choose(mode: Mode | None, address: str | None, store: Any, executor: Any) -> tuple[Mode, list[str]]:
    notes: list[str] = []
    obstacle = _obstacle(address, store, executor)
    if mode == "in-process" or (mode is None and obstacle):
        if obstacle:
            notes.append(f"{obstacle}, so no other process can live its lives")
        notes.append("death is simulated by an exception in this process; mode='fork' kills a real one")
        return "in-process", notes
    if obstacle:
        raise ExplorationError(f"mode={mode!r} needs names that another process can import: {obstacle}.")
    if not hasattr(signal, "SIGKILL"):
        return "in-process", ["this platform has no SIGKILL, so death is simulated by an exception"]
    if mode in (None, "fork") and not fork_is_available():
        return "spawn", ["this platform cannot fork, so each life is a fresh interpreter: slower, and as real"]
    return mode or "fork", notes


def _refuse_mocks(target: Any, mode: Mode) -> None:
    """Raise `ExplorationError` if something of the pipeline is mocked here: other processes would do the real thing."""
    testing = sys.modules.get("n00dles.testing")  # not imported: so nothing is mocked
    if testing is None:
        return
    if isinstance(target, str) and target.partition(":")[0] not in sys.modules:
        return
    step = load_target(target, "pipeline") if isinstance(target, str) else target
    if isinstance(step, Step) and (mocked := testing.mocked_in(step)):
        raise ExplorationError(
            f"{', '.join(mocked)} is mocked in this process, and the processes that are killed (mode: {mode}) import "
            "the pipeline anew, so they would call the real thing. Check with mode='in-process', or leave the mock "
            "out: models are answered by a fake LLM server, and a body can look at an environment variable."
        )


def _obstacle(address: str | None, store: Any, executor: Any) -> str:
    if address is None:
        return "the pipeline is not at the top level of a module (it was made inside a function)"
    if store is not None and not isinstance(store, str):
        return f"the store is an object ({store!r}), and not a URL or module:factory"
    if executor is not None and not isinstance(executor, str):
        return f"the executor is an object ({executor!r}), and not module:object"
    if store == "memory://":
        return "memory:// forgets everything with its process"
    return ""


def _in_process(target: Any, address: str | None, store: Any, executor: Any, notes: list[str]) -> Setup:
    found = load_target(target, "pipeline") if isinstance(target, str) else target
    if isinstance(found, SelfContained):
        brought = self_contained(found, address or repr(found), store=store, executor=executor)
        return _in_process_by_itself(found, brought, address, notes)
    whole = found if isinstance(found, Pipeline) else pipeline(found)
    shared: StateStore | None = None if store is None or isinstance(store, str) else as_store(store)
    runner: Executor = (
        load_target(executor, "executor") if isinstance(executor, str) else executor or ReferenceExecutor()
    )
    name = repr(shared) if shared is not None else store or "memory://"
    return Setup(
        mode="in-process",
        target=address or whole.name,
        store_name=name,
        backend=InProcess(whole, runner, shared),
        notes=notes,
        is_private=shared is None and not shares_store(store),
        is_default_store=store is None,
        is_typed=address is not None and shared is None and executor is None,
        is_in_memory=shared is not None or name == "memory://",
    )


def _in_process_by_itself(found: SelfContained, executor: Executor, address: str | None, notes: list[str]) -> Setup:
    backend = InProcess(found.pipeline, executor)
    return Setup(
        mode="in-process",
        target=address or backend.description["name"],
        store_name=_OWN_STORE,
        backend=backend,
        notes=[*notes, *backend.description.get("notes", ())],
        is_private=True,
        is_default_store=True,
        is_typed=address is not None,
    )


def _in_processes(
    mode: Mode,
    address: str,
    *,
    store: str | None,
    executor: str | None,
    environment: Environment,
    notes: list[str],
    time_limit: float,
) -> Setup:
    variables = (environment("") if callable(environment) else environment) or {}
    subject, limit = Subject(address, executor, store), IMPORT_TIMES * time_limit
    backend: Backend
    fresh = share = None
    if mode == "fork":
        share = Share.of(subject, variables, limit)
        backend = ForkServer(subject, variables, start_limit=limit)
        fresh = partial(Spawn, subject, variables, start_limit=limit, description=backend.description)
    else:
        backend = Spawn(subject, variables, start_limit=limit)
    return Setup(
        mode=mode,
        target=address,
        store_name=store or (_OWN_STORE if backend.description.get("own_store") else _PRIVATE_SQLITE),
        backend=backend,
        notes=[*notes, *backend.description.get("notes", ())],
        is_private=not backend.description["shares_store"],
        is_default_store=store is None,
        is_typed=executor is None,
        pays_before_death=CONTROL_VARIABLE in {**os.environ, **variables},
        fresh=fresh,
        share=share,
    )
