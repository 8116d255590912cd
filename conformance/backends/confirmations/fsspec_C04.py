"""fsspec, local files: with /tmp on another disk, a commit that fails leaves half a file for the old one."""

import os
import resource
import sys
import tempfile

import fsspec

files = fsspec.filesystem("file")
with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # another disk than that of temporary files
    path = f"{folder}/run.json"
    files.pipe_file(path, b"old")
    try:
        with files.transaction:
            with files.open(path, "wb") as file:
                file.write(b"x" * 100_000)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))  # there is no room for more
    except OSError as error:
        print(f"the transaction raised {type(error).__name__}", end=", ")
    left = os.path.getsize(path)
print(f"and of the 3 bytes that were there before, or the 100000 that were written, {left} are left")
sys.exit(0 if left not in (3, 100_000) else 1)
