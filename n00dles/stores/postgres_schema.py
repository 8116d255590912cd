"""The tables of the PostgreSQL store, and how they come to be, also when many processes start at once.

Texts are kept as the bytes of their UTF-8, and JSON as text: `jsonb` would change numbers and drop double keys, `text`
refuses NUL, and either depends on the encoding of the database.

A save appends one row to `saves` and changes none, so it costs little more than the row: the row of a run is changed
when its status, its pipeline or its signature does. Whoever saves holds the row of the save before for that moment, and
whoever deletes holds the last one, so that nothing is left behind a run that was deleted.

What changes a run are functions in the database: one statement, one round trip, one commit, planned once a session
although nothing is prepared by the client, as a transaction pooler demands.
"""

# ruff: noqa: S608 - the statements are put together from texts of this file

from __future__ import annotations

from psycopg.sql import SQL, Identifier, Literal

from ..errors import CorruptCheckpointError, StateStoreError, StoreVersionError
from .postgres_pool import Connection
from .postgres_target import PostgresTarget

__all__ = ["SCHEMA_VERSION", "is_made", "prepare", "read_committed"]

SCHEMA_VERSION = 1

_LOCK = 0x6E303064  # "n00d"

# The index is of runs that are to be worked on; see `claims`. What it names changes seldom, or every save would pay.
_TABLES = """
CREATE TABLE {s}.runs (
    run_hash bytea PRIMARY KEY, run_id bytea NOT NULL, pipeline bytea, status text NOT NULL,
    changed_at double precision NOT NULL, inputs bytea NOT NULL, signature bytea NOT NULL);
CREATE INDEX runs_to_be_worked_on ON {s}.runs (changed_at) WHERE status IN ('waiting', 'running');
CREATE TABLE {s}.saves (
    run_hash bytea, revision bigint, save_id bytea NOT NULL, saved_at double precision NOT NULL, head bytea NOT NULL,
    outputs bytea NOT NULL, PRIMARY KEY (run_hash, revision));
CREATE TABLE {s}.leases (
    run_hash bytea PRIMARY KEY, holder bytea NOT NULL, token text NOT NULL, alive text NOT NULL,
    since timestamptz NOT NULL, expires timestamptz NOT NULL) WITH (fillfactor = 60);
"""

_DURABLE = """
    IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
"""

_SAVE = (
    """
CREATE FUNCTION {s}.append_save(
    p_hash bytea, p_revision bigint, p_before bytea, p_save_id bytea, p_saved_at double precision, p_head bytea,
    p_outputs bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN"""
    + _DURABLE
    + """
    PERFORM FROM {s}.saves WHERE run_hash = p_hash AND revision = p_revision AND save_id = p_before FOR KEY SHARE;
    IF NOT FOUND THEN RETURN false; END IF;
    INSERT INTO {s}.saves VALUES (p_hash, p_revision + 1, p_save_id, p_saved_at, p_head, p_outputs)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;
CREATE FUNCTION {s}.save_run(
    p_hash bytea, p_revision bigint, p_before bytea, p_save_id bytea, p_saved_at double precision, p_head bytea,
    p_outputs bytea, p_status text, p_pipeline bytea, p_signature bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT {s}.append_save(p_hash, p_revision, p_before, p_save_id, p_saved_at, p_head, p_outputs) THEN
        RETURN false;
    END IF;
    UPDATE {s}.runs SET status = p_status, pipeline = p_pipeline, changed_at = p_saved_at,
        signature = coalesce(p_signature, signature)
    WHERE run_hash = p_hash;
    RETURN true;
END $$;
CREATE FUNCTION {s}.create_run(
    p_hash bytea, p_run_id bytea, p_inputs bytea, p_save_id bytea, p_saved_at double precision, p_head bytea,
    p_outputs bytea, p_status text, p_pipeline bytea, p_signature bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN"""
    + _DURABLE
    + """
    INSERT INTO {s}.runs VALUES (p_hash, p_run_id, p_pipeline, p_status, p_saved_at, p_inputs, p_signature)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RETURN false; END IF;
    INSERT INTO {s}.saves VALUES (p_hash, 1, p_save_id, p_saved_at, p_head, p_outputs);
    RETURN true;
END $$;
"""
)

