"""get-n00dles: a run that was created is not known until its first save, so a resume can bring other inputs."""

import asyncio
import sys

sys.path.insert(0, f"{sys.prefix}/published")

from n00dles import SQLiteStateStore

store = SQLiteStateStore("runs.db")
asyncio.run(store.load_or_create("run", {"topic": "cats"}))
again = asyncio.run(store.load_or_create("run", {"topic": "dogs"}))
print(f"created with cats, found with {again.inputs['topic']}")
sys.exit(0 if again.inputs["topic"] == "dogs" else 1)
