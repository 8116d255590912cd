"""ZODB: of a commit that loses power before its sync, all pages but the first may be there; then it does not open."""

import sys
from pathlib import Path
from unittest.mock import patch

import ZODB

PAGE = 4096
images = []
database = ZODB.DB("runs.fs")
with database.transaction() as connection:
    connection.root()["run"] = "old"
start = database.getSize()
with (
    patch("ZODB.FileStorage.FileStorage.fsync", lambda number: images.append(Path("runs.fs").read_bytes())),
    database.transaction() as connection,
):
    connection.root()["run"] = "x" * 5 * PAGE
disk = bytearray(images[0])  # what a commit has written before its first sync
disk[start : (start // PAGE + 1) * PAGE] = bytes(PAGE - start % PAGE)
Path("lost.fs").write_bytes(disk)
try:
    ZODB.DB("lost.fs").close()
except Exception as error:
    print(f"it does not open: {type(error).__name__}: {error}")
    sys.exit(0)
print("it opens")
sys.exit(1)
