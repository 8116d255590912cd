"""LMDB: an environment whose first write was cut short, as by a kill or a power loss, never opens again."""

import os
import sys

import lmdb

lmdb.open("runs.lmdb").close()
os.truncate("runs.lmdb/data.mdb", 4096)  # the first of the two pages with which a new file begins
try:
    lmdb.open("runs.lmdb").close()
except lmdb.Error as error:
    print(f"{type(error).__name__}: {str(error).partition(': ')[2]}")
    sys.exit(0)
print("it opens")
sys.exit(1)
