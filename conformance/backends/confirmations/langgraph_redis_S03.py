"""LangGraph's savers: an integer of more than 64 bits cannot be saved, and the error does not name its channel."""

import sys

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.redis import RedisSaver

thread = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}
checkpoint = {**empty_checkpoint(), "channel_values": {"total": 2**64}, "channel_versions": {"total": 1}}
try:
    with RedisSaver.from_conn_string(sys.argv[1]) as saver:
        saver.setup()
        saver.put(thread, checkpoint, {}, {"total": 1})
except Exception as error:
    print(f"put() raised {type(error).__name__}: {error}")
    sys.exit(1 if "total" in str(error) else 0)
print("it was saved")
sys.exit(1)
