"""get-n00dles InMemoryStateStore: what is changed after the save is changed in the store."""

import asyncio
import sys

sys.path.insert(0, f"{sys.prefix}/published")

from n00dles import InMemoryStateStore, PipelineContext

store = InMemoryStateStore()
run = PipelineContext("run", {"topic": "cats"})
asyncio.run(store.save("run", run))
run.checkpoint("never saved", "output")
stored = asyncio.run(store.load("run"))
seen = stored.completed if stored else {}
print(f"saved without outputs, loaded with {seen}")
sys.exit(0 if seen else 1)
