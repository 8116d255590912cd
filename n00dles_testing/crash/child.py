"""The process of one life: it opens the store, instruments the pipeline, runs it, and ends by SIGKILL or `os._exit`.

Run as a program (`python -m n00dles_testing.crash.child`) it is a fresh interpreter for one life; the fork server calls
`live_and_exit` in a forked child.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, NoReturn
from urllib.parse import urlsplit

from n00dles.errors import ConfigurationError
from n00dles.pipeline import Pipeline
from n00dles.stores.adapt import as_store
from n00dles.stores.base import StateStore
from n00dles.stores.urls import open_store

from ..factories import call_either, open_made, takes_location
from ..targets import load_target
from .dependencies import describe
from .import_limit import import_limit
from .instrument import Trigger
from .ledger import LedgerWriter
from .life import Executor, ReferenceExecutor, SelfContained, live, write_failure
from .points import How, Kind, Point
from .recorded_store import Fence
from .scenario import EXIT_FAILED, EXIT_FINISHED, BackendError, LifeRequest, PlannedRun, Subject
from .typed import without

__all__ = [
    "CONTROL_VARIABLE",
    "describe_subject",
    "life_store",
    "live_and_exit",
    "load_subject",
    "main",
    "scenario_store",
    "self_contained",
    "shares_store",
]

CONTROL_VARIABLE = "N00DLES_LLM_CONTROL"
"""Names the control URL of a local LLM server that can kill a process once it has been paid by it."""


def describe_subject(subject: Subject, pipeline: Pipeline, executor: Executor) -> dict[str, Any]:
    """Return what a judge in another process has to know. Raises `ConfigurationError` for a store that is none."""
    if isinstance(executor, SelfContained):
        return {**executor.describe(), "shares_store": False, "own_store": True}
    return {**describe(pipeline), "shares_store": shares_store(subject.store)}


def load_subject(subject: Subject) -> tuple[Pipeline, Executor]:
    """Import what is to be tested. Raises `ConfigurationError` saying what is wrong with it."""
    found = load_target(subject.target, "pipeline")
    if isinstance(found, SelfContained):
        return found.pipeline, self_contained(found, subject.target, store=subject.store, executor=subject.executor)
    executor = load_target(subject.executor, "executor") if subject.executor else ReferenceExecutor()
    return found, executor


def self_contained(found: Any, name: str, *, store: Any, executor: Any) -> Executor:
    """Return what brings its executor and its store. Raises `ConfigurationError` if others are given with it."""
    for what, given in (("store", store), ("executor", executor)):
        if given is not None:
            raise ConfigurationError(f"{name} runs and saves by itself, so {what}={given!r} has no use; leave it out.")
    runs: Executor = found
    return runs


@asynccontextmanager
async def life_store(scenario: PlannedRun, executor: Executor) -> AsyncIterator[StateStore]:
    """Open the store of a life while inside: that of the scenario, or the one that the executor brings.

    Nodes of the latter may get to see the scenario's own folder, which must not make a difference.
    """
    if isinstance(executor, SelfContained):
        with without(scenario.location):
            yield executor.open_store(scenario.location)
    else:
        async with scenario_store(scenario.store, scenario.location) as store:
            yield store


@asynccontextmanager
async def scenario_store(text: str, location: str) -> AsyncIterator[StateStore]:
    """Open a scenario's store while inside: a URL, or what a factory makes of a location, or of nothing."""
    if "://" in text:
        store, leave = await open_made(open_store(text.replace("{location}", location)))
    else:
        factory = load_target(text, "store")
        store, leave = await open_made(factory(location) if takes_location(text, factory) else factory())
    try:
        yield as_store(store)
    finally:
        if leave is not None:
            await call_either(leave)


def shares_store(text: str | None) -> bool:
    """Whether all scenarios meet in this store: it is opened on no location, and is not memory, which lasts for one.

    Raises `ConfigurationError` for a factory that cannot be used.
    """
    if text is None or text == "memory://":
        return False
    if "://" in text:
        return "{location}" not in text
    return not takes_location(text, load_target(text, "store"))


