"""sqlitedict: a commit that fails, as on a full disk, never returns; it should raise an error."""

import os
import resource
import threading

from sqlitedict import SqliteDict

runs = SqliteDict("runs.sqlite")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))  # no file can grow beyond that


def save() -> None:
    runs["key"] = "x" * 100_000
    runs.commit()


saving = threading.Thread(target=save, daemon=True)
saving.start()
saving.join(15)
print("commit() has not returned within 15 s" if saving.is_alive() else "commit() has returned, or raised")
os._exit(0 if saving.is_alive() else 1)
