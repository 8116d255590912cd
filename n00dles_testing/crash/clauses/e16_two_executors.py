"""E16: of two executors on one run one proceeds, and the other gets a typed error or waits.

Two workers take the same run from a queue, or one is thought dead and wakes up. Whatever they do, no node is called
twice, and neither overwrites what the other has stored.

Seen in: NousResearch/hermes-agent #80921 (many processes that resume one parked run have its effect as many times);
danielgerlag/workflow-es #30 (two instances take the same step from the list, and both run it); langchain-ai/langgraph
#8796 (two workers fork one run, and a conformance suite of one writer does not see it).

Fix: the operator lets workers take a run under a lease, where the store offers one. The author of an executor takes the
lease before the first call, renews it, and stops when it is lost; the author of a store refuses a save from an older
revision.
"""

from __future__ import annotations

from .documentation import documented

__all__ = ["CLAUSE"]

CLAUSE = documented(__doc__, without="it is tried with two executors at once, not by disturbing one")
