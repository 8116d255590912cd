"""Calling an optional method of a store as n00dles would, and the four ways in which that can end without a result."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar

from ...factories import call_either
from ..capabilities import Outcome
from ..expect import BrokenClause
from ..records import show
from ..scenario import Scenario, describe
from ..subject import StoreSubject

__all__ = ["AbsentError", "Denied", "Method", "UntoldError", "UnusableError", "WrongError", "attempts", "probing"]

_FEWEST = 10


class Denied(Exception):
    """A capability is not found; the message is the proof."""

    outcome: ClassVar[Outcome]


class AbsentError(Denied):
    """It is not offered."""

    outcome = Outcome.ABSENT


class WrongError(Denied):
    """It is offered, and does something else."""

    outcome = Outcome.BROKEN


class UnusableError(Denied):
    """It is offered in a way that n00dles could not use."""

    outcome = Outcome.UNUSABLE


class UntoldError(Denied):
    """It cannot be found out."""

    outcome = Outcome.UNTOLD


class Method:
    """One optional method of a scenario's open store; its calls are told in the scenario's story."""

    def __init__(self, scenario: Scenario, name: str, *positional: str, keywords: tuple[str, ...] = ()) -> None:
        """Find it, and see whether it takes what n00dles would pass.

        Raises `AbsentError` if it is not there, and `UnusableError` if it takes something else.
        """
        self.name = name
        self._scenario = scenario
        method = getattr(scenario.raw, name, None)
        if not callable(method):
            raise AbsentError(f"the store has no method {name}")
        self._method: Callable[..., Any] = method
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*positional, **dict.fromkeys(keywords))
        except TypeError:
            call = ", ".join([*positional, *(f"{keyword}=…" for keyword in keywords)])
            raise UnusableError(f"n00dles calls {name}({call}), and the store has {name}{signature}") from None

    async def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call it; sync or async. Raises what it raises, but for `NotImplementedError` and `TypeError`."""
        told = [*(show(each) for each in arguments), *(f"{name}={show(value)}" for name, value in options.items())]
        self._scenario.tell(f"{self.name}({', '.join(told)})")
        try:
            return await call_either(partial(self._method, *arguments, **options))
        except NotImplementedError:
            raise AbsentError(f"{self.name} is there, and only raises NotImplementedError") from None
        except TypeError as error:
            raise UnusableError(f"{self.name}, called as n00dles does, raised {describe(error)}") from error

    async def must(self, *arguments: Any, **options: Any) -> Any:
        """Call it where it has no reason to raise. Raises `WrongError` if it does."""
        try:
            return await self(*arguments, **options)
        except Denied:
            raise
        except Exception as error:
            raise WrongError(f"{self.name} raised {describe(error)}") from error


async def attempts(seconds: float, pause: float) -> AsyncIterator[int]:
    """Yield numbers, each after a pause, for so long, and ten at least: a busy machine is no reason to give up."""
    deadline = time.monotonic() + seconds
    number = 0
    while number < _FEWEST or time.monotonic() < deadline:
        await asyncio.sleep(pause)
        yield number
        number += 1


@asynccontextmanager
async def probing(subject: StoreSubject, title: str) -> AsyncIterator[Scenario]:
    """Open a scenario that counts for nothing. A fault of the store's three methods is for its clauses to judge."""
    async with subject.probe(title) as s:
        try:
            yield s
        except BrokenClause as broken:
            raise UntoldError(f"the store's own methods did not come that far: {broken.message}") from broken
