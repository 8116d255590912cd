"""The items of a class that subclasses `StateStoreConformance`: a test function for each clause."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from n00dles.errors import ConfigurationError

from ..conformance.claims import Claims
from ..conformance.registry import Clause, implemented
from ..factories import takes_location
from .claims import TITLE, check_claims
from .items import known_gaps, mark, place_of
from .outcome import check_item
from .runners import StoreRunners
from .suite import StateStoreConformance

__all__ = ["ClauseFunction", "StoreClass", "collected"]

_CLAUSE = "n00dles_clause"


class StoreClass(pytest.Class):
    """A class of tests, one for each clause, of the store that it opens."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return the tests. Raises `CollectError` for a class whose store could not be opened by another process."""
        try:
            target_of(self.obj)
            known_gaps(self.obj.known_gaps, "known_gaps")
            _refuse_claims_that_mean_nothing(self.obj.claims)
            if self.obj.server is not None:
                StoreRunners.of(self.config).say(target_of(self.obj), server=self.obj.server)
            self._refuse_what_does_not_reach_it()
        except ConfigurationError as error:
            raise self.CollectError(f"{self.name}: {error}") from None
        _give_tests_to_the_base()
        return super().collect()

    def _refuse_what_does_not_reach_it(self) -> None:
        if self.obj.__init__ is not object.__init__:
            raise ConfigurationError("it has an __init__; the class is made without arguments, by other processes.")
        if any(mark.name == "parametrize" for mark in self.iter_markers()):
            raise ConfigurationError(
                "it is parametrized, and open_store is called in other processes, where there are no parameters. Write "
                "a class for each variant; they can share a base that says __test__ = False."
            )
        if self.obj._hides is not None:
            raise ConfigurationError(
                f"there is another class of this name in the file, in line {self.obj._hides}, whose tests would be "
                "lost. Give one of them another name."
            )


class ClauseFunction(pytest.Function):
    """The test of one clause: its fixtures are set up here, its store is opened in other processes."""

    @property
    def clause(self) -> Clause | None:
        """The clause that it checks; None for the test of the claims."""
        clause: Clause | None = getattr(self.obj, _CLAUSE)
        return clause

    @classmethod
    def of(cls, function: pytest.Function) -> ClauseFunction:
        """Return what pytest has made of a test, as one of these; fixtures with parameters have made several."""
        test: ClauseFunction = cls.from_parent(
            function.parent,
            name=function.name,
            callspec=getattr(function, "callspec", None),
            fixtureinfo=function._fixtureinfo,
            originalname=function.originalname,
        )
        if test.clause is not None:
            mark(test, test.clause, known_gaps(test.cls.known_gaps, ""), f"known_gaps of {test.cls.__name__}")
        return test

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the class is: its tests are written down nowhere."""
        return (*place_of(self.cls), f"{self.cls.__name__}.{self.name}")

    def __repr__(self) -> str:
        return f"<Function {self.name}: {TITLE if self.clause is None else self.clause.title}>"


def collected(collector: pytest.Collector, name: str, thing: object, found: Any) -> Any:
    """Return what to collect of a thing in a module or class, of which pytest itself has `found` something."""
    if isinstance(thing, type) and issubclass(thing, StateStoreConformance):
        return StoreClass.from_parent(collector, name=name, obj=thing) if thing.__test__ else None
    # A test that an author has written in the place of ours is a test like any other.
    if isinstance(collector, StoreClass) and isinstance(found, list) and hasattr(thing, _CLAUSE):
        return [ClauseFunction.of(function) for function in found]
    return found


def target_of(suite: type[StateStoreConformance]) -> str:
    """Return the text by which another process opens the store. Raises `ConfigurationError` if none can."""
    opens = inspect.getattr_static(suite, "open_store", None)
    if suite.target is not None and not isinstance(suite.target, str):
        raise ConfigurationError(f"its target is {suite.target!r}; write a text: a URL, or module:factory.")
    if suite.target is not None and opens is None:
        if suite.claims or hasattr(suite, "reader"):
            raise ConfigurationError(
                "what is said of a target, it says itself, or a file (--n00dles-claims): claims and reader of a class "
                "go with its open_store."
            )
        return suite.target
    if suite.target is not None:
        raise ConfigurationError("it has both, open_store and a target; which one is to be checked? Remove the other.")
    if opens is None:
        raise ConfigurationError(
            "it does not say how to open the store. Write a method open_store(self, location), or target = 'a URL or "
            "module:factory'; a base class for others says __test__ = False."
        )
    if "<locals>" in suite.__qualname__:
        raise ConfigurationError("it is defined in a function, where no other process finds it. Put it at top level.")
    _refuse_fixtures(suite)
    file = Path(inspect.getfile(suite))
    try:
        shown = file.relative_to(os.getcwd())
    except ValueError:
        shown = file
    return f"{shown}:{suite.__qualname__}.open_store"


def _refuse_claims_that_mean_nothing(claims: object) -> None:
    if claims and not Claims.from_attribute(claims, "the class").source:
        raise ConfigurationError(
            f"claims is {claims!r}, and names neither a level nor capabilities: "
            "write {'level': 1, 'capabilities': ['durable']}."
        )


def _refuse_fixtures(suite: type[StateStoreConformance]) -> None:
    """Raise `ConfigurationError` if open_store asks for more than a location."""
    opens: Callable[..., Any] = suite().open_store  # type: ignore[attr-defined]
    try:
        takes_location("open_store", opens)
    except ConfigurationError:
        names = ", ".join(inspect.signature(opens).parameters)
        raise ConfigurationError(
            f"open_store asks for {names}, and gets a location, or nothing. It is called in other processes, where "
            "there are no fixtures; what it needs besides, let a fixture put into os.environ, and read it from there."
        ) from None


def _give_tests_to_the_base() -> None:
    """Give the base class a test for each clause, once: the store's processes, which import it too, need none."""
    for clause in implemented():
        if not hasattr(StateStoreConformance, f"test_{clause.id}"):
            setattr(StateStoreConformance, f"test_{clause.id}", _test_of(clause))
    if not hasattr(StateStoreConformance, "test_claims"):
        setattr(StateStoreConformance, "test_claims", _test_of(None))  # noqa: B010 - the class has no such attribute


def _test_of(clause: Clause | None) -> Callable[..., None]:
    """Return the test of a clause, or of the claims."""

    def test(self: StateStoreConformance, request: pytest.FixtureRequest) -> None:
        folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        target = target_of(type(self))
        if clause is None:
            check_claims(request.node, target, lambda: folders.mktemp(type(self).__name__))
        else:
            check_item(request.node, target, clause, lambda: folders.mktemp(type(self).__name__))

    test.__name__ = "test_claims" if clause is None else f"test_{clause.id}"
    test.__qualname__ = f"StateStoreConformance.{test.__name__}"
    test.__doc__ = TITLE if clause is None else f"{clause.title}\n\n{clause.documentation}"
    setattr(test, _CLAUSE, clause)
    return test
