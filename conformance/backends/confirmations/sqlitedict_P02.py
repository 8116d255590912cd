"""sqlitedict: a blocking commit() promises that the data is "guaranteed persisted", and syncs nothing."""

import sys

from sqlitedict import SqliteDict

with SqliteDict("runs.sqlite") as runs:
    (synchronous,) = runs.conn.select_one("PRAGMA synchronous")
    said = SqliteDict.commit.__doc__
print(f"PRAGMA synchronous is {synchronous} (0: SQLite never syncs), and commit() says: {' '.join(said.split())}")
sys.exit(0 if synchronous == 0 else 1)
