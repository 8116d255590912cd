"""What the author of a store says about it: the level, the capabilities, the known gaps, and a reader of its own.

Said by a plain attribute of the factory, or of the store (`claims = {"level": 2, "capabilities": ["durable"]}`), or in
a TOML file, which wins where both say something:

    reader = "mypackage.reading:read"

    [claims]
    level = 2
    capabilities = ["durable", "load"]

    [known-gaps]
    S08 = "keeps no revision"
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from n00dles.errors import ConfigurationError

from .capabilities import CAPABILITIES
from .contract import LEVELS

__all__ = ["Claims", "claims_of"]

_IN_FILE = ("reader", "claims", "known-gaps")
_IN_TABLE = ("level", "capabilities")


@dataclass(frozen=True, slots=True)
class Claims:
    """What is claimed; `source` names where, in words. Nothing at all by default."""

    level: int | None = None
    capabilities: tuple[str, ...] = ()
    gaps: Mapping[str, str] = field(default_factory=dict)
    reader: str | None = None
    source: str = ""

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a TOML file. Raises `ConfigurationError` saying what in it means nothing."""
        if path.exists() and not path.is_file():
            raise ConfigurationError(f"the claims {path} are no ordinary file; name a TOML file")
        try:
            form = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"the claims {path} cannot be read: {error.strerror}") from error
        except RecursionError as error:
            raise ConfigurationError(f"the claims {path} are no TOML for this: they are nested too deep") from error
        except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, or an int of too many digits
            raise ConfigurationError(f"the claims {path} are no TOML: {error}") from error
        where = str(path)
        _only_known(form, _IN_FILE, where)
        claimed = _table(form, "claims", where)
        _only_known(claimed, _IN_TABLE, f"[claims] of {where}")
        reader = form.get("reader")
        level, capabilities, gaps, _ = _all_of(
            lambda: _level(claimed.get("level"), where),
            lambda: _capabilities(claimed.get("capabilities", []), where),
            lambda: _gaps(_table(form, "known-gaps", where), where),
            lambda: _expect_a_reader(reader, where),
        )
        return cls(level, capabilities, gaps, reader, where)

    @classmethod
    def from_attribute(cls, claimed: object, owner: str) -> Self:
        """Read the attribute `claims` of `owner`, a factory or a store.

        What is no mapping with `level` or `capabilities` is something of the author's own, and claims nothing. Raises
        `ConfigurationError` for a claim that means nothing.
        """
        if not isinstance(claimed, Mapping) or not any(name in claimed for name in _IN_TABLE):
            return cls()
        where = f"the attribute claims of {owner}"
        _only_known(claimed, _IN_TABLE, where)
        level, capabilities = _all_of(
            lambda: _level(claimed.get("level"), where),
            lambda: _capabilities(claimed.get("capabilities", ()), where),
        )
        return cls(level, capabilities, source=where)

    def over(self, other: Claims) -> Claims:
        """Return these claims, and those of `other` where these say nothing."""
        adds = (self.level is None and other.level) or (not self.capabilities and other.capabilities)
        source = " and ".join(filter(None, [self.source, other.source if adds else ""]))
        return replace(
            self,
            level=other.level if self.level is None else self.level,
            capabilities=self.capabilities or other.capabilities,
            reader=self.reader or other.reader,
            source=source,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return level, capabilities and source in plain JSON types."""
        return {"level": self.level, "capabilities": list(self.capabilities), "source": self.source}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read what `to_dict` made."""
        return cls(form["level"], tuple(form["capabilities"]), source=form["source"])


def claims_of(owner: object, name: str) -> Claims:
    """Return what a factory or a store, called `name`, says in its attribute `claims`, if it lets itself be read."""
    try:
        claimed = getattr(owner, "claims", None)
    except Exception:
        return Claims()
    return Claims.from_attribute(claimed, name)


def _all_of(*parts: Callable[[], Any]) -> list[Any]:
    """Return what each of `parts` returns. Raises one `ConfigurationError` with all that they say is wrong."""
    found, faults = [], []
    for part in parts:
        try:
            found.append(part())
        except ConfigurationError as error:
            faults.append(str(error))
    if faults:
        raise ConfigurationError("\n".join(faults))
    return found


def _expect_a_reader(reader: object, where: str) -> None:
    if reader is not None and not isinstance(reader, str):
        raise ConfigurationError(f"{where}: reader is {reader!r}; write module:function, as text")


def _table(form: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    table = form.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: {name} is {table!r}; write it as a table, under a line [{name}]")
    return table


def _only_known(form: Mapping[Any, Any], known: Iterable[str], where: str) -> None:
    known = list(known)
    unknown = [str(name) for name in form if name not in known]
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ConfigurationError(f"{where}: {unknown[0]!r} means nothing; known are {', '.join(known)}.{hint}")


def _level(level: object, where: str) -> int | None:
    if level is None or (type(level) is int and level in LEVELS):
        return level
    if isinstance(level, str) and level.strip().isdigit() and int(level) in LEVELS:
        raise ConfigurationError(
            f"{where}: the level is the text {level!r}; write a number, without quotes: {int(level)}"
        )
    known = ", ".join(f"{number} ({name})" for number, (name, _) in LEVELS.items())
    raise ConfigurationError(f"{where}: the level {level!r} is none; there are {known}")


def _capabilities(names: object, where: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ConfigurationError(f"{where}: capabilities is {names!r}; write a list of {', '.join(CAPABILITIES)}")
    claimed = [str(name) for name in names]
    _only_known(dict.fromkeys(claimed), CAPABILITIES, f"capabilities in {where}")
    return tuple(dict.fromkeys(claimed))


def _gaps(table: Mapping[str, Any], where: str) -> dict[str, str]:
    known = {clause for _, clauses in LEVELS.values() for clause in clauses}
    gaps = {}
    for name, reason in table.items():
        clause = name.upper()
        if clause in gaps:
            raise ConfigurationError(f"{where}: [known-gaps] names {clause} twice, also as {name!r}; keep one reason")
        if clause not in known:
            hint = " It belongs above the first [table] of the file." if name == "reader" else ""
            raise ConfigurationError(
                f"{where}: [known-gaps] names {name!r}, which is no clause of a store (S01 … W09).{hint}"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigurationError(f"{where}: the known gap {clause} has no reason; write one, as text")
        gaps[clause] = reason.strip()
    return gaps
