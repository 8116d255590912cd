"""get-n00dles: its published release 0.3, with its SQLiteStateStore.

Its `PipelineExecutor` resumes a run from its last checkpoint if the store has its id. It shares the import name of this
project, so it lives in an interpreter of its own; `n00dles_0_3_program` is what is run there.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from conformance.executors import nodes
from conformance.executors.environments import interpreter
from n00dles_testing.plain import Program

PACKAGES = ("get-n00dles==0.3.0",)
IS_APART = True
"""Nothing of ours is installed beside it."""


def stored(folder: Path) -> list[str]:
    """Return the completed nodes of the record, without the records that groups and branches have."""
    file = folder / "runs.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as connection:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone()
        row = connection.execute("SELECT state FROM runs WHERE run_id = 'run'").fetchone() if known else None
    return [name for name in json.loads(row[0])["order"] if name in nodes.FAN_OUT] if row else []


subject = Program(
    interpreter("n00dles_0_3"),
    f"{Path(__file__).with_name('n00dles_0_3_program.py')}:run",
    list(nodes.FAN_OUT),
    needs=nodes.FAN_OUT,
    routes=nodes.ROUTES,
    stored=stored,
    name="n00dles 0.3",
)
