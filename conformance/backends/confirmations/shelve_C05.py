"""shelve on dbm.dumb: where the file of values cannot be opened to be read, it is emptied, without an error."""

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
os.chmod("runs.dat", 0o200)  # for once it cannot be opened to be read, as when too many files are open
if os.getuid() == 0:
    os.chown("runs.dat", 65534, -1)
    os.setuid(65534)  # root may read any file
opened().close()
os.chmod("runs.dat", 0o600)
try:
    with opened() as runs:
        print(f"the value is {runs['key']!r}")
except Exception as error:
    print(f"it was opened and closed without an error; the value that was stored: {type(error).__name__}: {error}")
    sys.exit(0)
sys.exit(1)
