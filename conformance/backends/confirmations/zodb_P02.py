"""ZODB: a commit marks itself as valid before its first sync; if that is on the disk, a page of it may be zeros."""

import sys
from pathlib import Path
from unittest.mock import patch

import ZODB

PAGE = 4096
images = []
database = ZODB.DB("runs.fs")
with (
    patch("ZODB.FileStorage.FileStorage.fsync", lambda number: images.append(Path("runs.fs").read_bytes())),
    database.transaction() as connection,
):
    connection.root()["run"] = "x" * 5 * PAGE
disk = bytearray(images[0])  # what a commit has written before its first sync
disk[2 * PAGE : 3 * PAGE] = bytes(PAGE)  # the disk may write its pages in any order
Path("lost.fs").write_bytes(disk)
with ZODB.DB("lost.fs").transaction() as connection:
    found = connection.root()["run"]
print(f"a text of {5 * PAGE} times x was saved, and one with {found.count(chr(0))} zeros in it is loaded")
sys.exit(0 if "\0" in found else 1)