def live_and_exit(request: LifeRequest, pipeline: Pipeline, executor: Executor) -> NoReturn:
    """Live one life, and those that follow in the same process, and end this process; it never returns."""
    code = EXIT_FAILED
    try:
        os.environ.update(request.scenario.environment)
        random.seed()  # forked children would all draw the same numbers
        following: LifeRequest | None = request
        while following is not None:
            finished = _live_through(following, pipeline, executor)
            if finished and not following.again:
                code = EXIT_FINISHED
            following = following.following(finished)
    finally:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        os._exit(code)


def _live_through(request: LifeRequest, pipeline: Pipeline, executor: Executor) -> bool:
    """Live one life on an event loop of its own, and return whether the run returned a result."""
    ledger = LedgerWriter(request.scenario.ledger, request.life)
    if request.point is not None and request.point.how is How.INTERRUPT:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # who started us may have it ignored
    try:
        ok = asyncio.run(_live(request, pipeline, executor, ledger))
        if request.scenario.record:
            ledger.write("modules", names=_installed_modules())
    except BaseException as error:  # sys.exit in a body is an end of this life like any other
        write_failure(ledger, "run", error)
        return False
    return ok


async def _live(request: LifeRequest, pipeline: Pipeline, executor: Executor, ledger: LedgerWriter) -> bool:
    scenario = request.scenario
    point = request.point
    trigger = Trigger(
        ledger,
        point,
        _die,
        line=scenario.line_of(point),
        record=scenario.record,
        arm=_arm_for(point),
        interrupt=_interrupt,
    )
    async with life_store(scenario, executor) as store:
        return await live(request, pipeline, executor, store=store, trigger=trigger, fence=Fence())


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    while True:  # another thread may be the one that is told first
        time.sleep(1)


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _arm_for(point: Point | None) -> Callable[[str | None], None] | None:
    control = os.environ.get(CONTROL_VARIABLE)
    if point is None or point.kind is not Kind.DURING or point.how is not How.KILL or not control:
        return None
    return lambda key: _arm_kill(control, key)


def _arm_kill(control: str, key: str | None) -> None:
    """Have the LLM server kill this process once the request with this idempotency key is counted as paid.

    Without a key, which only another executor can leave out, it is the next request.
    """
    import http.client  # only the lives that are killed so need it

    place = urlsplit(control)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        wanted = {"pid": os.getpid(), "request": 1, "key": key or ""}
        connection.request("POST", f"{place.path}/kill", body=json.dumps(wanted))
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise RuntimeError(f"the LLM server at {control} refused to arm a kill: {response.read()!r}")
    finally:
        connection.close()


def _installed_modules() -> list[str]:
    """Name what is imported of the standard library and of installed packages; the user's own is not ours to import."""
    places = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    own = ("n00dles.", "n00dles_testing.")
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if name.startswith(own) or (getattr(module, "__file__", None) or "").startswith(places)
    )


def _flush(stream: Any) -> None:
    # A closed or replaced stream has nothing left to say.
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()


def keep_the_network_guard() -> None:
    """Let this process, and those forked from it, not leave the machine if the test that started it must not."""
    if "N00DLES_NO_NETWORK" in os.environ:  # no_network sets it; most commands need not import that
        from ..no_network import guard_of_parent

        guard_of_parent()


def main(request_file: str) -> None:
    """Be the fresh interpreter of one life, or describe the target; the request is JSON in a file."""
    keep_the_network_guard()
    with open(request_file, encoding="utf-8") as file:
        form = json.load(file)
    answer = form.get("describe")
    subject = Subject(**form["subject"])
    limit = import_limit(subject.target, form["seconds"]) if answer else nullcontext()
    try:
        with limit:
            pipeline, executor = load_subject(subject)
            described = describe_subject(subject, pipeline, executor) if answer else {}
    except (ConfigurationError, BackendError) as error:
        if not answer:
            raise
        described = {"error": str(error)}
    if answer:
        with open(answer, "w", encoding="utf-8") as file:
            json.dump(described, file)
        return
    scenario, life = PlannedRun.from_dict(form["scenario"]), form["life"]
    request = LifeRequest(scenario, life, again=True) if form["again"] else LifeRequest.planned(scenario, life)
    live_and_exit(request, pipeline, executor)
