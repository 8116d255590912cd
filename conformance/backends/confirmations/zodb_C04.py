"""ZODB: what is left of a commit that failed on a full disk lands behind the next one; then the file does not open."""

import resource
import sys
from contextlib import suppress

import ZODB
from BTrees.OOBTree import BTree

unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
database = ZODB.DB("runs.fs")
with database.transaction() as connection:
    connection.root()["large"] = BTree(text="x" * 20_000)
    connection.root()["run"] = BTree()
resource.setrlimit(resource.RLIMIT_FSIZE, (database.getSize() + 100, unlimited[1]))  # there is no room for more
with suppress(OSError), database.transaction() as connection:
    connection.root()["run"]["image"] = bytes(300)
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
with database.transaction() as connection:
    connection.root()["run"]["after"] = "the disk has room again"
database.close()
try:
    ZODB.DB("runs.fs").close()
except Exception as error:
    print(f"a commit failed, the next one did not, and then the file does not open: {type(error).__name__}: {error}")
    sys.exit(0)
print("it opens")
sys.exit(1)
