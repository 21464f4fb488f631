"""Databases: real servers and files; one transaction; no password and no value anywhere."""

from __future__ import annotations

import datetime
import os
import sqlite3
import stat

import duckdb
import polars as pl
import pytest

from shoal.errors import FileError, InputError, ShoalError
from shoal.io import memory
from shoal.io.databases import is_address, read_database, read_name, scheme_of, staged_table, without_password
from shoal.io.databases.addresses import same_database

from .conftest import PASSWORD


@pytest.fixture
def table(plain_table):
    return plain_table.with_columns(
        pl.Series("level", ["b", "a", None], dtype=pl.Enum(["b", "a"])),
        pl.Series('od"d na;me', ["'; drop table people; --", '"', None]),
    )


@pytest.fixture(params=["postgresql", "duckdb", "sqlite"])
def address(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgres")
    return f"{request.param}:///{tmp_path}/test.{request.param}"  # the path's own slash is the fourth


@pytest.fixture
def name(request):
    """A table's name of its own, as the server is shared."""
    return f"t{abs(hash(request.node.nodeid))}"


def write(table, address, name, **options):
    with staged_table(table, address, name, **options) as commit:
        commit()


def test_a_table_survives(address, table, name):
    write(table, address, name)
    back = read_database(address, f"select * from {name}").table
    expected = table.with_columns(pl.col("level").cast(pl.String))
    if address.startswith("sqlite"):  # which has no truths
        expected = expected.with_columns(pl.col("flag").cast(pl.Int64))
    assert back.columns == table.columns
    for column in expected:
        assert back[column.name].to_list() == column.to_list()
        assert back[column.name].dtype == column.dtype


def test_nothing_happens_without_a_commit(address, table, name):
    with staged_table(table, address, name):
        pass
    with pytest.raises(RuntimeError), staged_table(table, address, name):
        raise RuntimeError
    with pytest.raises(ShoalError, match="does not exist|no database file"):
        read_database(address, f"select * from {name}")
    if not address.startswith("postgresql"):
        assert not os.path.exists("/" + address.partition("////")[2])


def test_a_table_is_replaced_only_on_request_and_as_a_whole(address, table, name):
    write(table, address, name)
    with pytest.raises(FileError, match="already there"):
        write(table, address, name)
    with pytest.raises(RuntimeError), staged_table(table.head(1), address, name, replace=True):
        raise RuntimeError
    assert len(read_database(address, f"select * from {name}").table) == 3
    write(table.head(1), address, name, replace=True)
    assert len(read_database(address, f"select * from {name}").table) == 1


def test_an_error_says_what_is_wrong_and_nothing_else(address, table, name):
    write(table, address, name)
    cases = [
        (f"select nope from {name}", "a column that it names does not exist"),
        ("select * from nope_at_all", "a table (or function )?that it names does not exist"),
        ("selct 1", "not valid SQL"),
        (f"select * from {name} where n > 99", "gives no rows"),
        (f"select n, n from {name}", "of the same name"),
    ]
    if not address.startswith("sqlite"):
        cases.append(("select cast('SECRET' as integer) as n", "refuses"))
    for query, text in cases:
        with pytest.raises(FileError, match=text) as error:
            read_database(address, query)
        said = str(error.value)
        assert "SECRET" not in said
        assert PASSWORD not in said
        assert "\n" not in said
    with pytest.raises(InputError, match="query must be a text"):
        read_database(address, " ")


def test_a_query_cannot_change_the_database(address, table, name):
    write(table, address, name)
    for query in (f"delete from {name} returning n as gone", f"drop table {name}"):
        with pytest.raises(FileError):
            read_database(address, query)
    assert len(read_database(address, f"select * from {name}").table) == 3


def test_what_does_not_fit_into_memory_is_refused(address, table, name, monkeypatch):
    write(table, address, name)
    monkeypatch.setattr(memory, "available_memory", lambda: 50)
    with pytest.raises(FileError, match="of memory to be read"):
        read_database(address, f"select * from {name}")


def test_new_files_are_their_owners(tmp_path, table):
    for kind in ("duckdb", "sqlite"):
        path = tmp_path / f"new.{kind}"
        write(table, f"{kind}:///{path}", "t")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [one.name for one in tmp_path.iterdir() if kind in one.name] == [path.name]


@pytest.mark.database
def test_a_schema_of_its_own(postgres, table, name):
    with pytest.raises(FileError, match="no schema 'nowhere'"):
        write(table, postgres, f"nowhere.{name}")
    write(table, postgres, f"public.{name}")
    assert len(read_database(postgres, f"select * from public.{name}").table) == 3


@pytest.mark.database
def test_types_of_postgresql(postgres):
    query = """select 12.50::numeric(10,2) as cost, 3::smallint as n, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid as u,
        '2020-01-02 03:04:05+02'::timestamptz as at, 1.5::real as x, 'ab'::char(3) as c, null::text as nothing"""
    table = read_database(postgres, query).table
    assert table["cost"].to_list() == [12.5]
    assert table["u"].to_list() == ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]
    assert table["at"][0] == datetime.datetime(2020, 1, 2, 1, 4, 5, tzinfo=datetime.UTC)
    assert table.schema["nothing"] == pl.String
    for cast in ("'5'::money", "'1 day'::interval", "'1.2.3.4'::inet"):
        with pytest.raises(
            FileError, match="column 'v' has a type of the database's own; cast it|Column 'v' has a type"
        ):
            read_database(postgres, f"select {cast} as v")


