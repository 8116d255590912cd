"""What a disk may keep of operations that were not synced: four answers, from the kindest to the strictest.

A model is four yes-or-no rules. They say which operations a sync forces, and which sets of the others may be missing.
The rules of ext4 are those of `auto_da_alloc` and `data=ordered` (mount(8), ext4(5)); the strict ones are what POSIX
promises and no more. Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014) found stores that need more.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MODELS", "Model"]


@dataclass(frozen=True, slots=True)
class Model:
    """The rules of one file system, or of a family of them.

    `keeps_cache`: only the process is killed, so what it wrote is there, up to some operation.
    `orders_metadata`: names and truncations reach the disk in the order in which they were made, and any sync of a file
    or folder takes along all that were made up to its own last change. Data in new blocks is not there without the
    truncations before it. A failed sync of data takes nothing out of the journal, and leaves the page in the cache.
    `flushes_before_replacing`: a rename over an existing file reaches the disk after the data of a small source, as far
    as that goes to new blocks.
    `sizes_before_data`: a file may have grown while the new bytes are missing; they read as zeros.
    """

    name: str
    about: str
    keeps_cache: bool = False
    orders_metadata: bool = False
    flushes_before_replacing: bool = False
    sizes_before_data: bool = False


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model("kill", "the process is killed and the machine stays up", keeps_cache=True, orders_metadata=True),
        Model("ext4", "ext4 as it is mounted by default", orders_metadata=True, flushes_before_replacing=True),
        Model("journaled", "XFS, or ext4 with noauto_da_alloc", orders_metadata=True, sizes_before_data=True),
        Model("strict", "nothing but what POSIX promises", sizes_before_data=True),
    )
}
"""By name. A store is power-safe if it survives `kill`, `ext4` and `journaled`; `strict` is a grade above."""