# What these read has to be seen as it is at that moment; see `read_committed`. A save that is under way holds the save
# before it, which is then waited for, and looked behind.
_DELETE = (
    """
CREATE FUNCTION {s}.hold_last_save(p_hash bytea) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE held bigint; last bigint; at double precision;
BEGIN
    LOOP
        SELECT revision INTO held FROM {s}.saves WHERE run_hash = p_hash ORDER BY revision DESC LIMIT 1 FOR UPDATE;
        SELECT revision, saved_at INTO last, at FROM {s}.saves WHERE run_hash = p_hash ORDER BY revision DESC LIMIT 1;
        IF held IS NOT DISTINCT FROM last THEN RETURN at; END IF;
    END LOOP;
END $$;
CREATE FUNCTION {s}.delete_run(p_hash bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN"""
    + _DURABLE
    + """
    PERFORM {s}.hold_last_save(p_hash);
    DELETE FROM {s}.saves WHERE run_hash = p_hash;
    DELETE FROM {s}.runs WHERE run_hash = p_hash;
    DELETE FROM {s}.leases WHERE run_hash = p_hash;
END $$;
CREATE FUNCTION {s}.prune_runs(p_before double precision) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
DECLARE run record;
BEGIN
    FOR run IN SELECT run_hash, run_id FROM {s}.runs WHERE status = 'finished' AND changed_at < p_before LOOP
        CONTINUE WHEN coalesce({s}.hold_last_save(run.run_hash) >= p_before, true);
        CONTINUE WHEN NOT EXISTS (SELECT FROM {s}.runs WHERE run_hash = run.run_hash AND status = 'finished');
        PERFORM {s}.delete_run(run.run_hash);
        RETURN NEXT run.run_id;
    END LOOP;
END $$;
"""
)

_MIGRATIONS = (_TABLES + _SAVE + _DELETE,)
"""The n-th brings a schema from version n to n + 1."""


async def read_committed(connection: Connection) -> None:
    """Begin a transaction's statements so that each sees what others have committed before it, whatever the default."""
    await connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


async def is_made(connection: Connection, target: PostgresTarget) -> bool:
    """Whether the schema of `target` holds the tables of a store, of whatever version; only looks."""
    return await _version(connection, target) > 0


async def prepare(connection: Connection, target: PostgresTarget) -> None:
    """Create the schema of `target`, or bring it to this release's version.

    Whoever comes while another is at it waits. Raises `StoreVersionError` for a schema of a later release.
    """
    if await _version(connection, target) == SCHEMA_VERSION:
        return
    async with connection.transaction():
        await read_committed(connection)  # what was done while this one waited for the lock has to be seen
        await connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, target.schema))
        await _migrate(connection, target, await _version(connection, target))


async def _migrate(connection: Connection, target: PostgresTarget, version: int) -> None:
    schema = Identifier(target.schema)
    if version == 0:
        found = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (target.schema,))
        if await found.fetchone() is None:
            await connection.execute(SQL("CREATE SCHEMA {s}").format(s=schema))
        await connection.execute(
            SQL("CREATE TABLE {s}.meta (key text PRIMARY KEY, value text NOT NULL)").format(s=schema)
        )
    for statements in _MIGRATIONS[version:]:
        await connection.execute(SQL(statements).format(s=schema))
    await connection.execute(
        SQL("INSERT INTO {s}.meta VALUES ('version', {v}) ON CONFLICT (key) DO UPDATE SET value = {v}").format(
            s=schema, v=Literal(str(SCHEMA_VERSION))
        )
    )


async def _version(connection: Connection, target: PostgresTarget) -> int:
    """Return the version of the schema; 0: there are no tables of ours in it."""
    schema = Identifier(target.schema)
    # Not to_regclass: a session remembers what was not there, also when it has waited for the lock.
    found = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = %s AND relname = %s"
    row = await (await connection.execute(found, (target.schema, "meta"))).fetchone()
    if row is None:
        return 0
    query = SQL("SELECT value FROM {s}.meta WHERE key = 'version'").format(s=schema)
    row = await (await connection.execute(query)).fetchone()
    if row is None or not str(row[0]).isdecimal():
        raise CorruptCheckpointError(
            f"the PostgreSQL store {target.name!r} is damaged: its table 'meta' does not say its version. It is left "
            "as it is; restore it from a backup, or name another schema."
        )
    version = int(row[0])
    if version > SCHEMA_VERSION:
        raise StoreVersionError(
            f"the PostgreSQL store {target.name!r} has version {version}, and this release reads {SCHEMA_VERSION}. It "
            "is left as it is; upgrade this package, or name another schema."
        )
    if version == 0:
        raise StateStoreError(f"the PostgreSQL store {target.name!r} has version 0, which no release has written.")
    return version
