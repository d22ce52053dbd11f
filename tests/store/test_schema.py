"""A store opens at any schema up to ours; a newer one, or somebody else's file, is refused and left as it is."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from app.errors import StoreSchemaError
from app.store import schema
from app.store.database import Store
from app.store.schema import SCHEMA_VERSION

_VERSIONS = "SELECT version FROM schema_version ORDER BY version"


def tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every table of a file and its rows."""
    with duckdb.connect(str(path)) as connection:
        names = connection.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        return {name: connection.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall() for schema, name in names}


def make(path: Path, sql: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(sql)
    return path


def test_an_empty_file_gets_every_migration_once(tmp_path: Path) -> None:
    for _ in range(3):
        store = Store.open(tmp_path / "s.duckdb")
        assert [version for (version,) in store.query(_VERSIONS).rows()] == list(range(1, SCHEMA_VERSION + 1))
        store.close()
    assert set(tables(tmp_path / "s.duckdb")) >= {"schema_version", "store_purpose", "benchmark_run"}


def test_an_older_store_is_migrated_and_keeps_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(tmp_path / "s.duckdb", purpose="demo").close()
    later = (*schema.MIGRATIONS, ("CREATE TABLE something_new (x INTEGER)", "INSERT INTO something_new VALUES (7)"))
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", len(later))
    for _ in range(2):
        store = Store.open(tmp_path / "s.duckdb")
        assert store.purpose == "demo"
        assert store.query("SELECT x FROM something_new").rows() == [(7,)]
        store.close()


def test_a_migration_that_fails_leaves_the_schema_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(tmp_path / "s.duckdb").close()
    before = tables(tmp_path / "s.duckdb")
    faulty = (*schema.MIGRATIONS, ("CREATE TABLE half (x INTEGER)", "INSERT INTO nowhere VALUES (7)"))
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", faulty)
        patched.setattr(schema, "SCHEMA_VERSION", len(faulty))
        with pytest.raises(duckdb.Error):
            Store.open(tmp_path / "s.duckdb")
    assert tables(tmp_path / "s.duckdb") == before
    Store.open(tmp_path / "s.duckdb").close()


def test_a_store_killed_before_its_first_migration_opens(tmp_path: Path) -> None:
    make(tmp_path / "s.duckdb", "CREATE TABLE schema_version (version INTEGER, applied_at TIMESTAMPTZ)")
    store = Store.open(tmp_path / "s.duckdb")
    assert store.purpose == "user"
    store.close()


def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    Store.open(path).close()
    make(path, f"INSERT INTO schema_version VALUES ({SCHEMA_VERSION + 1}, now())")
    before = tables(path)
    with pytest.raises(StoreSchemaError) as refused:
        Store.open(path)
    assert str(refused.value) == (
        f"{path} has schema {SCHEMA_VERSION + 1}, written by a newer Wattmix; this one knows up to {SCHEMA_VERSION}. "
        "Upgrade Wattmix, or name another store with --db."
    )
    assert tables(path) == before


@pytest.mark.parametrize(
    ("sql", "holds"),
    [
        ("CREATE TABLE sales (x INTEGER)", "it holds sales"),
        ("CREATE TABLE a (x INT); CREATE TABLE d (x INT); CREATE TABLE c (x INT); CREATE TABLE b (x INT)", "a, b, c"),
        ("CREATE SCHEMA theirs; CREATE TABLE theirs.sales (x INTEGER)", "it holds sales"),
        ("CREATE VIEW sales AS SELECT 1 AS x", "it holds sales"),
    ],
    ids=["a table", "many tables", "another schema", "a view"],
)
def test_a_duckdb_file_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path, sql: str, holds: str) -> None:
    path = make(tmp_path / "s.duckdb", sql)
    before = tables(path)
    with pytest.raises(StoreSchemaError) as refused:
        Store.open(path)
    assert str(refused.value).startswith(f"{path} is a DuckDB file, but not a Wattmix store (it holds ")
    assert holds in str(refused.value)
    assert tables(path) == before


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE schema_version (installed_rank INTEGER, script VARCHAR)",
        "CREATE TABLE schema_version (version VARCHAR); INSERT INTO schema_version VALUES ('1.0.2')",
        "CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (1)",
        "CREATE TABLE schema_version (version INTEGER); CREATE TABLE sales (x INTEGER)",
    ],
    ids=["other columns", "text versions", "the same number", "no number yet"],
)
def test_a_schema_version_table_alone_makes_no_wattmix_store(tmp_path: Path, sql: str) -> None:
    """Other programs name that table so, too."""
    path = make(tmp_path / "s.duckdb", sql)
    before = tables(path)
    with pytest.raises(StoreSchemaError):
        Store.open(path)
    assert tables(path) == before
