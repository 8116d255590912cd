"""E08: two nodes of one name are refused, and a group, a branch or a nested pipeline never collides with a node.

Records are kept by name. Two nodes of one name would share a record: the second would be taken for done, with the
first one's output. So they are refused when the pipeline is built, before anything is paid for; and what the executor
itself calls a group or a branch is no name of a node.

Seen in: riverqueue/river PR #1281, and micro/go-micro PR #3128 (the second of two steps with one name can never be
resumed; both refuse them since).

Fix: the author of a pipeline gives an agent that is used twice another name (`writer.named("polish")`). The author of
an executor refuses a pipeline with two nodes of one name, wherever in it they are, and keeps groups and branches out of
the space of nodes' names.
"""

from __future__ import annotations

from .documentation import documented

__all__ = ["CLAUSE"]

CLAUSE = documented(__doc__, without="it is tried by building pipelines, not by disturbing runs")
