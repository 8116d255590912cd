"""The items of `--n00dles-store`: one for each target and clause, without a test file."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from n00dles.errors import ConfigurationError

from ..conformance.capabilities import Capability
from ..conformance.claims import Claims
from ..conformance.registry import Clause, implemented, select
from ..conformance.served import password_hidden
from .claims import TITLE, check_claims
from .outcome import DECLARED_GAP, check_item, known_gap, told_interrupts
from .runners import StoreRunners, UnusableTargetError

__all__ = ["ClaimsItem", "ClauseItem", "StoreCollector", "StoreItems", "known_gaps", "mark", "place_of"]


class StoreItems:
    """The part of the plugin that is there only with `--n00dles-store`."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the options. Raises `pytest.UsageError`."""
        self._targets = list(dict.fromkeys(config.getoption("n00dles_store")))
        self._gaps = _declared_gaps(config)
        claims = config.getoption("n00dles_claims")
        for target in self._targets:
            StoreRunners.of(config).say(
                target,
                claims=claims and Path(claims),
                reader=config.getoption("n00dles_reader"),
                server=config.getoption("n00dles_server"),
            )
        if _asked_for_stores_alone(config):
            config.args[:] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Put the stores behind what the session has collected by itself."""
        opening = password_hidden(collector.target) if isinstance(collector, StoreCollector) else ""
        with told_interrupts(f"the opening of {opening}") if opening else nullcontext():
            report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            stores = [StoreCollector.of(collector, target, self._gaps) for target in self._targets]
            report.result = [*(report.result or []), *stores]
        return report


class StoreCollector(pytest.Collector):
    """All clauses of one target."""

    target: str
    gaps: Mapping[str, str]

    @classmethod
    def of(cls, session: pytest.Session, target: str, gaps: Mapping[str, str]) -> StoreCollector:
        """Return the collector of a target."""
        name = f"n00dles-store[{password_hidden(target)}]"
        collector: StoreCollector = cls.from_parent(session, name=name, nodeid=name, path=session.config.rootpath)
        collector.target, collector.gaps = target, gaps
        return collector

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item for each clause, having opened the store: one that cannot be opened is told once."""
        if not self.config.option.collectonly:
            try:
                StoreRunners.of(self.config).open(self.target)
            except UnusableTargetError as error:
                raise self.CollectError(f"{password_hidden(self.target)} cannot be checked: {error}") from None
        for clause in implemented():
            item: ClauseItem = ClauseItem.from_parent(self, name=clause.id)
            item.clause = clause
            mark(item, clause, self.gaps, str(self.config.getoption("n00dles_claims")))
            yield item
        claims: ClaimsItem = ClaimsItem.from_parent(self, name="claims")
        yield claims


class ClauseItem(pytest.Item):
    """One clause of one target."""

    clause: Clause

    @property
    def obj(self) -> Any:
        """The check; its docstring is the clause's documentation."""
        return self.clause.check

    def runtest(self) -> None:
        """Check the clause."""
        assert isinstance(self.parent, StoreCollector)
        check_item(self, self.parent.target, self.clause)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the clause is written down."""
        return (*place_of(self.clause.check), self.clause.id)

    def __repr__(self) -> str:
        return f"<Clause {self.clause.id}: {self.clause.title}>"


class ClaimsItem(pytest.Item):
    """What is claimed of one target."""

    def runtest(self) -> None:
        """Probe what is claimed."""
        assert isinstance(self.parent, StoreCollector)
        check_claims(self, self.parent.target)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the capabilities are written down."""
        return (*place_of(Capability), "claims")

    def __repr__(self) -> str:
        return f"<Claims: {TITLE}>"


def mark(item: pytest.Item, clause: Clause, gaps: Mapping[str, str], where: str) -> None:
    """Give an item the marker of its level, and that of a known gap if it is one, declared in `where`."""
    item.add_marker(getattr(pytest.mark, f"n00dles_level{clause.level}"))
    if clause.id in gaps:
        item.add_marker(known_gap(gaps[clause.id]))
        item.stash[DECLARED_GAP] = (gaps[clause.id], where)


def known_gaps(declared: Mapping[str, str], where: str) -> dict[str, str]:
    """Return declared gaps, ids in capitals. Raises `ConfigurationError` for an unknown clause or a missing reason."""
    if not isinstance(declared, Mapping):
        raise ConfigurationError(f"{where} is {declared!r}; write {{'S08': 'the reason'}}.")
    gaps = {str(id_).upper(): reason for id_, reason in declared.items()}
    try:
        select(gaps)
    except KeyError as error:
        raise ConfigurationError(f"{where}: {error.args[0]}") from None
    for id_, reason in gaps.items():
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigurationError(f"{where}: the known gap {id_} has no reason; write one, as text.")
    return gaps


def place_of(thing: Any) -> tuple[Path, int]:
    """Return the file of a class or function, and its line, counted from 0; the first, if code has made it."""
    try:
        line = inspect.getsourcelines(thing)[1] - 1
    except OSError:
        line = 0
    return Path(inspect.getfile(thing)), line


def _asked_for_stores_alone(config: pytest.Config) -> bool:
    """Whether stores were typed, and no paths of tests. The option in a settings file is for all runs: it adds to them.

    A worker of xdist has been called with the same arguments.
    """
    typed = any(str(argument).startswith("--n00dles-store") for argument in config.invocation_params.args)
    return typed and config.args_source is not pytest.Config.ArgsSource.ARGS


def _declared_gaps(config: pytest.Config) -> Mapping[str, str]:
    file = config.getoption("n00dles_claims")
    if file is None:
        return {}
    try:
        return Claims.from_file(config.invocation_params.dir / file).gaps
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None
