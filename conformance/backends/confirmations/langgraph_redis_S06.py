"""LangGraph's RedisSaver: a thread whose id has a NUL can be saved and loaded, and cannot be deleted."""

import sys

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.redis import RedisSaver

thread = {"configurable": {"thread_id": "run\0a", "checkpoint_ns": ""}}
checkpoint = {**empty_checkpoint(), "channel_values": {"state": "x"}, "channel_versions": {"state": 1}}
with RedisSaver.from_conn_string(sys.argv[1]) as saver:
    saver.setup()
    saver.put(thread, checkpoint, {}, {"state": 1})
    saved = saver.get_tuple(thread) is not None
    try:
        saver.delete_thread("run\0a")
    except Exception as error:
        print(f"it was loaded: {saved}; delete_thread() raised {type(error).__name__}: {str(error)[:60]!r}")
        sys.exit(0 if saved else 1)
print("it was deleted")
sys.exit(1)
