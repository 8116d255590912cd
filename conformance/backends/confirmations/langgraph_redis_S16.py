"""LangGraph's RedisSaver: `setup()`, which leaves alone what is there, fails where another process calls it, too."""

import multiprocessing
import sys
from typing import Any

import redis
from langgraph.checkpoint.redis import RedisSaver


def set_up(barrier: Any, failed: Any) -> None:
    with RedisSaver.from_conn_string(sys.argv[1]) as saver:
        barrier.wait()
        try:
            saver.setup()
        except Exception as error:
            failed.put(f"{type(error).__name__}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    errors: Any = multiprocessing.Queue()
    for _ in range(5):
        together = multiprocessing.Barrier(8)
        each = [multiprocessing.Process(target=set_up, args=(together, errors)) for _ in range(8)]
        for process in each:
            process.start()
        for process in each:
            process.join()
        redis.Redis.from_url(sys.argv[1]).flushdb()  # drops the indexes, too
    print(f"40 calls, 8 at a time: {errors.qsize()} failed{'' if errors.empty() else f', as with {errors.get()}'}")
    sys.exit(0 if errors.qsize() else 1)
