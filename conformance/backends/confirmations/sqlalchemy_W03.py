"""SQLAlchemy: of processes that store a row in a fresh database at once, some fail at `create_all`, and store none."""

import multiprocessing
import sys
from typing import Any

from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert

metadata = MetaData()
runs = Table("runs", metadata, Column("id", Integer, primary_key=True))


def store(path: str, barrier: Any, failed: Any) -> None:
    engine = create_engine(f"sqlite:///{path}")
    barrier.wait()
    try:
        metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(insert(runs).prefix_with("OR IGNORE"), {"id": 1})
    except Exception as error:
        failed.put(str(error).splitlines()[0])


if __name__ == "__main__":
    errors: Any = multiprocessing.Queue()
    for number in range(10):
        together = multiprocessing.Barrier(8)
        each = [multiprocessing.Process(target=store, args=(f"{number}.db", together, errors)) for _ in range(8)]
        for process in each:
            process.start()
        for process in each:
            process.join()
    print(f"80 calls, 8 at a time: {errors.qsize()} failed{'' if errors.empty() else f', as with {errors.get()}'}")
    sys.exit(0 if errors.qsize() else 1)
