"""Django's database cache, on SQLite: a table of values.

Used as its documentation says (https://docs.djangoproject.com/en/stable/topics/cache/#database-caching): the table is
made by `createcachetable`, a value that must not expire is set with `timeout=None`, and `MAX_ENTRIES` is raised, since
a fuller cache throws entries away. `add` creates a run, since it stores nothing if the key is there. A connection is
closed after each call, as Django does at the end of a request. The adapter adds one database to Django's settings for
each location.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

from n00dles import PipelineContext

from . import LAST_WRITER_WINS, SQLITE_AS_IT_COMES
from .records import Record, RecordStore

PACKAGES = ("django",)
SERVER = None
_NO_COMPARE = "a cache has no way to set a value only if it is still the one that was read"
_SILENT = (
    "where the database refuses, `set` stores nothing and says nothing: its source allows it to fail silently, and its "
    "documentation says that no cache is for permanent storage"
)
GAPS = (
    SQLITE_AS_IT_COMES
    | dict.fromkeys(LAST_WRITER_WINS, _NO_COMPARE)
    | dict.fromkeys(("S13", "S16", "C04", "C05", "W01"), _SILENT)
)
_TABLE = "runs"
_setting_up = threading.Lock()


class CacheStore(RecordStore):
    """A run is an entry of the cache."""

    def __init__(self, path: str) -> None:
        self._alias = path
        with ThreadPoolExecutor(1) as thread:  # Django refuses to open a database where an event loop runs
            thread.submit(_set_up, path).result()
        from django.core.cache.backends.db import DatabaseCache

        self._cache: Any = DatabaseCache(_TABLE, {"TIMEOUT": None, "OPTIONS": {"MAX_ENTRIES": 1_000_000}})
        self._cache.cache_model_class._meta.database = path

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        ctx = PipelineContext(run_id, inputs)
        with self._request():
            if self._cache.add(run_id, ctx.to_json(), timeout=None):
                return ctx
        record = self.read(run_id)
        return ctx if record is None else PipelineContext.from_dict(record)

    def read(self, run_id: str) -> Record | None:
        with self._request():
            text = self._cache.get(run_id)
        return None if text is None else cast(Record, json.loads(text))

    def write(self, run_id: str, record: Record) -> None:
        with self._request():
            self._cache.set(run_id, json.dumps(record), timeout=None)

    def remove(self, run_id: str) -> None:
        with self._request():
            self._cache.delete(run_id)

    @contextmanager
    def _request(self) -> Iterator[None]:
        """Close the connection of this thread at the end, as Django does at the end of a request."""
        from django.db import connections

        try:
            yield
        finally:
            connections[self._alias].close()


class Router:
    """Django's way to send a model to a database: each cache has its own."""

    def db_for_read(self, model: Any, **_: Any) -> Any:
        return getattr(model._meta, "database", None)

    db_for_write = db_for_read

    def allow_migrate_model(self, *_: Any) -> bool:
        return True


def _set_up(path: str) -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections

    with _setting_up:
        if not settings.configured:
            settings.configure(DATABASE_ROUTERS=[f"{__name__}.Router"])
            django.setup()
        if path not in connections.settings:
            database = {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
            connections.settings = connections.configure_settings({**connections.settings, path: database})
    call_command("createcachetable", _TABLE, database=path, verbosity=0)
    connections[path].close()


def open_store(location: str) -> CacheStore:
    """Open the cache on a file of the location."""
    return CacheStore(f"{location}/cache.sqlite3")
