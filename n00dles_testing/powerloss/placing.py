"""Put the files of a state where the program had them when it was recorded.

What a program keeps may name the place of its files: an absolute link, an index with paths. In another place these
would lead back to what the program has really written, of which nothing is lost.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from .tree import Tree

__all__ = ["clear", "place"]

_ATTEMPTS = 5
"""A thread or a process that a store has left may make something in a folder while that is emptied."""


def place(tree: Tree, folder: str) -> None:
    """Have a folder hold a tree and nothing else. OSError if somebody goes on writing there."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            clear(folder)
            tree.write_to(folder)
        except OSError:
            if attempt == _ATTEMPTS:
                raise
        else:
            return


def clear(folder: str) -> None:
    """Take away a folder with all that is in it, if it is there. OSError if somebody goes on writing there."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            if not os.path.lexists(folder):
                return
        except OSError:
            if attempt == _ATTEMPTS:
                raise
            with suppress(OSError):
                _open_up(folder)
        else:
            return


def _open_up(folder: str) -> None:
    """Let everything in a folder be removed that its owner had closed."""
    os.chmod(folder, stat.S_IRWXU)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _open_up(entry.path)
