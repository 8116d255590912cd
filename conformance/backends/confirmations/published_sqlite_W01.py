"""get-n00dles SQLiteStateStore: a run that one process has created is not there for the next one."""

import asyncio
import subprocess
import sys

sys.path.insert(0, f"{sys.prefix}/published")

from n00dles import SQLiteStateStore

topic = sys.argv[1] if len(sys.argv) > 1 else "cats"
created = asyncio.run(SQLiteStateStore("runs.db").load_or_create("run", {"topic": topic}))
if topic == "dogs":  # the next process
    print(f"created with cats by one process, and found with {created.inputs['topic']} by the next")
    sys.exit(0 if created.inputs["topic"] == "dogs" else 1)
sys.exit(subprocess.run([sys.executable, "-P", __file__, "dogs"], check=False).returncode)
