"""SQLAlchemy ORM on SQLite: a mapped class with a version counter.

Used as its documentation recommends for writers that must not overwrite each other
(https://docs.sqlalchemy.org/en/21/orm/versioning.html): `version_id_col`, and a `Session` in a `with` block for each
unit of work. SQLite has its default settings. The adapter adds the comparison of revisions, and loads again when
another process has created the run at the same moment.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from n00dles import PipelineContext, StaleContextError

from . import SQLITE_AS_IT_COMES
from .records import Record, TransactionalStore

PACKAGES = ("sqlalchemy",)
SERVER = None
GAPS = SQLITE_AS_IT_COMES | {
    "C04": "what SQLite cannot open for writing it opens for reading, as it says, and the pool keeps that connection"
}


class ORMStore(TransactionalStore):
    """A run is a row."""

    def __init__(self, url: str) -> None:
        from sqlalchemy import create_engine

        self._engine = create_engine(url)
        self._run = _mapped()
        self._run.metadata.create_all(self._engine)
        self._local = threading.local()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        from sqlalchemy.orm import Session
        from sqlalchemy.orm.exc import StaleDataError

        try:
            with Session(self._engine) as self._local.session, self._local.session.begin():
                yield
        except StaleDataError as error:
            raise StaleContextError(f"another has written at the same moment: {error}. Load the run again.") from error

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        from sqlalchemy.exc import IntegrityError

        try:
            return super().load_or_create(run_id, inputs)
        except IntegrityError:
            return super().load_or_create(run_id, inputs)

    def read(self, run_id: str) -> Record | None:
        self._local.row = self._local.session.get(self._run, run_id)
        return None if self._local.row is None else cast(Record, json.loads(self._local.row.record))

    def write(self, run_id: str, record: Record) -> None:
        if self._local.row is None:
            self._local.session.add(self._run(id=run_id, record=json.dumps(record)))
        else:
            self._local.row.record = json.dumps(record)

    def remove(self, run_id: str) -> None:
        row = self._local.session.get(self._run, run_id)
        if row is not None:
            self._local.session.delete(row)

    def close(self) -> None:
        self._engine.dispose()


def _mapped() -> Any:
    from sqlalchemy import Column, Integer, String, Text
    from sqlalchemy.orm import declarative_base

    def column(kind: Any, **options: Any) -> Any:
        return Column(kind, nullable=False, **options)

    version = column(Integer)
    body = {"__tablename__": "runs", "id": column(String, primary_key=True), "record": column(Text), "version": version}
    return type("Run", (declarative_base(),), {**body, "__mapper_args__": {"version_id_col": version}})


def open_store(location: str) -> ORMStore:
    """Open the database in a file of the location."""
    return ORMStore(f"sqlite:///{location}/runs.db")
