"""Every clause of the contract in one sentence, checked by this release or not. An id never changes its meaning."""

from __future__ import annotations

__all__ = ["SENTENCES"]

SENTENCES: dict[str, str] = {
    "S01": "`load_or_create` of an unknown run gives exactly the inputs passed and no outputs; of a known run what was "
    "last acknowledged, and leaves the record as it is, whatever inputs are passed.",
    "S02": "What was saved comes back: outputs, completion order, inputs; a `None` output is distinct from no output, "
    "an empty container from a missing one.",
    "S03": "A value that `save` accepts comes back equal in value and JSON type, also in a fresh process; any other is "
    "refused, naming the path.",
    "S04": "A Pydantic model comes back as a plain dict equal to its JSON dump: never as text, never as `None`, no "
    "field dropped.",
    "S05": "What the caller does to an object that it saved, or loaded, changes nothing stored.",
    "S06": "Runs are apart: ids that differ only by case, space, Unicode form, wildcard, prefix or path are different "
    "runs, or refused; none reaches outside the store.",
    "S07": "`delete` removes that run and no other, all of it, may be repeated, and no late save brings it back.",
    "S08": "A save from an older revision is refused (without revisions it may merge); an acknowledged node never "
    "disappears.",
    "S09": "Overlapping saves of one run through one store object leave every acknowledged node in the record.",
    "S10": 'A damaged record raises a typed error, never "first run", and is not overwritten.',
    "S11": "Outputs of 100 KB to 64 MB come back equal, or are refused naming size and limit; the record before stays.",
    "S12": "The newest record is decided by sequence, not by a clock.",
    "S13": "Usable from another task, event loop, thread, and after a fork, or a typed error at once.",
    "S14": "A cancelled `save` is done or not done, never late.",
    "S15": "Over many cycles of open, use and close nothing piles up: descriptors, threads, connections, files.",
    "S16": "Eight processes that open a fresh location at once all succeed.",
    "S17": "A generated sequence of operations gives the same on the store and on an independent model.",
    "S18": "The cost of a save does not grow with the number of nodes already saved.",
    "C01": "Acknowledged saves are there after close and reopen, and in another process.",
    "C02": "Acknowledged saves are there after SIGKILL right after the acknowledgement.",
    "C03": "A SIGKILL at any point inside `load_or_create`, `save` or `delete` leaves the old state or the new, whole.",
    "C04": "A fault at any write, sync or open is raised as an error; the record before stays, and the store goes on.",
    "C05": "Fail before the commit: nothing changed. Fail after it: saving again succeeds and changes nothing twice.",
    "C06": "A kill during the recovery from a kill is survived as well.",
    "P01": "In every legal disk state after a power loss the store opens and loads without corruption.",
    "P02": "In every such state each acknowledged save is there, and nothing that was never saved.",
    "P03": "After a failed sync the store does not acknowledge what only the page cache holds.",
    "W01": "Many processes, different runs, one location: every acknowledged save is there, and waiting is bounded.",
    "W02": "Many clients, one run: no update is lost; the loser gets a conflict, or its outputs are merged.",
    "W03": "Many callers create one run with different inputs: one wins, and all see its inputs.",
    "W04": "A worker that was stopped and goes on after another has taken over is refused.",
    "W05": "The server is killed and restarted: acknowledged saves are there, errors are typed, the store works again.",
    "W06": "The connection is cut, delayed or loses a reply: a typed error or a retry in time, never a wrong reply.",
    "W07": "Leases, where offered: one holder at a time; an old one is fenced.",
    "W08": "A pool of one connection is enough: none is held while a node runs.",
    "W09": "`prune`, where offered, removes only finished runs older than the limit, whole.",
    "E01": "A node's output is in the store before any node that depends on it starts.",
    "E02": "Killed at any point, any number of times: no node whose save was acknowledged is called again.",
    "E03": "At most the nodes in flight at the kill are called again, each attempt with the same idempotency key.",
    "E04": "The resumed run gives the same output as the undisturbed one.",
    "E05": "Each node gets the same arguments, of the same types, and each request is byte-identical; the same route "
    "is taken; tokens, attempts and traces add up over all lives.",
    "E06": "Fan-out: only unfinished members run again, and the join runs once with all inputs.",
    "E07": "Branch: the routed node is not called again when the kill falls between its record and the branch's own.",
    "E08": "Two nodes of one name are refused when the pipeline is built; a group or branch collides with no node.",
    "E09": "The same run id with other inputs, or a changed pipeline, is an error that names the difference, or a full "
    "correct run.",
    "E10": "A failing node leaves the earlier checkpoints; a resume runs it and what follows.",
    "E11": "Retries and fallbacks go on across a kill; a node that kills its process each time ends as failed.",
    "E12": "A store fault is not a node fault: no second call, no fallback.",
    "E13": "After a cancellation or a timeout nothing is running or saving, and the record loads and resumes.",
    "E14": "When a member of a fan-out fails, the others end before `run` returns, and what they finished is kept.",
    "E15": "An output that cannot be stored fails its node before anything downstream runs.",
    "E16": "Two executors on one run: one proceeds, the other gets a typed error or waits.",
    "E17": "A finished run returns its stored result and calls nothing.",
    "E18": "A resume can itself be killed and resumed, any number of times.",
}
