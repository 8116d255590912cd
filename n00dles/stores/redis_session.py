"""Connections of one store: a pool for each event loop, opened when needed, and calls that are tried again in bounds.

A connection of asyncio belongs to its event loop, so each loop has its own pool, which is closed when the loop ends:
`asyncio.run` closes the asynchronous generators of its loop, and an open pool is one. A forked child has copies of its
parent's connections, and must neither use nor close them: closing would take them from the event loop that both share.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from ..errors import StateStoreError
from .redis_durability import asked_settings, failover_note, weaknesses
from .redis_errors import is_transient, store_error
from .redis_pool import new_client
from .redis_scripts import Script
from .redis_settings import RedisSettings

__all__ = ["Connections", "RedisSession"]

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two attempts

_GRACE = 1.0
"""For how many seconds a cancelled call waits for its answer, so that it is done or not done when it ends."""

_PART = 0.5
"""Of its time, what a call waits for one answer, so that a connection on which none comes leaves time for another."""

_log = logging.getLogger("n00dles")

_sessions: WeakSet[RedisSession] = WeakSet()
_inherited: list[Connections] = []  # of the parent of this process; see above


class _Call:
    """A call that is under way: the limit of this attempt, and whether its caller was cancelled meanwhile."""

    limit: asyncio.Timeout
    is_cancelled = False


_under_way: ContextVar[_Call] = ContextVar("_under_way")


class Connections:
    """The pool of one event loop, as `client`, and the turns of the runs that are being saved in it."""

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.is_checked = False
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._life = self._live()

    def turn(self, run_id: str) -> asyncio.Lock:
        """Return the lock of a run: saves of it go one after another."""
        lock = self._turns.get(run_id)
        if lock is None:
            lock = self._turns[run_id] = asyncio.Lock()
        return lock

    async def open(self) -> None:
        """Let the event loop know, so that it closes the pool at its end."""
        await anext(self._life)

    async def close(self) -> None:
        """Close every connection."""
        await self._life.aclose()  # type: ignore[attr-defined]

    async def _live(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.client.aclose()
            await self.client.connection_pool.disconnect()

    async def run(self, script: Script, keys: list[str], *arguments: Any) -> Any:
        """Return what a script returns; a server that does not know it, as after a restart, is told."""
        try:
            return await self._answer("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except NoScriptError:
            return await self._answer("EVAL", script.text, len(keys), *keys, *arguments)

    async def _answer(self, *command: Any) -> Any:
        """Send a command and return its answer, for which a caller that is cancelled waits a moment all the same.

        The client would drop the connection, and nobody would know whether the command is done, or will be.
        """
        pool: Any = self.client.connection_pool
        connection = await pool.get_connection()
        try:
            await connection.send_command(*command)
            try:
                return await connection.read_response(disconnect_on_error=False)
            except asyncio.CancelledError:
                call = _under_way.get()
                if call.limit.expired():
                    raise
                call.is_cancelled = True
            async with asyncio.timeout(_GRACE):
                return await connection.read_response(disconnect_on_error=False)
        except ResponseError:
            raise
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)

    async def run_all(self, script: Script, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
        """Return what a script returns for each of several keys and arguments, in one round trip."""
        pipeline = self.client.pipeline(transaction=False)
        for number, (keys, arguments) in enumerate(calls):
            # The first one brings the script.
            how, name = (pipeline.evalsha, script.sha) if number else (pipeline.eval, script.text)
            how(name, len(keys), *keys, *arguments)
        return list(await pipeline.execute())


class RedisSession:
    """Calls a Redis server, within the timeout of `settings`, from any event loop, thread or forked child."""

    def __init__(self, settings: RedisSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = WeakKeyDictionary()
        self._warned: set[str] = set()
        _sessions.add(self)

    async def call(
        self, work: Callable[[Connections], Awaitable[T]], run_id: str | None = None, *, has_many_steps: bool = False
    ) -> T:
        """Return what `work` returns, which may be called several times, until the timeout is over.

        One attempt takes a part of that time, or all if it `has_many_steps`. Raises `StateStoreError` when the server
        fails. A script of a cancelled call is done or not done when it ends: it waits a moment for its answer, and if
        none comes, the connection is dropped, so that no answer is left for another call.
        """
        call = _Call()
        token = _under_way.set(call)
        try:
            result = await self._tried(work, run_id, call, 1.0 if has_many_steps else _PART)
        except Exception as error:
            if call.is_cancelled:
                raise asyncio.CancelledError from error
            raise
        finally:
            _under_way.reset(token)
        if call.is_cancelled:
            raise asyncio.CancelledError
        return result

    async def close(self) -> None:
        """Close the connections of this event loop, and let go of those of loops that are closed."""
        loop = asyncio.get_running_loop()
        with self._lock:
            mine = self._open.pop(loop, None)
            for other in [other for other in self._open if other.is_closed()]:
                del self._open[other]
        if mine is not None:
            await mine.close()

    def forget(self) -> None:
        """Start anew in a forked child."""
        _inherited.extend(self._open.values())
        self._lock = threading.Lock()
        self._open = WeakKeyDictionary()

    async def _tried(
        self, work: Callable[[Connections], Awaitable[T]], run_id: str | None, call: _Call, part: float
    ) -> T:
        connections = await self._connections()
        settings, loop = self.settings, asyncio.get_running_loop()
        deadline, pause = loop.time() + settings.timeout, _FIRST_PAUSE
        failed: BaseException | None = None
        while True:
            try:
                async with asyncio.timeout_at(min(deadline, loop.time() + part * settings.timeout)) as call.limit:
                    if not connections.is_checked:
                        await self._check(connections)
                    return await work(connections)
            except (RedisError, OSError) as error:  # TimeoutError is an OSError
                is_over = loop.time() + pause >= deadline
                # The deadline says less than what went wrong before it.
                failed = failed if isinstance(error, TimeoutError) and failed is not None else error
                if not is_transient(error) or is_over or call.is_cancelled:
                    raise store_error(failed, settings.shown, run_id, settings.timeout) from failed
                # Perhaps it is another server when it is back.
                connections.is_checked = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _connections(self) -> Connections:
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._open.get(loop)
            is_new = found is None
            if found is None:
                found = self._open[loop] = Connections(new_client(self.settings))
        if is_new:
            await found.open()
        return found

    async def _check(self, connections: Connections) -> None:
        """Look at how the server keeps what it acknowledges, and refuse it or warn if it may lose that."""
        client = connections.client
        await client.ping()  # what is wrong with the URL is told by this, and not taken for a right that is lacking
        info: dict[str, Any] = {}
        with suppress(ResponseError):  # forbidden
            info = await client.info("everything")
        try:
            config = await client.config_get(*asked_settings)
        except ResponseError:
            config = None
        texts = None if config is None else {_text(name): _text(value) for name, value in config.items()}
        found = weaknesses(texts, info)
        if found and self.settings.durability == "require":
            raise StateStoreError(
                f"the Redis store {self.settings.shown} is refused, for it may lose saves that it has acknowledged: "
                f"{'; '.join(found)}. Change the server, or accept that with durability=warn "
                "(redis://…?durability=warn). Nothing was read or written."
            )
        note = failover_note(info)
        for sentence in [*found, *([note] if note else [])]:
            self._warn(sentence)
        connections.is_checked = True

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            _log.warning("the Redis store %s may lose acknowledged saves: %s.", self.settings.shown, sentence)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _forget_all() -> None:
    for session in list(_sessions):
        session.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
