"""diskcache: a write to an index whose files cannot be opened never returns; it should raise an error."""

import os
import threading

from diskcache import Index

os.chmod(".", 0o755)
index = Index("index")
index.cache.close()
os.chmod("index", 0o555)  # SQLite cannot make its log there
if os.getuid() == 0:
    os.setuid(65534)  # root may write to any folder


def save() -> None:
    index["key"] = "value"


saving = threading.Thread(target=save, daemon=True)
saving.start()
saving.join(15)
print("it has not returned within 15 s" if saving.is_alive() else "it has returned, or raised")
os._exit(0 if saving.is_alive() else 1)
