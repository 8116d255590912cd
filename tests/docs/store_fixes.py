"""What the author of a store does about each clause, for the pages that show the contract."""

from __future__ import annotations

__all__ = ["FIXES"]

FIXES: dict[str, str] = {
    "S01": "create with one statement that does nothing if the run is there (`INSERT … ON CONFLICT DO NOTHING`, "
    "`O_EXCL`), then read and return what is stored. Take an error while reading for an error, not for a new run.",
    "S02": "keep each output as JSON text, and ask `node in completed`, never whether its output is true. Keep the "
    "order in a column of its own. Read to the last page, and write every batch.",
    "S03": "encode strictly (`allow_nan=False`, no `default=`), decode what you have encoded, and refuse to save if it "
    "is not equal. n00dles' own check, `n00dles.serialization`, names the path.",
    "S04": "store `model_dump(mode='json')`, which the context already holds. Give no `default=str` to the encoder.",
    "S05": "encode when `save` is called, before the first await, and decode anew for each load.",
    "S06": "compare ids byte by byte (a binary collation, no `LIKE`), and never make a path of one: hash it whole, or "
    "escape it. Refuse what you cannot keep.",
    "S07": "delete all rows of a run in one transaction, found by equality. Give each record an incarnation that a "
    "save has to match, so that a late save finds nothing.",
    "S08": "let the save write only where the revision is still the one that was loaded (`… WHERE revision = ?`) "
    "and look how many rows it changed; if none, raise `StaleContextError`.",
    "S09": "take a lock for each run inside of the store, or do the read and the write of a save in one transaction.",
    "S10": "keep a checksum with the record, and raise `CorruptCheckpointError` for what does not decode or match. "
    "Leave the record as it is, for somebody to look at.",
    "S11": "know the limit of the backend (a row, a value, a packet), and either split behind it or refuse before "
    "anything is written, with both sizes in the message.",
    "S12": "number records by a counter that the database increments. A time stamp is for people.",
    "S13": "make connections where they are used: look them up by process, thread and loop, and open anew in a fork. "
    "What cannot be shared raises before it has done anything.",
    "S14": "do a save as one call that a cancellation cannot halve, wait for it also when cancelled, and then raise.",
    "S15": "close what is opened in a `finally` or by a context manager, also after an error; remove temporary files "
    "and ended threads; keep pools bounded.",
    "S16": "make tables and folders by statements that may be repeated (`IF NOT EXISTS`, `exist_ok=True`) in one "
    "transaction that is tried again while the database is busy.",
    "S17": "the story has the shortest sequence of operations that shows it. Play it with the command below it, and "
    "look which of the clauses above it breaks.",
    "S18": "write only what is new since the last save, in a row for each node, rather than the whole record.",
    "C01": "commit before `save` returns. Nothing that was acknowledged may be in a buffer of the process.",
    "C02": "flush and commit before `save` returns; acknowledge after it, and do nothing in the background.",
    "C03": "write all of a save in one transaction; in files, write a temporary one and rename it over the old.",
    "C04": "let no error of the system pass: raise it as `StateStoreError`, roll back, and begin the next call on a "
    "connection that works. Look at how much a write has written.",
    "C05": "keep the revision with the record, and compare: the same revision with the same content is a save whose "
    "reply was lost, and counts as done.",
    "C06": "make the recovery such that it can be begun again: it changes nothing before it has written what it needs.",
    "P01": "write in place only what a log or a journal covers, and have that synced before. Make an entry valid by a "
    "checksum, or by something that is written after the rest was synced.",
    "P02": "sync the file and, after a creation, a rename or a removal, its folder, before `save` returns. Sync what a "
    "repair has written before its journal is removed. For SQLite "
    "[choose the settings](../how-to/choose-sqlite-settings.md).",
    "P03": "take a failed sync for final: write the data again, to a new file, or open the database anew. A second "
    "`fsync` succeeds and has written nothing.",
    "W01": "give each transaction a time to wait for its turn (`busy_timeout`, `lock_timeout`), begin it as a writing "
    "one, and try again what was refused for want of a turn.",
    "W02": "do the comparison and the write in one atomic step of the server: one statement, a script, or a lock that "
    "all clients respect.",
    "W03": "create by a statement with a unique key, and let those that come second read what the first has stored.",
    "W04": "let each save match the revision and the incarnation that it was loaded at, in the same statement.",
    "W05": "have the server sync what it acknowledges, drop connections that are broken, and open new ones.",
    "W06": "set limits for connecting and for each reply; after one is over, drop the connection, since the reply may "
    "still come and would be taken for that of the next request.",
    "W07": "take a lease by an atomic step, by the clock of the server; renew and release only what the token says is "
    "yours.",
    "W08": "take a connection for one call, and give it back before the call returns.",
    "W09": "select by status and by the time of the last change in the statement that deletes, and delete all rows of "
    "a run with it.",
}
