"""Kills and faults at the calls that a piece of code makes to the outside: files, databases, connections.

No tracing of system calls and no preloaded library: Python itself tells of each call of a C function
(`sys.setprofile`), and a profile function may end the process there, or raise in its place. `io_calls` says which calls
count, `seam` hears them one by one, `errors` knows what each raises when the disk is full, and `limits` has the kernel
refuse for real.

Not seen is what a C function calls without Python: SQLite's own writes within one `execute`, or a method that is hidden
in a `functools.partial`. Of SQLite, the statements are seen all the same.
"""

from __future__ import annotations

from .errors import FAULTS, error_of, faults_of
from .io_calls import IOCall, Kind, io_call
from .limits import dying_at_size, limited_files, limited_size
from .moments import can_fail, can_lose_its_reply, in_transaction, undo
from .seam import Seam, When
from .tcp_faults import (
    Blackhole,
    CutAfterBytes,
    CutWhenIdle,
    Delay,
    Drip,
    Fault,
    LoseReply,
    LoseRequest,
    RefuseConnections,
    Stall,
)
from .tcp_proxy import ProxyError, TCPProxy, VacuousFaultError

__all__ = [
    "FAULTS",
    "Blackhole",
    "CutAfterBytes",
    "CutWhenIdle",
    "Delay",
    "Drip",
    "Fault",
    "IOCall",
    "Kind",
    "LoseReply",
    "LoseRequest",
    "ProxyError",
    "RefuseConnections",
    "Seam",
    "Stall",
    "TCPProxy",
    "VacuousFaultError",
    "When",
    "can_fail",
    "can_lose_its_reply",
    "dying_at_size",
    "error_of",
    "faults_of",
    "in_transaction",
    "io_call",
    "limited_files",
    "limited_size",
    "undo",
]
