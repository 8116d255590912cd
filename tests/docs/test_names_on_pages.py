"""Names in backticks on the page for authors of stores: what a page calls by name has to exist under that name."""

from __future__ import annotations

import builtins
import importlib
import re
from collections.abc import Iterator

import pytest

import n00dles
import n00dles.records
from n00dles import errors
from n00dles.stores import base, claims, leases
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "how-to" / "write-a-store.md"
OWNERS = {"ctx": n00dles.PipelineContext, "context": n00dles.PipelineContext}
# Words of the page that are no names of ours: parameters, locals, libraries, commands.
NOT_OURS = {"ctx", "context", "snapshot", "batch", "inputs", "run_id", "fsync", "dynamo", "show", "ttl", "sqlite3"}
LIBRARIES = {"n00dles", "asyncio", "fcntl", "sqlite3", "subprocess", "threading"}
FIELDS = {"run_id", "inputs", "completed", "order"}
"""What every store keeps of a context."""
METHODS = {"load_or_create", "save", "delete", "load", "list_runs", "prune", "server_time", "unmade", "aclose"}
METHODS |= {"acquire", "renew", "release", "list_leases", "claim"}


def quoted() -> Iterator[str]:
    prose = re.sub(r"```.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    yield from dict.fromkeys(re.findall(r"`([^`]+)`", prose))


def names() -> list[str]:
    """Return the dotted names of the page: `ctx.begin_save(snapshot)` is the name ctx.begin_save."""
    found = [re.match(r"(?:\w+ = )?([A-Za-z_][\w.]*)(?=\(|$)", text) for text in quoted()]
    return [match[1] for match in found if match]


def exists(name: str) -> bool:
    head, _, rest = name.partition(".")
    if head in OWNERS and rest:
        return hasattr(OWNERS[head], rest)
    if head in LIBRARIES and rest:
        return _imports(name)
    places = (n00dles, n00dles.records, base, claims, errors, builtins)
    owner = next((getattr(place, head) for place in places if hasattr(place, head)), None)
    if owner is not None:
        return not rest or hasattr(owner, rest)
    if head in FIELDS and not rest:
        return hasattr(n00dles.PipelineContext, head)
    if head in METHODS:
        kinds = [*vars(base).values(), *vars(leases).values(), *vars(claims).values()]
        return any(hasattr(kind, head) for kind in kinds if isinstance(kind, type))
    return any(head in getattr(kind, "_fields", ()) for kind in vars(n00dles.records).values())


def _imports(name: str) -> bool:
    module, _, last = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), last) or importlib.import_module(name) is not None
    except ImportError:
        return False


@pytest.mark.parametrize("name", [name for name in names() if name not in NOT_OURS])
def test_a_name_on_the_page_exists(name: str) -> None:
    assert exists(name)


def test_the_page_is_really_read() -> None:
    assert {"ctx.begin_save", "SaveBatch", "head", "n00dles.records", "StaleContextError", "load_or_create"} <= {
        *names()
    }


@pytest.mark.parametrize(
    "name", ["header", "ctx.begin_saving", "SaveBundle", "n00dles.record", "n00dles.stores.Lesson", "load_and_create"]
)
def test_a_name_that_there_is_not_is_found_out(name: str) -> None:
    assert not exists(name)
