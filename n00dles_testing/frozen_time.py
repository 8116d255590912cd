"""A clock that stands still until the test moves it, while the event loop and whatever waits for a server go on.

This is freezegun, with three things set so that pipelines run under it:

- What has to wait for real (event loops, threads, child processes, the clients of PostgreSQL and Redis) keeps the real
  clock: plain freezegun lets `asyncio.sleep`, `wait_for`, connection pools and locks hang.
- Who has the real clock is decided by the module that asks, not by its callers as well. As it comes, freezegun looks
  five calls up, so that a body that runs in a thread, or a coroutine that the event loop has just resumed, would get
  the real time, and one that is a few calls deeper the frozen one.
- Its date types are known to Pydantic, so that models may be defined and annotations resolved while the clock is held.

Reports behind it: spulec/freezegun #437, #563, #551; pydantic/pydantic #10287.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from freezegun import api as freezegun_api
from freezegun import freeze_time
from pydantic_core import core_schema

__all__ = ["FrozenTime", "held_clock"]

_REAL = [
    *("asyncio", "concurrent", "selectors", "socketserver", "subprocess"),
    *("psycopg", "redis", "valkey"),
    *("_pytest", "pytest_timeout", "xdist", "execnet", "hypothesis", "n00dles_testing"),
]
"""Whose clock stays real: modules that begin with one of these. freezegun adds threading, queue and multiprocessing."""


class FrozenTime:
    """The clock of this process, held by the test: `time.time`, `time.monotonic`, `datetime.now` and the like."""

    def __init__(self, factory: Any) -> None:
        self._factory = factory

    def __repr__(self) -> str:
        return f"<frozen at {self.now.isoformat()}>"

    @property
    def now(self) -> datetime:
        """What the clock says, in UTC."""
        moment: datetime = self._factory()
        # Not the type of freezegun, which orjson and others do not know.
        return datetime(*moment.timetuple()[:6], moment.microsecond, UTC)

    def tick(self, seconds: float = 1.0) -> None:
        """Move the clock on by so many seconds; by a negative number, step it back."""
        self._factory.tick(timedelta(seconds=seconds))

    def move_to(self, moment: datetime | str) -> None:
        """Set the clock to a moment: a datetime, or ISO text such as "2030-01-31T12:00"; in UTC unless it says so.

        Raises `ValueError` for text that is no ISO date or time.
        """
        if isinstance(moment, str):
            try:
                moment = datetime.fromisoformat(moment)
            except ValueError as error:
                raise ValueError(
                    f'move_to({moment!r}): that is no date or time in ISO format; write "2030-01-31" or '
                    '"2030-01-31T12:00:00+01:00".'
                ) from error
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        self._factory.tick(moment - self.now)


@contextmanager
def held_clock() -> Iterator[FrozenTime]:
    """Hold the clock of this process in the `with` block, at the moment in which it begins."""
    if importlib.util.find_spec("psycopg") is not None:
        # Compiled modules look at the date types when they are imported, and must not find those of freezegun.
        importlib.import_module("psycopg")
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(freezegun_api, "call_stack_inspection_limit", 1))
        for fake, name, schema in (
            (freezegun_api.FakeDatetime, "datetime", core_schema.datetime_schema),
            (freezegun_api.FakeDate, "date", core_schema.date_schema),
        ):
            _teach_pydantic(fake, schema)
            # Whatever is named after its type (the signature of a pipeline, a pickle) has to be the same tomorrow.
            for attribute, value in (("__name__", name), ("__qualname__", name), ("__module__", "datetime")):
                stack.callback(setattr, fake, attribute, getattr(fake, attribute))
                setattr(fake, attribute, value)
        yield FrozenTime(stack.enter_context(freeze_time(datetime.now(UTC), ignore=_REAL, real_asyncio=True)))


def _teach_pydantic(fake: Any, schema: Any) -> None:
    """Have Pydantic validate a type of freezegun as the one that it stands for; for good, as models keep the type."""
    fake.__get_pydantic_core_schema__ = classmethod(lambda cls, source, handler: schema())
