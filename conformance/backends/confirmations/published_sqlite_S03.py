"""get-n00dles SQLiteStateStore: a value that JSON has no form for is saved as its text, and comes back as that."""

import asyncio
import sys
from typing import Any

sys.path.insert(0, f"{sys.prefix}/published")

from n00dles import PipelineContext, SQLiteStateStore

store: Any = SQLiteStateStore("runs.db")
run = PipelineContext("run", {"topic": "cats"})
run.checkpoint("painter", {"image": b"\x00\xff"})
asyncio.run(store.save("run", run))
found = asyncio.run(store.load("run")).completed["painter"]["image"]
print(f"bytes were saved without an error, and {type(found).__name__} is loaded: {found!r}")
sys.exit(0 if found != b"\x00\xff" else 1)
