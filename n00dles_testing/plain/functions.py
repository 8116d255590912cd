"""What somebody with a loop of his own writes to have it tested: the loop, and the functions that it calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from n00dles.errors import ConfigurationError, InputsError
from n00dles.events import Observer
from n00dles.pipeline import Pipeline
from n00dles.result import RunResult
from n00dles.threads import call_in_thread

from .life import PlainLife
from .nodes import Item, all_needs, plain_name, plain_nodes
from .place import Place, Stored
from .shape import plain_shape

__all__ = ["PlainFunctions"]

_UNTOLD_E11 = "how often a function may be tried is the loop's own affair, and it does not say"
_UNTOLD_E01 = "what the loop has stored is not known without stored=; a function that runs again is told by E02"
_NOTE = "what the calls have cost is not added up (a part of E05): the loop does not say"


class PlainFunctions:
    """A home-made loop as a subject: plain functions, a program that calls them, and checkpoints of its own.

        def run(topic, folder):
            state = load(folder)                     # what an earlier life has stored
            if "research" not in state:
                state["research"] = research(topic)
                save(folder, state)
            ...
            return state["publish"]

        subject = PlainFunctions(run, nodes=[research, write, publish], stored=lambda folder: list(load(folder)))

    `explore("my_loop.py:subject", {"topic": "x"})`, `crash_safety.check(subject, topic="x")` and
    `n00dles-testing explore my_loop.py:subject --input topic=x` run it undisturbed, then kill it before, in and after
    each of the functions, and while it writes its files, and call it again on the same folder.

    `loop` is called with the inputs by name, and with a folder that is the run's own, from its first life to its last:
    as a `Path`, or as text if it is annotated with `str`. `folder` is the name of that parameter. A parameter `run_id`
    is given too. The loop may be a coroutine function. Whatever it returns is the output of the run.

    `nodes` are the functions (or methods) that must not be called again, in their order. Each needs those before it,
    unless `needs` says otherwise: `needs={"images": []}` needs none. Those that need the same run side by side, and are
    judged as a fan-out (E06); of `routes={"publishing": ["online", "printed"]}` a run takes one (E07). `stored` names
    those whose outputs are stored in a folder; without it, that is concluded from the functions that were started, and
    some faults are told less exactly.

    A function has one call in a run, unless its calls are listed by `each`. The loop keeps its checkpoints below the
    folder; of a SQLite database each transaction is killed before it is committed, saves that other C libraries make
    are killed before and after, and not inside. Raises `ConfigurationError`.
    """

    def __init__(
        self,
        loop: Callable[..., Any],
        nodes: Sequence[Callable[..., Any] | Item],
        *,
        needs: Mapping[str, Sequence[str]] | None = None,
        routes: Mapping[str, Sequence[str]] | None = None,
        stored: Stored | None = None,
        folder: str = "folder",
        name: str | None = None,
    ) -> None:
        _check_kinds(loop, nodes, needs, stored=stored, folder=folder, name=name)
        self.loop = loop
        self.nodes = plain_nodes(nodes)
        self.needs = all_needs(list(self.nodes), needs)
        self.shape = plain_shape(self.needs, routes or {})
        self.name = name or str(getattr(loop, "__name__", type(loop).__name__))
        self._stored = stored
        self._folder = folder
        self._signature = inspect.signature(loop)
        if folder not in self._signature.parameters and not self._takes_all:
            raise ConfigurationError(
                f"{self.name} has no parameter {folder!r}, by which it is told where to keep its checkpoints; each run "
                "needs a folder of its own. Add one, or name it: PlainFunctions(…, folder='state_folder')."
            )
        self.pipeline = Pipeline([node.agent for node in self.nodes.values()], name=plain_name(self.name))

    def __repr__(self) -> str:
        return f"<plain functions {', '.join(self.nodes)} in {self.name}>"

    @property
    def is_async(self) -> bool:
        """Whether the loop is a coroutine function: only then it can be cancelled."""
        return inspect.iscoroutinefunction(self.loop)

    def describe(self) -> dict[str, Any]:
        """Return what a judge has to know, in JSON types (see `crash.life.SelfContained`)."""
        untold = {"E11": _UNTOLD_E11, **({} if self._stored else {"E01": _UNTOLD_E01})}
        return {
            "name": self.name,
            "nodes": {name: {"model": None, "needs": self.needs[name]} for name in self.nodes},
            "untold": untold,
            **self.shape,
            "notes": [_NOTE],
            "sees_saves": False,
            "how": ["kill", "cancel", "timeout", "interrupt"] if self.is_async else ["kill"],
        }

    def open_store(self, location: str) -> Place:
        """Return the place of a run whose own folder is `location`."""
        parameter = self._signature.parameters.get(self._folder)
        kind = str if parameter is not None and parameter.annotation in (str, "str") else Path
        return Place(location, list(self.nodes), self._stored, kind)

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: Any,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        """Call the loop on the folder of the store.

        Raises `InputsError` for inputs that it does not take, and `ConfigurationError` for a pipeline of somebody else.
        """
        if pipeline is not self.pipeline or not isinstance(getattr(store, "folder", None), Path):
            raise ConfigurationError(
                f"{self!r} runs its own functions in its own folder, and no other pipeline; explore it by itself: "
                "n00dles-testing explore FILE.py:NAME."
            )
        arguments = self._arguments(run_id, inputs, store.folder_for_loop)
        is_first = store.begin(run_id, inputs)
        life = PlainLife(self.nodes, self.needs, store, run_id, observers)
        if is_first:
            life.check_fresh(self._folder)
        with life.watched(self.name, is_first=is_first):
            work = partial(self.loop, **arguments)
            # A loop that is not async may start an event loop of its own, and that needs a thread which has none.
            output = await work() if self.is_async else await call_in_thread(None, partial(life.call, work))
            if inspect.isawaitable(output):
                output = await output
        life.refuse_the_dead()  # what a death has been raised in may have dropped it, as SQLite does
        if is_first:
            life.check_calls(self._folder)
        life.look(f"{self.name} returned")
        store.finish()
        life.finished()
        return RunResult(run_id, output)

    async def resume(self, pipeline: Pipeline, *, run_id: str, store: Any, observers: Sequence[Observer]) -> RunResult:
        """Call the loop again, with the inputs that the run began with."""
        return await self.run(pipeline, run_id=run_id, store=store, observers=observers, inputs=store.inputs())

    @property
    def _takes_all(self) -> bool:
        return any(p.kind is p.VAR_KEYWORD for p in self._signature.parameters.values())

    def _arguments(self, run_id: str, inputs: Mapping[str, Any], folder: Any) -> dict[str, Any]:
        given = {**inputs, self._folder: folder}
        if "run_id" in self._signature.parameters:
            given.setdefault("run_id", run_id)
        try:
            self._signature.bind(**given)
        except TypeError as error:
            known = [name for name in self._signature.parameters if name not in (self._folder, "run_id")]
            raise InputsError(f"{self.name}: {error}. Its inputs are: {', '.join(known) or 'none'}.") from error
        return given


def _check_kinds(loop: object, nodes: object, needs: object, *, stored: object, folder: object, name: object) -> None:
    """Raise `ConfigurationError` for an argument of `PlainFunctions` that is of another kind than it has to be."""
    lists_names = isinstance(needs, Mapping) and not any(isinstance(names, str) for names in needs.values())
    wrong = [
        (
            not callable(loop),
            f"the loop is {loop!r}, and has to be callable; give the function itself: PlainFunctions(run, …)",
        ),
        (
            isinstance(nodes, str) or not isinstance(nodes, Iterable),
            f"nodes= is {nodes!r}, and has to be a list of functions: nodes=[research, write]",
        ),
        (
            needs is not None and not lists_names,
            f"needs= is {needs!r}, and has to be a list of names for each function: needs={{'write': ['research']}}",
        ),
        (
            stored is not None and not callable(stored),
            f"stored= is {stored!r}, and has to be callable, with the folder: stored=lambda folder: list(load(folder))",
        ),
        (not isinstance(folder, str), f"folder= is {folder!r}, and has to be the name of a parameter of the loop"),
        (name is not None and not isinstance(name, str), f"name= is {name!r}, and has to be a text"),
    ]
    for is_wrong, message in wrong:
        if is_wrong:
            raise ConfigurationError(f"{message}.")
