"""LangGraph's RedisSaver, on RedisJSON 2.8: some floats come back as their neighbour."""

import sys

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.redis import RedisSaver

thread = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}
put = [number / 7 - 20 for number in range(300)]  # as an embedding has
checkpoint = {**empty_checkpoint(), "channel_values": {"vector": put}, "channel_versions": {"vector": 1}}
with RedisSaver.from_conn_string(sys.argv[1]) as saver:
    saver.setup()
    saver.put(thread, checkpoint, {}, {"vector": 1})
    got = saver.get_tuple(thread).checkpoint["channel_values"]["vector"]
others = [(before, after) for before, after in zip(put, got, strict=True) if before != after]
print(f"of 300 floats {len(others)} are others{f', as {others[0][1]!r} for {others[0][0]!r}' if others else ''}")
sys.exit(0 if others else 1)
