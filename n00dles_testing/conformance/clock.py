"""A wall clock that shows what a check wants, in this process and in the times of a location's files.

Only the wall clock is replaced (`time.time`, `datetime.now` and the like): monotonic clocks go on, so nothing that
waits, an event loop, a pool or a retry, hangs. A clock outside of Python, as that of a database server, is not set.
"""

from __future__ import annotations

import copyreg
import datetime
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .expect import VacuousCheck

__all__ = ["SkewedClock", "WallClock"]

_SECOND = 1_000_000_000
_REAL_DATETIME = datetime.datetime
_REAL_TIME_NS = time.time_ns
_LEFT_ALONE = ("pydantic", "hypothesis", "sqlalchemy", __name__)
"""Packages that compare classes by identity, and need the real `datetime`."""


class WallClock:
    """Stands still at `base_ns` plus `offset` seconds; each look at it adds `tick_ns`."""

    def __init__(self, tick_ns: int = 0) -> None:
        self.base_ns = _REAL_TIME_NS() // 1000 * 1000
        self.offset = 0
        self._tick_ns = tick_ns
        self._looks = 0
        self._file_times: dict[str, int] = {}

    def now_ns(self) -> int:
        """Return what it shows, in nanoseconds since the epoch."""
        self._looks += 1
        return self.base_ns + self.offset * _SECOND + self._looks * self._tick_ns

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Be the wall clock of this process, in every module that is loaded. Raises `VacuousCheck` if it is not."""
        stand_ins = _stand_ins(self)
        replaced = [*_replace(stand_ins)]
        try:
            _pickle_by_name(dict(stand_ins)[_REAL_DATETIME])
            shown = (time.time(), datetime.datetime.now(datetime.UTC).timestamp())
            if any(abs(seconds * _SECOND - self.now_ns()) > _SECOND for seconds in shown):
                raise VacuousCheck(f"the clock could not be set: it shows {shown}")
            yield
        finally:
            copyreg.dispatch_table.pop(_REAL_DATETIME, None)
            for namespace, name, real in replaced:
                namespace[name] = real

    def date_files(self, location: str | None) -> None:
        """Give what was written since the last call the time that this clock shows."""
        for path, written in self._written(location):
            shown = self._shown_at(written)
            with suppress(OSError):  # it has just gone
                os.utime(path, ns=(shown, shown))
                self._file_times[str(path)] = path.stat().st_mtime_ns

    def leave_files(self, location: str | None) -> None:
        """Let what was written until now keep its time: it was written under another clock."""
        self._file_times.update((str(path), written) for path, written in self._written(location))

    def _written(self, location: str | None) -> Iterator[tuple[Path, int]]:
        """Yield what was written since the last look, and when."""
        if location is None:
            return
        for path in [Path(location), *Path(location).rglob("*")]:
            with suppress(OSError):
                written = path.stat().st_mtime_ns
                if written != self._file_times.get(str(path)):
                    yield path, written

    def _shown_at(self, written: int) -> int:
        """Return what the clock shows of what was written at this time."""
        return self.now_ns()


class SkewedClock(WallClock):
    """Goes on like the real one, so many seconds ahead of it, or behind."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.offset = seconds

    def now_ns(self) -> int:
        """Return what it shows, in nanoseconds since the epoch."""
        return _REAL_TIME_NS() + self.offset * _SECOND

    def _shown_at(self, written: int) -> int:
        return written + self.offset * _SECOND


def _stand_ins(clock: WallClock) -> list[tuple[Any, Any]]:
    """Return what is replaced, and by what."""

    def seconds() -> float:
        return clock.now_ns() / _SECOND

    def clock_of(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda at=None: real(seconds() if at is None else at)

    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, _REAL_DATETIME)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, _REAL_DATETIME)

    class DateTime(_REAL_DATETIME, metaclass=Meta):
        """Makes real ones: only what it calls now is not."""

        def __new__(cls, *arguments: Any, **options: Any) -> Any:
            return _REAL_DATETIME(*arguments, **options)

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return _REAL_DATETIME.fromtimestamp(seconds(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return _REAL_DATETIME.fromtimestamp(seconds(), datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    def formatted(form: str, at: Any = None) -> str:
        return real_strftime(form, real_localtime(seconds()) if at is None else at)

    real_strftime, real_localtime = time.strftime, time.localtime
    stand_ins: list[tuple[Any, Any]] = [
        (time.strftime, formatted),
        (time.time, seconds),
        (time.time_ns, clock.now_ns),
        (_REAL_DATETIME, DateTime),
    ]
    return stand_ins + [(real, clock_of(real)) for real in (time.localtime, time.gmtime, time.ctime)]


def _pickle_by_name(stand_in: type) -> None:
    """Have a time pickled to the bytes that it always has: pickle refuses a class that its name does not lead to."""
    stand_in.__name__ = stand_in.__qualname__ = _REAL_DATETIME.__name__
    stand_in.__module__ = _REAL_DATETIME.__module__
    copyreg.pickle(_REAL_DATETIME, lambda at: (stand_in, *at.__reduce_ex__(pickle.DEFAULT_PROTOCOL)[1:]))


def _replace(stand_ins: list[tuple[Any, Any]]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Replace them wherever a module holds them; yield how to take that back."""
    found = []
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if isinstance(name, str) and not name.startswith(_LEFT_ALONE):
            namespace = getattr(module, "__dict__", {})
            found += [(namespace, key, value) for key, value in list(namespace.items()) if callable(value)]
    by_id = {id(real): stand_in for real, stand_in in stand_ins}
    for namespace, key, value in found:
        if id(value) in by_id:
            namespace[key] = by_id[id(value)]
            yield namespace, key, value