@pytest.mark.database
def test_how_a_connection_fails_says_why_and_no_password(postgres):
    wrong = {
        postgres.replace(PASSWORD, f"{PASSWORD}x"): "user or password are refused",
        postgres.replace("/postgres?", "/nodb?"): "no database of this name",
        f"postgresql://alice:{PASSWORD}@127.0.0.1:1/x": "no server answers there",
        f"postgresql://alice:{PASSWORD}@127.0.0.1:port/x": "is not right",
    }
    for address, text in wrong.items():
        with pytest.raises(FileError, match=text) as error:
            read_database(address, "select 1 as one")
        assert PASSWORD not in str(error.value)


@pytest.mark.database
def test_a_password_from_the_environment(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert read_database(without_password(postgres), "select 1 as one").table.rows() == [(1,)]


def test_what_is_shown_of_an_address():
    assert without_password("postgresql://u:p@h:5/d?host=/tmp&password=p") == "postgresql://u@h:5/d?host=/tmp"
    assert without_password("postgresql://h/d") == "postgresql://h/d"
    assert without_password("sqlite:////tmp/a.db") == "sqlite:////tmp/a.db"
    for mark in "#?/[@%:&":
        for rest in ("h/d", "h:5/d?host=/tmp", "/d?host=/tmp"):
            shown = without_password(f"postgresql://bob:pa{mark}SECRET@{rest}")
            assert "SECRET" not in shown
            assert shown == f"postgresql://bob@{rest}"
    for other in ("mysql://u:SECRET@h/d", "postgresql+psycopg2://u:SECRET@h/d", "host=h password=SECRET user=u"):
        assert "SECRET" not in without_password(other)


def test_one_database_by_two_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert same_database("sqlite:///a.db", f"sqlite:///{tmp_path}/a.db")
    assert not same_database("sqlite:///a.db", "duckdb:///a.db")
    assert same_database("postgresql://u:p@h/d", "postgres://other@h/d")
    assert not same_database("postgresql://u@h/d", "postgresql://u@h/e")
    assert not same_database(None, "sqlite:///a.db")


def test_passwords_with_odd_marks_appear_nowhere():
    for mark in "#?/[":
        for scheme in ("postgresql", "mysql", "POSTGRESQL"):
            with pytest.raises(ShoalError) as error:
                read_database(f"{scheme}://alice:{mark}SECRET@127.0.0.1:1/x", "select 1 as one")
            assert "SECRET" not in str(error.value)


@pytest.mark.database
def test_what_arrives_late_is_said_in_our_words(postgres):
    for query in (
        "select 1 / (g - g) as a from generate_series(1, 9) g",
        "select ('CANARY' || g)::int as a from generate_series(1, 9) g",
        "select 'infinity'::timestamptz as a",
        "select '-infinity'::date as a",
        "select row(1, 'CANARY') as a",
    ):
        with pytest.raises(FileError) as error:
            read_database(postgres, query)
        assert "CANARY" not in str(error.value)
    table = read_database(postgres, "select 123456789012345678901234567890::numeric as a, 2.5::numeric as b").table
    assert table.row(0) == ("123456789012345678901234567890", 2.5)


def test_reading_writes_nowhere(tmp_path, table):
    write(table, f"duckdb:///{tmp_path}/a.duckdb", "t")
    write(table, f"sqlite:///{tmp_path}/a.db", "t")
    before = sorted(path.name for path in tmp_path.iterdir())
    for address, query in (
        (f"duckdb:///{tmp_path}/a.duckdb", f"copy (select 42 as a) to '{tmp_path}/copied.csv'"),
        (f"duckdb:///{tmp_path}/a.duckdb", f"attach '{tmp_path}/o.duckdb' as o; select 1 as a"),
        (f"sqlite:///{tmp_path}/a.db", f"vacuum into '{tmp_path}/stolen.db'"),
        (f"sqlite:///{tmp_path}/a.db", f"attach '{tmp_path}/o.db' as o"),
    ):
        with pytest.raises(FileError, match="only reading"):
            read_database(address, query)
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_places_that_vanish_are_refused(table):
    with pytest.raises(InputError, match="Write duckdb:///file"):
        write(table, "duckdb:///:memory:", "t")
    with sqlite3.connect(":memory:") as connection, pytest.raises(FileError, match="no schema 'temp'"):
        write(table, connection, "temp.t")
    connection.close()


def test_marks_in_the_names_of_files(tmp_path, table):
    for name in ("data#2.db", "data?2.db", "a b.db"):
        write(table, f"sqlite:///{tmp_path}/{name}", "t")
        assert (tmp_path / name).exists()
    assert len(list(tmp_path.iterdir())) == 3


def test_connections_that_somebody_has(tmp_path, table, postgres, name):
    from adbc_driver_postgresql import dbapi

    with sqlite3.connect(tmp_path / "a.db") as lite, duckdb.connect() as duck, dbapi.connect(postgres) as post:
        for connection in (lite, duck, post):
            write(table, connection, name)
            assert len(read_database(connection, f"select * from {name}").table) == 3
            with pytest.raises(FileError, match="does not exist"):
                read_database(connection, "select * from nope_at_all")
            if connection is post:
                connection.rollback()
        lite.execute("begin")
        with pytest.raises(InputError, match="inside a transaction"):
            write(table, lite, "other")
    lite.close()


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("mysql://h/d", "kind 'mysql' are not known"),
        ("postgesql://h/d", "did you mean 'postgresql'"),
        ("sqlite://file.db", "Write sqlite:///file"),
        ("duckdb:///", "Write duckdb:///file"),
        (7, "must be an address"),
    ],
)
def test_addresses_that_are_none(address, text):
    with pytest.raises(InputError, match=text):
        read_database(address, "select 1 as one")


