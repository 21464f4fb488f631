from __future__ import annotations

import datetime
import errno
import os
import resource
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import FileError, InputError
from shoal.io import find_format, read_table, refuse_output, write_release
from shoal.io.dialect import Dialect, read_csv
from shoal.io.serialising import table_to_bytes

TEXT = st.text(alphabet=st.sampled_from(list("abc=+-@'\"\t, ;\n0é")), min_size=1, max_size=6)


@pytest.fixture
def table(plain_table):
    return plain_table.with_columns(pl.Series("=sum", ["=1+1", "-5", "'=x"]))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc"])
def test_a_table_survives_every_format(tmp_path, table, ending):
    path = tmp_path / f"t{ending}"
    write_release(table, {}, path)
    assert read_table(str(path)).equals(table)


@given(
    texts=st.lists(st.none() | TEXT, min_size=1, max_size=8),
    numbers=st.lists(st.integers(-(10**17), 10**17), min_size=8, max_size=8),
    floats=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=8, max_size=8),
)
def test_csv_round_trip_of_random_tables(texts, numbers, floats):
    n = len(texts)
    table = pl.DataFrame({"t": pl.Series(texts, dtype=pl.String), "n": numbers[:n], "x": floats[:n]})
    back = read_csv(table_to_bytes(table, "csv"), Dialect())[0]
    assert back["n"].to_list() == numbers[:n]
    assert back["x"].to_list() == floats[:n]
    as_text = back["t"].to_list()
    if back.schema["t"] == pl.String:
        assert as_text == texts
    else:  # a text column of which every cell is a number is read as numbers
        assert [None if t is None else float(t) for t in texts] == [None if v is None else float(v) for v in as_text]


def test_formulas_are_disarmed_and_the_escape_is_noted(tmp_path, table):
    written = write_release(table, {}, tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text()
    assert written["file"]["formulas_escaped"] is True
    assert "'=1+1" in text
    assert "'-5" in text
    assert "''=x" in text
    assert text.splitlines()[0].endswith("'=sum")
    assert ",-3," in text  # numbers are not text
    plain = write_release(table, {}, tmp_path / "t.csv", escape_formulas=False)
    assert plain["file"]["formulas_escaped"] is False
    assert "'=1" not in (tmp_path / "t.csv").read_text()


def test_types_are_inferred_from_all_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "a,b,c,d,e,f\n1,1.5,01,2020-02-30,true,12345678901234567890\n2,0.00012345678901234567,1,2020-01-01,yes,1\n"
    )
    assert read_table(str(path)).dtypes == [pl.Int64, pl.Float64, pl.String, pl.String, pl.String, pl.String]


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("t.csv", b"", "It is empty"),
        ("t.csv", b"a,b\n", "a header but no rows"),
        ("t.csv", b"a,a\n1,2\n", "empty or repeated names"),
        ("t.csv", b"a,\n1,2\n", "empty or repeated names"),
        ("t.csv", b"a,b\nSECRET,2,3\n", "do not all fit the header"),
        ("t.csv", b"a,b\n1,2\nSECRET", "CSV row 3 has 1 cells, but the header has 2"),
        ("t.csv", b"a,b\nSECRET\n", "CSV row 2 has 1 cells"),
        ("t.csv", b"a\n\xff\x81SECRET\n", "not UTF-8"),
        ("t.csv", b"a\0,\0b\0\nSECRET", "NUL characters"),
        ("t.parquet", b"PAR1SECRET", "not a complete parquet file"),
        ("t.arrow", b"ARROW1SECRET", "not a complete arrow file"),
        ("t.feather", b"SECRET", "not a complete arrow file"),
        ("t.xyz", b"SECRET", "ending '.xyz', which is not known"),
    ],
)
def test_unreadable_files_get_one_clear_line(tmp_path, name, data, text):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=text) as error:
        read_table(str(path))
    assert "SECRET" not in str(error.value)


