"""sqlitedict: after a commit that met another process's lock, nothing that is tried again ever returns."""

import os
import sqlite3
import threading

from sqlitedict import SqliteDict

runs = SqliteDict("runs.sqlite")
other = sqlite3.connect("runs.sqlite", isolation_level=None)
other.execute("BEGIN")
other.execute("SELECT * FROM unnamed").fetchall()  # a reader, as a backup is, for longer than the 5 s that SQLite waits


def save() -> None:
    runs["key"] = "value"
    runs.commit()


first = threading.Thread(target=save, daemon=True)
first.start()
first.join(15)
other.execute("COMMIT")
again = threading.Thread(target=save, daemon=True)
again.start()
again.join(10)
print(f"the commit hangs: {first.is_alive()}; tried again, with the lock free, it hangs: {again.is_alive()}")
os._exit(0 if first.is_alive() and again.is_alive() else 1)