def test_files_that_are_no_databases(tmp_path, table):
    path = tmp_path / "t.db"
    path.write_bytes(b"SECRET" * 1000)
    for kind in ("duckdb", "sqlite"):
        with pytest.raises(FileError, match="damaged|not a database") as error:
            read_database(f"{kind}:///{path}", "select 1 as one")
        assert "SECRET" not in str(error.value)
        with pytest.raises(FileError):
            write(table, f"{kind}:///{path}", "t")
        assert path.read_bytes() == b"SECRET" * 1000
        with pytest.raises(FileError, match="no database file"):
            read_database(f"{kind}:///{tmp_path}/none.db", "select 1 as one")


def test_names_of_tables():
    assert read_name("a.b") == ["a", "b"]
    for wrong in ("", "a.b.c", "a.", "a\0b"):
        with pytest.raises(InputError, match="not the name of a table"):
            read_name(wrong)
    assert is_address("sqlite:///x")
    assert not is_address("people.csv")
    assert scheme_of("postgres://h/d") == "postgresql"


def test_sqlite_mixes_types(tmp_path):
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a, b, c, d)")
        connection.executemany(
            "insert into t values (?, ?, ?, ?)", [(1, 1, "x", b"y"), (2.5, "z", None, "t"), (None,) * 4]
        )
    connection.close()
    table = read_database(f"sqlite:///{path}", "select a, b, c from t").table
    assert table.rows() == [(1.0, "1", "x"), (2.5, "z", None), (None, None, None)]
    with pytest.raises(FileError, match="'d' has texts and bytes"):
        read_database(f"sqlite:///{path}", "select d from t")
    for values in ([[1]], [datetime.timedelta(1)], pl.Series([2**63], dtype=pl.UInt64)):
        with pytest.raises(InputError, match="SQLite cannot hold column 'x'"):
            write(pl.DataFrame({"x": values}), f"sqlite:///{path}", "u")
