"""sqlitedict: a power loss can leave a database that does not open, since SQLite is told never to sync."""

import sys

from sqlitedict import SqliteDict

with SqliteDict("runs.sqlite") as runs:
    (synchronous,) = runs.conn.select_one("PRAGMA synchronous")
    said = SqliteDict.commit.__doc__
print(f"PRAGMA synchronous is {synchronous} (0: SQLite never syncs), and commit() says: {' '.join(said.split())}")
sys.exit(0 if synchronous == 0 else 1)
