"""get-n00dles SQLiteStateStore: a save that was cancelled, and had done nothing, is done a moment later."""

import asyncio
import sqlite3
import sys

sys.path.insert(0, f"{sys.prefix}/published")

from n00dles import PipelineContext, SQLiteStateStore

store = SQLiteStateStore("runs.db")
other = sqlite3.connect("runs.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")  # another writer, for a second


async def main() -> tuple[bool, bool]:
    saving = asyncio.create_task(store.save("run", PipelineContext("run", {"topic": "cats"})))
    await asyncio.sleep(1)
    saving.cancel()
    await asyncio.gather(saving, return_exceptions=True)
    before = await store.load("run") is not None
    other.execute("COMMIT")
    await asyncio.sleep(2)
    return before, await store.load("run") is not None


before, after = asyncio.run(main())
print(f"when the cancelled save had ended, it was stored: {before}; two seconds later: {after}")
sys.exit(0 if not before and after else 1)
