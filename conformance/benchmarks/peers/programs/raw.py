"""raw limit: Python's sqlite3, one INSERT and a commit for each node.

Resumed by a SELECT of all rows and `json.loads` of each.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

PACKAGES = ()
DURABILITY = "write-ahead log, synchronous=FULL"


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.connection = sqlite3.connect(folder / "raw.sqlite", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        for run_id in ("warm", "measured"):
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {run_id} (id INTEGER PRIMARY KEY, output TEXT)")

    def build(self, nodes: int) -> int:
        return nodes

    def run(self, nodes: int, run_id: str) -> None:
        self._go_on(0, nodes, run_id)

    def resume(self, nodes: int, run_id: str) -> None:
        rows = self.connection.execute(f"SELECT output FROM {run_id} ORDER BY id").fetchall()
        self._go_on(len([json.loads(text) for (text,) in rows]), nodes, run_id)

    def _go_on(self, first: int, nodes: int, run_id: str) -> None:
        execute = self.connection.execute
        for number in range(first, nodes):
            text = json.dumps(self.output(number))
            execute("BEGIN IMMEDIATE")
            execute(f"INSERT INTO {run_id} (output) VALUES (?)", (text,))
            execute("COMMIT")

    def kept(self, run_id: str) -> int:
        (count,) = self.connection.execute(f"SELECT count(DISTINCT output) FROM {run_id}").fetchone()
        return int(count)

    def close(self) -> None:
        self.connection.close()
