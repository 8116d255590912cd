"""diskcache: a commit that fails is not rolled back, and then no write ever returns; here in a rollback journal."""

import os
import sqlite3
import threading

from diskcache import Cache, Index

index = Index.fromcache(Cache("index", sqlite_journal_mode="delete", timeout=1))
index["key"] = "value"
reader = sqlite3.connect("index/cache.db", isolation_level=None, check_same_thread=False)
reader.execute("BEGIN")
reader.execute("SELECT * FROM Cache").fetchall()  # a reader, as a backup is, for longer than the time-out
said: list[str] = []


def save() -> None:
    for _ in range(2):
        try:
            index["key"] = "another"
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
            reader.execute("COMMIT")  # the reader has ended when it is tried again


saving = threading.Thread(target=save, daemon=True)
saving.start()
saving.join(20)
print(f"the first write raised {' and '.join(said)}; the second one has not returned: {saving.is_alive()}")
os._exit(0 if said and saving.is_alive() else 1)
