"""Brings a DuckDB file to the present schema, or refuses it."""

from __future__ import annotations

import duckdb

from app.errors import StoreSchemaError
from app.store.migrations import MIGRATIONS

SCHEMA_VERSION = len(MIGRATIONS)
_VERSION_COLUMNS = {"version": "INTEGER", "applied_at": "TIMESTAMP WITH TIME ZONE"}


def migrate(connection: duckdb.DuckDBPyConnection, where: str) -> None:
    """Bring the file to SCHEMA_VERSION, each migration in a transaction. Raises StoreSchemaError for a newer file."""
    current = _version(connection, where)
    if current > SCHEMA_VERSION:
        raise StoreSchemaError(
            f"{where} has schema {current}, written by a newer Wattmix; this one knows up to {SCHEMA_VERSION}. "
            "Upgrade Wattmix, or name another store with --db."
        )
    for number in range(current + 1, SCHEMA_VERSION + 1):
        connection.execute("BEGIN")
        try:
            for statement in MIGRATIONS[number - 1]:
                connection.execute(statement)
            connection.execute("INSERT INTO schema_version VALUES ($1, now())", [number])
            connection.execute("COMMIT")
        except duckdb.Error:
            connection.execute("ROLLBACK")
            raise


def _version(connection: duckdb.DuckDBPyConnection, where: str) -> int:
    """The file's schema number, 0 for an empty file; refuses a DuckDB file of somebody else's."""
    # one row per table or view of the file
    names = {row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    # one row per column of schema_version
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'schema_version' AND NOT internal"
    ).fetchall()
    ours = dict(columns) == _VERSION_COLUMNS and ("store_purpose" in names or names == {"schema_version"})
    if names and not ours:
        raise StoreSchemaError(
            f"{where} is a DuckDB file, but not a Wattmix store (it holds {', '.join(sorted(names)[:3])}). "
            "Name another file with --db."
        )
    # one row per applied migration
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER, applied_at TIMESTAMPTZ)")
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return int(row[0]) if row else 0
