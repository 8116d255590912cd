"""DuckDB: a database whose process is killed while it is made, before the first page is written, never opens again."""

import multiprocessing
import resource
import signal
import sys

import duckdb


def create() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # the kernel kills whoever writes to a file now
    duckdb.connect("runs.duckdb")


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=create)
    process.start()
    process.join()
    print(f"the process that made it was killed ({process.exitcode})", end=", ")
    try:
        duckdb.connect("runs.duckdb").close()
    except duckdb.Error as error:
        said = str(error).rpartition('" ')[2]
        print(f"and connect() says: {type(error).__name__}: a file {said}")
        sys.exit(0)
    print("it opens")
    sys.exit(1)
