"""DuckDB: a database that loses power while it is made, and its first page with it, never opens again."""

import os
import sys

import duckdb

duckdb.connect("runs.duckdb").close()
os.truncate("runs.duckdb", 0)  # the file is there before its first page is written
try:
    duckdb.connect("runs.duckdb").close()
except duckdb.Error as error:
    said = str(error).rpartition('" ')[2]
    print(f"connect() says: {type(error).__name__}: a file {said}")
    sys.exit(0)
print("it opens")
sys.exit(1)
