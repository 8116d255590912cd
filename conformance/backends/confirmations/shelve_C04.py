"""shelve on dbm.dumb: where the index cannot be opened to be read, an empty one is written in its place."""

import dbm.dumb
import os
import shelve
import sys
from typing import Any


def opened() -> Any:
    database: Any = dbm.dumb.open("runs")  # noqa: SIM115 - the shelf closes it
    return shelve.Shelf(database)


with opened() as runs:
    runs["key"] = "value"
os.chmod(".", 0o777)
os.chmod("runs.dir", 0o200)  # for once it cannot be opened to be read, as when too many files are open
if os.getuid() == 0:
    os.chown("runs.dir", 65534, -1)
    os.setuid(65534)  # root may read any file
opened().close()
os.chmod("runs.dir", 0o600)
with opened() as runs:
    found = list(runs)
print(f"it was opened and closed without an error; what is left of the one key that was stored: {found}")
sys.exit(1 if found else 0)
