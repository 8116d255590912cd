"""E09: a resume with other inputs or another pipeline is an error that names the difference, or a full correct run.

Completed outputs were computed from the first inputs by the first pipeline. A resume under other inputs, or with nodes
renamed, dropped, reordered or retyped, must not mix the two, and above all must not report success with nothing run.
Steps behind the completed ones may change: that is how a fault is repaired and the run continued.

Seen in: strands-agents/harness-sdk PR #4240 (after a deploy that renames nodes nothing is run, and success reported);
dbos-inc/dbos-transact-ts PR #726 (a used id with other inputs silently gives the first run's result).

Fix: the author of a pipeline resumes without inputs, or uses a new run id. The author of an executor stores the inputs
and the shape of the pipeline with the first save, compares at each resume, and names what differs.
"""

from __future__ import annotations

from .documentation import documented

__all__ = ["CLAUSE"]

CLAUSE = documented(__doc__, without="it is tried by changing the pipeline between two lives, not by disturbing runs")
