"""What is checked: a URL, or a factory (also one that a package registers), and where its data goes.

The suite never works on the user's own data. It asks for *locations*: fresh, empty folders below one temporary folder.
A factory gets the folder as a string; of a `sqlite://` URL a copy is used that lies in the folder. Of a store that
keeps its runs with a server a location is a URL (see `served`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from n00dles.errors import ConfigurationError
from n00dles.stores.urls import open_store

from ..factories import takes_location
from ..interpreters import working_folder
from ..registered import load_registered
from ..temporary_folder import TemporaryFolder
from .claims import Claims, claims_of
from .instance import Instance
from .reader_attribute import reader_of
from .served import import_client, is_served

__all__ = ["StoreTarget", "Workspace", "sqlite_path"]


@dataclass(frozen=True)
class StoreTarget:
    """A way to open the store under test.

    `takes_location` says whether it can be opened on locations of the suite's choice; without, every instance is
    opened in the same way and whether they share data is for the store to know. `note` tells the user what the suite
    does with the target. `claims` is what the factory says of itself, `reader` its attribute of that name, as it is.
    `pool_of_one` opens the same store with one connection, if anybody knows how to ask for that.
    `folder` is where a relative path in `text` begins: other processes are started there, wherever
    a store has gone meanwhile.
    """

    text: str
    takes_location: bool
    note: str
    _open: Callable[[str | None], Any]
    claims: Claims = field(default_factory=Claims)
    reader: Any = None
    folder: str | None = None
    pool_of_one: Callable[[str | None], Any] | None = None

    @classmethod
    def parse(cls, text: str) -> StoreTarget:
        """Read a URL, `module:factory`, `path/to/file.py:factory` or a registered name. Raises `ConfigurationError`."""
        folder = working_folder()  # before anything of the store's is imported
        return replace(_url_target(text) if "://" in text else _factory_target(text), folder=folder)

    async def open(self, location: str | None) -> Instance:
        """Open an instance on a location. Raises what the factory raises; `ConfigurationError` if it gives no store."""
        return await Instance.open(self._open(location))

    def with_a_pool_of_one(self) -> StoreTarget | None:
        """Return the same target, opened with one connection; None if nobody knows how to ask for that."""
        return None if self.pool_of_one is None else replace(self, _open=self.pool_of_one)


_SCHEMES = ("memory", "sqlite")


class Workspace:
    """The temporary folder in which locations are made; removed on exit."""

    def __init__(self, target: str, home: str | None = None) -> None:
        """Make it on the file system of the target, else where temporary files go. Raises `ConfigurationError`.

        A relative path begins in the folder `home`, by default where we are.
        """
        beside = _folder_beside(target, home)
        try:
            self._folder = TemporaryFolder("n00dles-check-", beside)
        except OSError as error:
            raise ConfigurationError(
                f"cannot make a temporary folder in {beside or tempfile.gettempdir()}: {error.strerror}. The check "
                "works on fresh copies there, never on the database itself; name a path in a folder that is writable."
            ) from error
        self.root = self._folder.path

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.remove()


def sqlite_path(url: str) -> Path | None:
    """Return the file that a `sqlite://` URL names, or None for a URL of another scheme."""
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        return None
    return Path(os.path.expanduser(rest.removeprefix("/")))


def _folder_beside(target: str, home: str | None) -> Path | None:
    """Return the nearest existing folder of a database that a URL names: the same file system, for honest timings."""
    path = sqlite_path(target) if "://" in target else None
    if path is None:
        return None
    folder = Path(home or "", path).absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise ConfigurationError(f"{path} cannot be a database: {folder} is a file, not a folder")
    return folder


def _url_target(url: str) -> StoreTarget:
    scheme = url.partition("://")[0]
    if scheme == "memory":
        return StoreTarget(url, False, "memory: every instance is empty at first", lambda _: open_store(url))
    path = sqlite_path(url)
    if path is not None:
        open_store(url)  # opens no file yet, but refuses a URL that means nothing
        if path.is_dir():
            raise ConfigurationError(
                f"{path} is a folder; a SQLite database is a file. Name one: {_below(url, 'runs.db')}"
            )
        if not path.name:
            raise ConfigurationError(
                f"{url} names no file; write sqlite:///relative/path.db or sqlite:////absolute/path.db"
            )
        note = f"checked on fresh copies beside it; {path} itself is neither read nor written"
        return StoreTarget(url, True, note, lambda folder: open_store(f"sqlite:///{folder}/{path.name}"))
    if is_served(url):
        import_client(url)
        note = "each location is a URL"
        return StoreTarget(url, True, note, lambda location: open_store(location or url), pool_of_one=_one_of(url))
    if "{location}" in url:
        note = "{location} in the URL is replaced by fresh temporary folders"
        return StoreTarget(url, True, note, lambda folder: open_store(url.replace("{location}", folder or "")))
    note = "the URL has no {location}: runs with random ids are written where it points, and deleted at the end"
    return StoreTarget(url, False, note, lambda _: open_store(url))


def _one_of(url: str) -> Callable[[str | None], Any]:
    """Return how a store of ours that is served is opened with one connection."""
    option = "pool_size=1" if url.startswith(("postgresql:", "postgres:")) else "max_connections=1"

    def opened(location: str | None) -> Any:
        where = location or url
        return open_store(f"{where}{'&' if '?' in where else '?'}{option}")

    return opened


def _below(url: str, name: str) -> str:
    """Return the URL of a file in the folder that `url` names: the slashes of `sqlite:///` are not part of it."""
    start, folder = url[: len("sqlite:///")], url[len("sqlite:///") :]
    return f"{start}{folder}{'' if not folder or folder.endswith('/') else '/'}{name}"


def _refuse_half_a_url(text: str) -> None:
    """Raise `ConfigurationError` for `sqlite:/runs.db`: no name in a module begins so."""
    scheme, colon, rest = text.partition(":")
    if colon and (rest.startswith("/") or scheme in _SCHEMES):
        meant = f"{scheme}://" if scheme == "memory" else f"{scheme}:///{rest.lstrip('/')}"
        raise ConfigurationError(f"{text!r} is no store: a URL has :// behind its scheme. Did you mean {meant}?")


def _factory_target(text: str) -> StoreTarget:
    from ..targets import load_target

    _refuse_half_a_url(text)
    factory = load_target(text, "store") if ":" in text else load_registered(text)
    claims = claims_of(factory, text)
    reader = reader_of(factory)
    if takes_location(text, factory):
        note, one = "the factory gets fresh temporary folders", getattr(factory, "pool_of_one", None)
        return StoreTarget(text, True, note, factory, claims, reader, pool_of_one=one if callable(one) else None)
    note = "the factory takes no location: whether its stores share their data is found out by probing"
    return StoreTarget(text, False, note, lambda _: factory(), claims, reader)
