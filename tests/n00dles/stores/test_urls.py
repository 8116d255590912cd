"""From the URL of a store to the store."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from n00dles import ConfigurationError, InMemoryStateStore, SQLiteStateStore
from n00dles.stores import open_store, urls


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///runs.db", "runs.db"),
        ("sqlite:///folder/runs.db", "folder/runs.db"),
        ("sqlite:////var/lib/runs.db", "/var/lib/runs.db"),
        ("sqlite:///", "n00dles_state.db"),
        ("sqlite://", "n00dles_state.db"),
        ("sqlite:///with space.db", "with space.db"),
    ],
)
def test_a_sqlite_url_names_a_path(url: str, path: str) -> None:
    store = open_store(url)

    assert isinstance(store, SQLiteStateStore)
    assert store.path == path


def test_a_tilde_is_the_home_folder() -> None:
    store = open_store("sqlite:///~/runs.db")

    assert isinstance(store, SQLiteStateStore)
    assert store.path == str(Path.home() / "runs.db")


def test_memory_is_a_new_store_each_time() -> None:
    one, other = open_store("memory://"), open_store("memory://")

    assert isinstance(one, InMemoryStateStore)
    assert one is not other


def test_a_store_object_is_taken_as_it_is() -> None:
    store = InMemoryStateStore()

    assert open_store(store) is store


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("runs.db", r"'runs\.db' is no URL of a store; write it as in 'sqlite:///"),
        ("", "is no URL of a store"),
        ("sqlite:/runs.db", "is no URL of a store"),
        ("sqlit:///runs.db", r"no store is known for sqlit://.*Did you mean sqlite://\?"),
        ("nosuch://x", r"known are memory://, .*sqlite://.*entry point of the group 'n00dles\.state_stores'"),
        ("sqlite://runs.db", r"names a host; write sqlite:///runs\.db .* or sqlite:////runs\.db"),
        ("sqlite:///:memory:", "cannot be resumed from; use memory://"),
        ("memory://name", "takes nothing behind it"),
    ],
)
def test_a_url_that_names_no_store_says_what_to_write(url: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        open_store(url)


# Schemes of other packages.


class Theirs:
    def __init__(self, url: str) -> None:
        self.url = url

    def load_or_create(self, run_id: str, inputs: Any) -> Any: ...

    def save(self, run_id: str, ctx: Any) -> None: ...

    def delete(self, run_id: str) -> None: ...


def not_a_store(url: str) -> object:
    return object()


def register(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    entry = EntryPoint("theirs", value, urls.ENTRY_POINT_GROUP)
    monkeypatch.setattr(urls, "entry_points", lambda *, group: [entry] if group == urls.ENTRY_POINT_GROUP else [])


def test_a_registered_scheme_gets_the_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, f"{__name__}:Theirs")

    store: Any = open_store("theirs://host:1/x?y=z")

    assert store.inner.url == "theirs://host:1/x?y=z"


@pytest.mark.parametrize("value", ["no_such_module_at_all:Store", f"{__name__}:NoSuchName"])
def test_a_registered_scheme_that_cannot_be_imported_says_which(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    register(monkeypatch, value)

    with pytest.raises(ConfigurationError, match=r"the store of theirs:// \(.*\) cannot be imported: \w+Error"):
        open_store("theirs://x")


def test_a_registered_scheme_that_gives_no_store_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, f"{__name__}:not_a_store")

    with pytest.raises(ConfigurationError, match="has no method load_or_create, save, delete"):
        open_store("theirs://x")


def test_a_registered_scheme_cannot_take_the_place_of_a_built_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("sqlite", f"{__name__}:Theirs", urls.ENTRY_POINT_GROUP)
    monkeypatch.setattr(urls, "entry_points", lambda *, group: [entry])

    assert isinstance(open_store("sqlite:///runs.db"), SQLiteStateStore)
