"""The class that makes a test suite of a store's factory; it imports nothing, since the store's processes import it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = ["StateStoreConformance"]


class StateStoreConformance:
    """Every clause of the contract as a test of your store: subclass it in a test file, and say how to open the store.

        class TestMyStore(StateStoreConformance):
            def open_store(self, location: str) -> MyStore:
                return MyStore(location)

    `open_store` gets a location, a fresh and empty folder, and returns an open store; the same location again means the
    same data. It may be `async`, a context manager, a static method, or take no location. It is called in other
    processes, which import the file anew: there are no fixtures, and of what a fixture does only environment variables
    reach it. Instead of a method, `target` may name the store as the command does: a URL, or `module:factory`.

    pytest finds a subclass by its base, whatever it is called, and collects a test for each clause: `test_S01`, … A
    class without `open_store` and `target` is a mistake, unless it says `__test__ = False` (its subclasses are tests
    all the same).
    """

    target: ClassVar[str | None] = None
    """What to check, instead of a method `open_store`."""

    server: ClassVar[str | None] = None
    """"postgres" or "valkey": such a server is started, and each location is the URL of a fresh database on it."""

    known_gaps: ClassVar[Mapping[str, str]] = {}
    """Clauses that the store is known to break, with the reason: expected failures, and one that passes fails."""

    claims: ClassVar[Mapping[str, Any]] = {}
    """What you say of the store, `{"level": 1, "capabilities": ["durable", "load"]}`: what is not so fails."""

    __test__ = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__test__" not in vars(cls):
            cls.__test__ = True
        defining = sys._getframe(1)
        line, earlier = defining.f_lineno, defining.f_locals.get(cls.__name__)
        cls._defined = (defining.f_code.co_filename, line)
        if (
            isinstance(earlier, type)
            and issubclass(earlier, StateStoreConformance)
            and earlier._defined != cls._defined
        ):
            cls._hides = earlier._defined[1]

    _defined: ClassVar[tuple[str, int]] = ("", 0)
    _hides: ClassVar[int | None] = None
    """The line of another class of this name in the same file, which is lost."""