def test_truncated_files(tmp_path, table):
    for ending in ("parquet", "arrow"):
        whole = table_to_bytes(table, ending)
        path = tmp_path / f"t.{ending}"
        for length in (4, len(whole) // 2, len(whole) - 3):
            path.write_bytes(whole[:length])
            with pytest.raises(FileError, match="not a complete"):
                read_table(str(path))


def test_blank_lines_are_nobody(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n\n1,x\n\n2,\n\n\n")
    assert read_table(str(path)).rows() == [(1, "x"), (2, None)]
    path.write_bytes(b"a,b\r\n1,x\r\n\r\n")
    assert read_table(str(path)).rows() == [(1, "x")]


def test_quoted_empty_cells_are_missing_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"age","sex"\n"34","f"\n"","m"\n"",""\n')
    assert read_table(str(path)).rows() == [(34, "f"), (None, "m")]


def test_only_ordinary_files_are_written(tmp_path, table):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", "/dev/null"):
        with pytest.raises(FileError, match="not an ordinary file"):
            refuse_output([], [str(path)])
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_release(table, {}, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert read_table(str(tmp_path / "real.csv")).equals(table)


def test_codes_that_look_like_numbers_stay_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("icd,lot,big,price\n250.00,8E5,1e400,1.50\n250.0,9E5,1,2.25\n401.90,8E6,2,3\n")
    table = read_table(str(path))
    assert table.dtypes == [pl.String, pl.String, pl.String, pl.Float64]
    assert table["icd"].to_list() == ["250.00", "250.0", "401.90"]


def test_a_very_long_cell(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "x" * 200_000 + ",\ny,1\n")
    assert read_table(str(path)).shape == (2, 2)


def test_odd_paths(tmp_path, table):
    with pytest.raises(FileError, match="Cannot read"):
        read_table("a\0.csv")
    with pytest.raises(FileError, match="NUL"):
        write_release(table, {}, str(tmp_path / "a\0.csv"))
    with pytest.raises(FileError, match="File name too long"):
        write_release(table, {}, tmp_path / ("a" * 300 + ".csv"))
    with pytest.raises(FileError, match="cannot go to standard output"):
        write_release(table, {}, tmp_path / "t.csv", "-")


def test_missing_files_and_formats(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        read_table(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="Format 'xls' is not known"):
        find_format("a.csv", "xls")
    assert find_format("-") == "csv"
    assert find_format("a.xyz", "arrow") == "arrow"


def test_arrow_streams_are_read_too(tmp_path, table):
    path = tmp_path / "t.arrow"
    table.write_ipc_stream(path)
    assert read_table(str(path)).equals(table)


def test_nested_columns_do_not_fit_into_csv(tmp_path):
    for values in ([[1]], [datetime.timedelta(1)]):
        with pytest.raises(InputError, match="csv cannot hold column 'x'"):
            write_release(pl.DataFrame({"x": values}), {}, tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_inputs_are_never_overwritten(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(source)
    os.link(source, tmp_path / "hard.csv")
    for name in ("people.csv", "link.csv", "hard.csv"):
        with pytest.raises(FileError, match="nothing may be overwritten"):
            refuse_output([str(source)], [str(tmp_path / name)])
    refuse_output(["-", str(source)], ["-", str(tmp_path / "other.csv")])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_failure_while_writing_leaves_nothing_behind(tmp_path, table, monkeypatch, code):
    def fail(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileError, match="the disk is full" if code == errno.ENOSPC else "Permission denied"):
        write_release(table, {}, tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, PermissionError])
@pytest.mark.parametrize("links", [True, False])
def test_both_files_or_none_and_an_earlier_release_survives(tmp_path, table, monkeypatch, which, error, links):
    calls = []
    real = os.replace

    def fail(source, target):
        calls.append(target)
        if len(calls) == which:
            raise error
        real(source, target)

    def no_links(source, target):
        raise OSError(errno.EPERM, "no hard links here")

    expected = KeyboardInterrupt if error is KeyboardInterrupt else FileError
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(expected):
            write_release(table, {}, tmp_path / "t.csv")
        assert list(tmp_path.iterdir()) == []
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    write_release(table, {"first": True}, tmp_path / "t.csv")
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(expected):
            write_release(table.head(1), {"second": True}, tmp_path / "t.csv")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    write_release(table.head(1), {"second": True}, tmp_path / "t.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(first)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} != first


def test_a_really_full_disk(tmp_path):
    """A limit on the size of files makes the system refuse the write itself."""
    code = (
        "import signal, sys, polars as pl; from shoal.io import write_release\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "write_release(pl.DataFrame({'x': range(100_000)}), {}, sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.csv")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert "the disk is full. Nothing was written." in done.stderr
    assert list(tmp_path.iterdir()) == []
