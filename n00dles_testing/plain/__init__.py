"""A home-made loop as the subject: plain functions, and a program that calls them and keeps checkpoints of its own.

`functions` has what a user writes; `interception` sees the calls, `writes` the moments at which the loop writes files,
and `place` is the folder of one run. `program` is for a loop that lives in another interpreter.
"""

from __future__ import annotations

from .functions import PlainFunctions
from .nodes import each
from .program import Program

__all__ = ["PlainFunctions", "Program", "each"]
