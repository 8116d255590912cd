"""Drawing sequences of operations: short scenes that are likely to show something, one after the other.

Single operations at random hardly ever meet: that a worker of a deleted run saves into the next one of the same id
takes five in the right order. A scene is such an order; scenes follow one another on the same few runs, so what one
leaves is what the next one finds. Each is shrunk by leaving parts of it out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from ...corpus import KEPT
from ..ids import groups_of_ids
from .offers import Offers
from .operations import INPUTS, Operation, Plan

__all__ = ["themes"]

_MOST_OTHERS = 4
_MOST_OPERATIONS = 24
_HOUR = 3600
_HUGE = 3_000
_PLAIN_FOR_HOSTILE = 3
_NAMES = ("a", "b", "c", "B", "10")
_VALUES: tuple[Any, ...] = ("purr", {"n": [1, None, {}]}, None, [], 0, False, "", 1.5, "purr\n", {"a": {"b": "c"}})

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]
Scene = Callable[[Draw, int], list[Operation]]


def themes(offers: Offers) -> list[st.SearchStrategy[Plan]]:
    """Return a strategy for each kind of scene that a store like this can play: it comes first, and others follow.

    So each kind is met, whatever is drawn: hypothesis likes to repeat what it has drawn before.
    """
    scenes = [*_ALWAYS, *(_DURABLE if offers.durable else ()), *(_SHARED if offers.instances else ())]
    return [_plans(scene, scenes) for scene in scenes]


def _plans(first: Scene, scenes: list[Scene]) -> st.SearchStrategy[Plan]:
    hostile_ids = [group.title for group in groups_of_ids("x")]

    @st.composite
    def scene(draw: Draw, one: Scene | None = None) -> list[Operation]:
        run = draw(_one_of((0, 0, 0, 0, 1, 2)))
        return (one or draw(_one_of(scenes)))(draw, run)

    def plan(part: list[Operation], others: list[list[Operation]], ids: str, first_id: int) -> Plan:
        before, behind = others[0::2], others[1::2]
        operations = [operation for part in (*before, part, *behind) for operation in part]
        return Plan(tuple(operations[:_MOST_OPERATIONS]), ids, first_id)

    ids = _one_of(["plain"] * len(hostile_ids) + hostile_ids)
    return st.builds(plan, scene(first), st.lists(scene(), max_size=_MOST_OTHERS), ids, _one_of(range(0, 10)))


def _one_of(options: Sequence[T]) -> st.SearchStrategy[T]:
    """Draw one of the options by bits alone; the first is the simplest.

    Of numbers hypothesis now and then draws one that it has read in the user's modules. For that it parses all of them,
    and what a seed gives would depend on them.
    """
    return _bits(max(1, (len(options) - 1).bit_length())).map(
        lambda drawn: options[int("".join("01"[bit] for bit in drawn), 2) % len(options)]
    )


@functools.cache
def _bits(count: int) -> st.SearchStrategy[tuple[bool, ...]]:
    return st.tuples(*[st.booleans()] * count)


# The parts.


def _load(draw: Draw, run: int, *, second: bool = False, inputs: int | None = None) -> Operation:
    chosen = draw(_one_of(range(len(INPUTS)))) if inputs is None else inputs
    return {"do": "load", "run": run, "inputs": chosen, "second": second}


def _save(draw: Draw, run: int, back: int = 0, *, second: bool = False, nodes: list[Any] | None = None) -> Operation:
    return {
        "do": "save",
        "run": run,
        "back": back,
        "nodes": draw(_nodes()) if nodes is None else nodes,
        "second": second,
    }


def _delete(run: int, *, second: bool = False) -> Operation:
    return {"do": "delete", "run": run, "second": second}


def _elsewhere(draw: Draw, run: int, what: str, *, kill: bool = False) -> Operation:
    nodes = draw(_nodes(hostile=False)) if what == "save" else []
    inputs = draw(_one_of(range(len(INPUTS))))
    return {"do": "elsewhere", "run": run, "what": what, "inputs": inputs, "nodes": nodes, "kill": kill}


@functools.cache
def _nodes(*, hostile: bool = True, least: int = 1, most: int = 3) -> st.SearchStrategy[list[Any]]:
    values: list[dict[str, Any]] = [{"json": value} for value in _VALUES]
    if hostile:
        kept = [{"hostile": each.title} for each in KEPT if len(repr(each.value())) < _HUGE]
        values = values * (_PLAIN_FOR_HOSTILE * len(kept) // len(values)) + kept
    node = st.tuples(_one_of(_NAMES), _one_of(values)).map(list)
    return st.lists(node, min_size=least, max_size=most)


def _saves(draw: Draw, run: int, most: int) -> list[Operation]:
    return [_save(draw, run) for _ in range(draw(_one_of(range(most + 1))))]


# The scenes.


def _goes_on(draw: Draw, run: int) -> list[Operation]:
    return [_load(draw, run), *_saves(draw, run, 3)]


def _saves_nothing_new(draw: Draw, run: int) -> list[Operation]:
    return [_save(draw, run, nodes=[]), _load(draw, run)]


def _two_workers(draw: Draw, run: int) -> list[Operation]:
    behind = _save(draw, run, draw(_one_of(range(1, 4))))
    again = [{**behind, "nodes": []}] if draw(st.booleans()) else []
    return [_load(draw, run), _load(draw, run), _save(draw, run), behind, *again, *_loads(draw, run)]


def _an_old_worker(draw: Draw, run: int) -> list[Operation]:
    return [_save(draw, run, draw(_one_of(range(0, 6)))), *_loads(draw, run)]


def _loads(draw: Draw, run: int) -> list[Operation]:
    return [_load(draw, run)] if draw(st.booleans()) else []


def _a_late_save(draw: Draw, run: int) -> list[Operation]:
    return [_load(draw, run), *_saves(draw, run, 2), _delete(run), _save(draw, run, draw(_one_of(range(0, 2))))]


def _the_next_run(draw: Draw, run: int) -> list[Operation]:
    """The run is deleted and created anew, and as long as before; a worker of the old one saves."""
    before, after = _saves(draw, run, 2), _saves(draw, run, 2)
    return [_load(draw, run), *before, _delete(run), _load(draw, run), *after, _save(draw, run, 1), *_loads(draw, run)]


def _the_same_again(draw: Draw, run: int) -> list[Operation]:
    """Somebody deletes a run and runs the same pipeline again."""
    life = [_load(draw, run, inputs=0), *_saves(draw, run, 2), _save(draw, run)]
    return [_delete(run), *life, _delete(run), *life, _load(draw, run)]


def _overlapping(draw: Draw, run: int) -> list[Operation]:
    backs = draw(_one_of(([0, 1], [0, 0], [1, 2])))
    nodes = draw(_nodes(least=2, most=2))
    return [_load(draw, run), _load(draw, run), {"do": "overlap", "run": run, "backs": backs, "nodes": nodes}]


def _cancelled(draw: Draw, run: int) -> list[Operation]:
    after, back = draw(_one_of(range(0, 7))), draw(_one_of((0, 0, 0, 1)))
    cancel = {"do": "cancel", "run": run, "back": back, "nodes": draw(_nodes()), "after": after}
    return [_load(draw, run), cancel, *_loads(draw, run), *_saves(draw, run, 1)]


def _an_edit(draw: Draw, run: int) -> list[Operation]:
    edits = [{"do": "edit", "run": run, "back": 0, "what": what} for what in ("reply", "handed", "context")]
    chosen = draw(_one_of(([edits[0]], [edits[1]], [edits[2]], edits)))
    again = [_load(draw, run) for _ in range(draw(_one_of(range(1, 5))))]
    return [*_goes_on(draw, run), *again, *chosen, _load(draw, run)]


def _another_hour(draw: Draw, run: int) -> list[Operation]:
    seconds = draw(_one_of((-_HOUR, 0, _HOUR, -48 * _HOUR)))
    before = [*_goes_on(draw, run), _save(draw, run)]
    return [*before, {"do": "clock", "seconds": seconds}, _load(draw, run), _save(draw, run), *_saves(draw, run, 2)]


def _opened_again(draw: Draw, run: int) -> list[Operation]:
    return [{"do": "reopen"}, *_an_old_worker(draw, run), *_saves(draw, run, 1)]


def _the_next_run_opened_again(draw: Draw, run: int) -> list[Operation]:
    return [*_goes_on(draw, run), _delete(run), *_goes_on(draw, run), {"do": "reopen"}, *_an_old_worker(draw, run)]


def _another_process(draw: Draw, run: int) -> list[Operation]:
    what = draw(_one_of(("save", "delete", "load")))
    return [*_loads(draw, run), _elsewhere(draw, run, what), *_an_old_worker(draw, run)]


def _deleted_here_created_there(draw: Draw, run: int) -> list[Operation]:
    there = _elsewhere(draw, run, "save", kill=draw(st.booleans()))
    return [*_goes_on(draw, run), _delete(run), there, _load(draw, run)]


def _a_killed_process(draw: Draw, run: int) -> list[Operation]:
    what = draw(_one_of(("save", "delete")))
    return [*_loads(draw, run), _elsewhere(draw, run, what, kill=True), *_an_old_worker(draw, run)]


def _a_second_instance(draw: Draw, run: int) -> list[Operation]:
    return [
        *_goes_on(draw, run),
        _load(draw, run, second=True),
        _save(draw, run, draw(_one_of(range(0, 2))), second=True),
        *_an_old_worker(draw, run),
    ]


def _the_next_run_by_a_second_instance(draw: Draw, run: int) -> list[Operation]:
    """Deleted, created anew and gone on with where the first instance does not see it."""
    there = [_save(draw, run, second=True) for _ in range(draw(_one_of(range(0, 3))))]
    return [
        *_goes_on(draw, run),
        _load(draw, run),
        _delete(run, second=True),
        _load(draw, run, second=True),
        *there,
        _load(draw, run),
        *_an_old_worker(draw, run),
    ]


_ALWAYS: tuple[Scene, ...] = (
    _goes_on,
    _two_workers,
    _an_old_worker,
    _saves_nothing_new,
    _a_late_save,
    _the_next_run,
    _the_same_again,
    _overlapping,
    _cancelled,
    _an_edit,
    _another_hour,
)
_DURABLE: tuple[Scene, ...] = (
    _opened_again,
    _the_next_run_opened_again,
    _another_process,
    _a_killed_process,
    _deleted_here_created_there,
)
_SHARED: tuple[Scene, ...] = (
    _a_second_instance,
    _the_next_run_by_a_second_instance,
)
