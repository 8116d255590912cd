"""Small fixed schedules: two clients load and save one run, in every order in which they can go on at their awaits.

    histories = [history async for history in every_schedule(store, tmp_path)]
    assert all(judge(each).verdict is not Verdict.FAIL for each in histories)

Random traffic finds what is likely; here each order is tried, once. A client goes on until the store awaits something,
and then waits for its turn. So a store whose calls never await has six schedules (loads and saves as a whole), and one
that awaits between its look and its write has all those in which somebody else comes between the two.

What other threads and processes do in the meantime is theirs to order: for them there is `traffic`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .calls import History
from .recording import Journal, RecordingClient, UnknownOutcomeError, gather

__all__ = ["every_order", "every_schedule"]

_BLOCKED_SECONDS = 0.05
"""After so long a client that has its turn is taken to wait for the other one, as for a lock."""
_PATIENCE = 20
"""So often a client goes on before the other has to: it may ask again and again for what only that one can give."""

Client = Callable[[], Coroutine[Any, Any, None]]


async def every_schedule(
    stores: Any | Sequence[Any], folder: Path, *, most: int = 500, revisions: bool = True
) -> AsyncIterator[History]:
    """Yield the history of each schedule, at most so many; each is of a run of its own, and ends with a load.

    `stores` is one open store, or two that keep the same runs: one for each client. Journals are written to `folder`.
    """
    first, second = stores if isinstance(stores, list | tuple) else (stores, stores)
    numbers = iter(range(1, most + 1))

    async def one_run() -> tuple[list[Client], Callable[[], Awaitable[History]]]:
        run_id = f"schedule-{next(numbers)}"
        path = folder / f"{run_id}.journal"
        journal = Journal(path)

        def client(store: Any, name: str) -> Client:
            recording = RecordingClient(store, name, journal, revisions=revisions)
            return lambda: _load_and_save(recording, run_id)

        async def recorded() -> History:
            with suppress(UnknownOutcomeError):
                await RecordingClient(first, "last", journal, revisions=revisions).load(run_id)
            journal.close()
            return gather([path], starts_empty=True, about={"schedule": run_id})

        return [client(first, "a"), client(second, "b")], recorded

    async for history in every_order(one_run, most=most):
        yield history


async def every_order(
    make: Callable[[], Awaitable[tuple[list[Client], Callable[[], Awaitable[History]]]]], *, most: int
) -> AsyncIterator[History]:
    """Run fresh clients again and again, each time in another order, until none is left; `make` makes them.

    It returns the clients, and what is called when all have ended.
    """
    prefix: list[int] | None = []
    while prefix is not None and most > 0:
        clients, recorded = await make()
        moved = await _run([client() for client in clients], prefix)
        yield await recorded()
        prefix, most = _next(moved), most - 1


async def _load_and_save(client: RecordingClient, run_id: str) -> None:
    with suppress(UnknownOutcomeError):
        held = await client.load(run_id)
        await asyncio.sleep(0)  # the node runs
        await client.save(run_id, held)


class _Gated:
    """A coroutine that goes on only in its turn: at its begin, and after whatever it awaits."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._turn: asyncio.Future[None] | None = None
        self.task = asyncio.ensure_future(self._whole())
        self.waits = asyncio.Event()

    def go_on(self) -> None:
        """Give it its turn; it has to wait for one."""
        self.waits.clear()
        if self._turn is not None:
            self._turn.set_result(None)

    async def is_ready(self) -> bool:
        """Wait until it waits for its turn, or has ended; return False if it waits for something else, and keeps on."""
        ready = asyncio.ensure_future(self.waits.wait())
        await asyncio.wait([ready, self.task], timeout=_BLOCKED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        return self.waits.is_set() or self.task.done()

    async def _whole(self) -> None:
        await self

    def __await__(self) -> Generator[Any, Any, None]:
        error: BaseException | None = None
        while True:
            self._turn = asyncio.get_running_loop().create_future()
            self.waits.set()
            try:
                yield from self._turn
                awaited = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
            except StopIteration:
                return
            try:
                # The task waits for it, as if the coroutine were its own.
                yield awaited
            except BaseException as thrown:
                error = thrown
            else:
                error = None


async def _run(coroutines: Sequence[Coroutine[Any, Any, None]], prefix: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Run them, in the order of `prefix` and then each as far as it gets; return who moved, and who else could have."""
    clients = [_Gated(coroutine) for coroutine in coroutines]
    moved: list[tuple[int, list[int]]] = []
    while left := [number for number, client in enumerate(clients) if not client.task.done()]:
        wanted = prefix[len(moved)] if len(moved) < len(prefix) else _next_in_turn(left, moved)
        chosen = await _first_ready(clients, [*(n for n in left if n >= wanted), *(n for n in left if n < wanted)])
        if chosen is None or clients[chosen].task.done():
            continue
        # One that had to wait for another, and was passed over, is not tried again: it would be the same order.
        moved.append((chosen, [number for number in left if number > max(wanted, chosen)] if chosen >= wanted else []))
        clients[chosen].go_on()
        await asyncio.sleep(0)
    for client in clients:
        await client.task
    return moved


def _next_in_turn(left: Sequence[int], moved: Sequence[tuple[int, list[int]]]) -> int:
    """Return the first, unless it has gone on so often without another that it must be asking for something."""
    last = {number for number, _ in moved[-_PATIENCE:]}
    return left[-1] if len(moved) >= _PATIENCE and last == {left[0]} else left[0]


async def _first_ready(clients: Sequence[_Gated], order: Sequence[int]) -> int | None:
    for number in order:
        if await clients[number].is_ready():
            return number
    return None


def _next(moved: Sequence[tuple[int, list[int]]]) -> list[int] | None:
    """Return the next order, as far as it differs; None if there is none."""
    for at in reversed(range(len(moved))):
        _, others = moved[at]
        if others:
            return [*(number for number, _ in moved[:at]), others[0]]
    return None
