"""LangGraph's PostgresSaver: after a restart with a clock that was set back, `get_tuple` gives an older checkpoint."""

import sys
import time
from unittest.mock import patch

import langgraph.checkpoint.base.id as ids
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver

thread = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}


def put(saver: PostgresSaver, state: str) -> None:
    checkpoint = {**empty_checkpoint(), "channel_values": {"state": state}, "channel_versions": {"state": 1}}
    saver.put(thread, checkpoint, {}, {"state": 1})


with PostgresSaver.from_conn_string(sys.argv[1]) as saver:
    saver.setup()
    put(saver, "first")
    ids._last_v6_timestamp = None  # what a restart forgets
    earlier = time.time_ns() - 3_600_000_000_000
    with patch("time.time_ns", lambda: earlier):
        put(saver, "second")
    found = saver.get_tuple(thread).checkpoint["channel_values"]["state"]
print(f"the second checkpoint was put, and the {found} one is given")
sys.exit(0 if found == "first" else 1)
