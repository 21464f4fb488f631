"""Every format people have: what goes in comes out, and what is damaged gets one clear line."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import io
import math
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pyreadstat
import pytest
import xlsxwriter
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import FileError, InputError
from shoal.io import Labels, Reading, memory, read_source, read_table, write_release
from shoal.io.dialect import Dialect, read_csv
from shoal.io.excel import read_excel
from shoal.io.formats import find_output
from shoal.io.reading import _read
from shoal.io.serialising import table_to_bytes

SEX = Labels({"sex": "sex at birth"}, {"sex": {1.0: "male", 2.0: "female"}})


@pytest.fixture
def table(plain_table):
    return plain_table.with_columns(text=pl.Series(["=1+1", "-5", "https://example.org/'x"]))


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.zst", ".tsv", ".xlsx", ".dta"])
def test_a_table_survives_every_format(tmp_path, table, ending):
    path = tmp_path / f"t{ending}"
    write_release(table, {}, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_table(str(path)).equals(table)


# --- random tables through every format ------------------------------------------------------------------------------

ROWS = 6
LETTERS = st.text(alphabet=st.sampled_from(list("ab0é =+-@'\",;\t\n|")), min_size=1, max_size=6)
WORDS = LETTERS.filter(lambda text: text.strip(" \t\n") == text)
DAYS = st.dates(datetime.date(1900, 3, 1), datetime.date(2200, 1, 1))
TIMES = st.datetimes(datetime.datetime(1900, 3, 1), datetime.datetime(2200, 1, 1)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)


def cells(values):
    return st.lists(st.none() | values, min_size=ROWS, max_size=ROWS)


TABLES = st.fixed_dictionaries(
    {
        "code": cells(st.integers(0, 999).map(lambda n: f"0{n:03d}")),
        "word": cells(WORDS.map(lambda text: f"w{text}")),
        "whole": cells(st.integers(-(2**53), 2**53)),
        "real": cells(st.floats(-1e300, 1e300, allow_subnormal=False)),
        "truth": cells(st.booleans()),
        "day": cells(DAYS),
        "at": cells(TIMES),
        "level": cells(st.sampled_from(["low", "middle", "high"])),
    }
)
TYPES = {
    "code": pl.String, "word": pl.String, "whole": pl.Int64, "real": pl.Float64, "truth": pl.Boolean, "day": pl.Date,
    "at": pl.Datetime("us"), "level": pl.Enum(["low", "middle", "high"]),
}  # fmt: skip


def alike(a, b, form):
    """Whether two cells are the same, as far as the format can hold them."""
    if a is None or b is None:
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-14 if form == "excel" else 0.0, abs_tol=0.0)
    if isinstance(a, datetime.date) and form in ("excel", "stata"):  # times in floating-point days, or milliseconds
        instants = [
            v if isinstance(v, datetime.datetime) else datetime.datetime.combine(v, datetime.time()) for v in (a, b)
        ]
        return abs(instants[0] - instants[1]) <= datetime.timedelta(milliseconds=1)
    return a == b


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "excel", "stata"])
@settings(max_examples=40)
@given(values=TABLES)
def test_random_tables_survive(form, values):
    table = pl.DataFrame(values, schema=TYPES)
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))
    if table.is_empty():
        return
    back = _read(table_to_bytes(table, form), form, Dialect(), None).table
    assert back.columns == table.columns
    for name in table.columns:
        expected, found = table[name], back[name]
        if form in ("parquet", "arrow") or (
            form == "stata" and name in ("level", "truth") and expected.null_count() < len(table)
        ):
            assert found.dtype == expected.dtype
        for a, b in zip(expected.to_list(), found.to_list(), strict=True):
            assert alike(a, b, form), (name, a, b)


# --- CSV -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_dialects_are_guessed(separator, encoding, decimal):
    lines = [
        ["naïve", "cost", "zip", "day"],
        ["é, f; g|h", "1.234,5" if decimal == "," else "1234.5", "01", "2020-01-02"],
    ]
    lines += [["x", f"0{decimal}25", "02", ""]] * 3
    if separator == "," == decimal:
        return  # then it has to be said
    text = "\n".join(separator.join(f'"{cell}"' for cell in line) for line in lines)
    table, found = read_csv(text.encode(encoding), Dialect())
    assert table["naïve"][0] == "é, f; g|h"
    assert table["cost"].to_list() == [1234.5, 0.25, 0.25, 0.25]
    assert table["zip"].to_list() == ["01", "02", "02", "02"]
    assert table["day"].to_list()[:2] == [datetime.date(2020, 1, 2), None]
    words = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}[separator]
    mark = "decimal commas" if decimal == "," else "decimal points"
    code = {"utf-8-sig": "UTF-8", "utf-8": "UTF-8", "utf-16": "UTF-16-LE", "cp1252": "Windows-1252"}[encoding]
    plain = (words, mark, code) == ("commas", "decimal points", "UTF-8")
    assert found == ([] if plain else [f"{words}, {mark}, {code}"])


def test_days_are_dates_where_there_is_one_way_to_read_them():
    text = "a;b;c;d;e\n31.12.1970;12/31/1970;13/01/1970;1/2/1970;1.2.1970\n1.2.1980;1/2/1980;1/2/1980;3/4/1980;x\n"
    table, notes = read_csv(text.encode(), Dialect())
    assert table.dtypes == [pl.Date, pl.Date, pl.Date, pl.String, pl.String]
    assert table.row(1)[:3] == (datetime.date(1980, 2, 1), datetime.date(1980, 1, 2), datetime.date(1980, 2, 1))
    assert notes[1:] == [
        "column 'a' as dates, day first",
        "column 'b' as dates, month first",
        "column 'c' as dates, day first",
        "column 'd' as text: its days may be read in two ways; write them as 2020-12-31",
    ]


def test_a_number_that_is_none_is_told(tmp_path):
    rows = "\n".join(["cost", *map(str, range(20)), "SECRET"])
    table, notes = read_csv(rows.encode(), Dialect())
    assert table["cost"].dtype == pl.String
    assert notes == ["column 'cost' as text: 1 of its 21 cells are no numbers"]
    pl.DataFrame({"born": ["31.12.1970", "1.2.1980"], "x": ["1", "2"]}).write_excel(tmp_path / "t.xlsx")
    source = read_source(str(tmp_path / "t.xlsx"))
    assert source.table.dtypes == [pl.Date, pl.String]
    assert source.notes == ["column 'born' as dates, day first"]


def test_what_is_said_is_done_and_what_cannot_be_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a;b\n1,5;1.5\n2,5;2.5\n".encode("latin-1"))
    with pytest.raises(FileError, match="'a' has decimal commas, column 'b' decimal points"):
        read_table(str(path))
    found = read_source(str(path), Reading(decimal=","))
    assert found.table.rows() == [(1.5, "1.5"), (2.5, "2.5")]
    assert found.notes == ["semicolons, decimal commas, UTF-8"]
    assert read_source(str(path), Reading(decimal=".", separator=";")).table["a"].to_list() == ["1,5", "2,5"]
    path.write_bytes("a,b\né,1\n".encode("cp1252"))
    assert read_source(str(path)).notes == ["commas, decimal points, Windows-1252"]
    with pytest.raises(FileError, match="not UTF-8"):
        read_source(str(path), Reading(encoding="utf-8"))
    with pytest.raises(FileError, match="not in the encoding 'shift_jis'"):
        read_source(str(path), Reading(encoding="shift_jis"))
    for wrong, text in (
        (Reading(encoding="klingon"), "encoding='klingon' is not known"),
        (Reading(encoding=""), "encoding='' is not known"),
        (Reading(encoding="base64"), "encoding='base64' is not known"),
        (Reading(encoding="a\0b"), "is not known"),
        (Reading(separator=";;"), "must be one character"),
        (Reading(decimal="x"), "must be '.' or ','"),
        (Reading(decimal=",", separator=","), "are both ','"),
    ):
        with pytest.raises(InputError, match=text):
            read_source(str(path), wrong)


def test_the_hint_of_spreadsheets(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"sep=;\r\na;b\r\n1;x\r\n")
    assert read_table(str(path)).rows() == [(1, "x")]


def test_a_guess_survives_commas_in_text():
    rows = "\n".join(f"{i};a, b" for i in range(50))
    table, _ = read_csv(f"id;text, free\n{rows}\n".encode(), Dialect())
    assert table.columns == ["id", "text, free"]


def test_codes_of_commas_keep_every_letter():
    table, _ = read_csv(b"a;b\n1,50;1,5\n1,5;1,7\n", Dialect())
    assert table["a"].to_list() == ["1,50", "1,5"]  # two codes that would be one number
    assert table["b"].to_list() == [1.5, 1.7]


# --- workbooks -------------------------------------------------------------------------------------------------------


def workbook(fill, *sheets):
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer)
    fill(*(book.add_worksheet(name) for name in sheets or ("people",)))
    book.close()
    return buffer.getvalue()


def rows_of(sheet, rows):
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            sheet.write(i, j, value)


def test_formulas_by_their_last_values_or_not_at_all():
    def fill(sheet):
        rows_of(sheet, [["age", "twice", "bad"], [30, None, 1], [40, None, 2]])
        sheet.write_formula(1, 1, "=A2*2", None, 60)
        sheet.write_formula(2, 1, "=A3*2", None, 80)
        sheet.write_formula(1, 2, "=1/0", None, "#DIV/0!")

    table, notes = read_excel(workbook(fill))
    assert table.rows() == [(30, 60, None), (40, 80, 2)]
    assert notes == ["3 formula cells, by the values last computed", "1 cells with an error such as #N/A, as missing"]

    def fill_without(sheet):
        rows_of(sheet, [["age", "twice"], [30, None]])
        sheet.write_formula(1, 1, "=A2*2", None, "")

    with pytest.raises(FileError, match="'people' has 1 formula cells without a value"):
        read_excel(workbook(fill_without))


def sheet_of(cells, prefix=""):
    """A workbook whose one sheet has this XML for its rows."""
    buffer = io.BytesIO(workbook(lambda sheet: rows_of(sheet, [["a", "b"]])))
    p = f"{prefix}:" if prefix else ""
    space = f'xmlns{":" + prefix if prefix else ""}="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    text = f'<?xml version="1.0"?><{p}worksheet {space}><{p}sheetData>{cells}</{p}sheetData></{p}worksheet>'
    out = io.BytesIO()
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, text if name.endswith("sheet1.xml") else old.read(name))
    return out.getvalue()


HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1" t="inlineStr"><is><t>b</t></is></c></row>'


def test_formulas_in_every_spelling():
    row = '<row r="2"><c r="A2"><v>5</v></c>{}</row>'
    for cell in (
        '<c r="B2"><f>A2*2</f></c>',
        '<c r="B2"><f><![CDATA[A2*2]]></f><v></v></c>',
        '<c r="B2"><f t="shared" si="0"/><v/></c>',
    ):
        with pytest.raises(FileError, match="1 formula cells without a value"):
            read_excel(sheet_of(HEAD + row.format(cell)))
    text = '<c r="B2" t="str"><f>IF(A2=2,"x","")</f><v></v></c>'
    assert read_excel(sheet_of(HEAD + row.format(text)))[1][0].startswith("1 formula cells, by the values")
    prefixed = (HEAD + row.format('<c r="B2"><f>A2*2</f></c>')).replace("</", "</x:").replace("<c", "<x:c")
    prefixed = prefixed.replace("<row", "<x:row").replace("<v>", "<x:v>").replace("<f>", "<x:f>")
    prefixed = prefixed.replace("<is>", "<x:is>").replace("<t>", "<x:t>")
    with pytest.raises(FileError, match="1 formula cells without a value"):
        read_excel(sheet_of(prefixed, "x"))


def test_a_cell_far_away_and_a_cell_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    far = HEAD + '<row r="1048576"><c r="XFD1048576"><v>5</v></c></row>'
    with pytest.raises(FileError, match="The sheet needs about"):
        read_excel(sheet_of(far))
    with pytest.raises(FileError):
        read_excel(sheet_of(HEAD + '<row r="2"><c r="ZZZZZZZ99999999999"><v>5</v></c></row>'))


def test_texts_among_numbers_are_told():
    def fill(sheet):
        rows_of(sheet, [["x", "y"], ["n/a", 1], [7, 2], ["NULL", 3]])

    table, notes = read_excel(workbook(fill))
    assert table["x"].to_list() == [None, 7, None]
    assert notes == ["column 'x': 2 cells such as n/a as missing"]


def test_old_workbooks(tmp_path):
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("people")
    for i, row in enumerate([["zip", "age"], ["007", 30], ["010", 41]]):
        for j, value in enumerate(row):
            sheet.write(i, j, value)
    book.save(tmp_path / "t.xls")
    source = read_source(str(tmp_path / "t.xls"))
    assert source.table.rows() == [("007", 30), ("010", 41)]
    assert source.notes == ["whether formulas of an .xls have values cannot be told"]
    whole = (tmp_path / "t.xls").read_bytes()
    for cut in (5, 1000):
        (tmp_path / "t.xls").write_bytes(whole[:-cut])
        with pytest.raises(FileError, match="not a complete Excel workbook"):
            read_source(str(tmp_path / "t.xls"))


def test_damaged_workbooks_say_one_thing(tmp_path):
    whole = bytearray(table_to_bytes(pl.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]}), "excel"))
    rng = np.random.default_rng(0)
    for _ in range(150):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        with contextlib.suppress(FileError):  # anything else fails
            read_excel(bytes(data))


def test_sheets_by_name():
    data = workbook(lambda one, two: (rows_of(one, [["a"], [1]]), rows_of(two, [["b"], ["x"]])), "one", "two")
    table, notes = read_excel(data)
    assert (table.columns, notes) == (["a"], ["sheet 'one' of 2"])
    assert read_excel(data, "two")[0].rows() == [("x",)]
    with pytest.raises(InputError, match="'tow' is not in the workbook; did you mean 'two'"):
        read_excel(data, "tow")


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([["a", "a"], ["SECRET", 2]], "empty or repeated names"),
        ([["a", None], ["SECRET", 2]], "empty or repeated names"),
        ([["a", "b"]], "a header but no rows"),
        ([], "'people' is empty"),
    ],
)
def test_sheets_that_are_no_table(tmp_path, rows, text):
    path = tmp_path / "t.xlsx"
    path.write_bytes(workbook(lambda sheet: rows_of(sheet, rows)))
    with pytest.raises(FileError, match=text) as error:
        read_table(str(path))
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pl.Series("x", [2**60]), "whole numbers of more than 15 digits"),
        (pl.Series("x", [datetime.date(1850, 1, 1)]), "dates before March 1900"),
        (pl.Series("x", [float("inf")]), "numbers that are infinite"),
        (pl.Series("x", ["y" * 40_000]), "texts of more than 32,767 letters"),
        (pl.Series("x", [[1]]), "values of a kind that it does not have"),
    ],
)
def test_what_excel_would_change_is_refused(tmp_path, column, text):
    with pytest.raises(InputError, match=f"Excel cannot hold column 'x', which has {text}"):
        write_release(pl.DataFrame([column]), {}, tmp_path / "t.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_sheet_has_its_size(tmp_path):
    with pytest.raises(InputError, match=r"holds 1,048,575 rows and 16,384 columns"):
        write_release(pl.DataFrame({"x": pl.int_range(0, 1_048_576, eager=True)}), {}, tmp_path / "t.xlsx")


# --- statistical packages ---------------------------------------------------------------------------------------------


def write_with(writer, name, tmp_path, **options):
    path = tmp_path / name
    frame = pl.DataFrame(
        {"sex": [1, 2, 2, None], "region": [3, 1, 3, 1], "cost": [1.5, 99.0, 0.0, 2.0], "zip": ["01", "02", "", "3"]}
    )
    writer(frame, str(path), **options)
    return path


LABELLED = {
    "column_labels": {"sex": "sex at birth"},
    "variable_value_labels": {
        "sex": {1: "male", 2: "female"},
        "region": {1: "north", 2: "south", 3: "west"},
        "cost": {99: "refused"},
    },
}


def test_labels_of_stata_survive_into_stata_excel_and_parquet(tmp_path):
    source = read_source(str(write_with(pyreadstat.write_dta, "t.dta", tmp_path, **LABELLED)))
    assert source.table["sex"].to_list() == ["male", "female", "female", None]
    assert source.table.schema["sex"] == pl.Enum(["male", "female"])
    assert source.table.schema["region"] == pl.Enum(["north", "south", "west"])
    assert source.table["cost"].to_list() == [1.5, 99.0, 0.0, 2.0]  # not every code has a label: numbers stay numbers
    assert source.table["zip"].to_list() == ["01", "02", None, "3"]
    assert source.labels.columns == {"sex": "sex at birth"}
    write_release(source.table.drop("zip"), {}, tmp_path / "r.dta", labels=source.labels)
    codes, about = pyreadstat.read_dta(tmp_path / "r.dta", output_format="polars")
    assert codes["region"].to_list() == [3, 1, 3, 1]  # the codes that it came with
    assert about.variable_value_labels == {
        "sex": {1: "male", 2: "female"}, "region": {1: "north", 2: "south", 3: "west"}
    }  # fmt: skip
    assert about.column_names_to_labels["sex"] == "sex at birth"
    for ending in ("parquet", "xlsx"):
        write_release(source.table, {}, tmp_path / f"r.{ending}", labels=source.labels)
    assert read_source(str(tmp_path / "r.parquet")).labels == source.labels
    told = read_source(str(tmp_path / "r.xlsx"), Reading(sheet="labels")).table
    assert ("region", "2", "south") in told.rows()
    write_release(source.table.drop("sex"), {}, tmp_path / "less.parquet", labels=source.labels)
    assert b"sex at birth" not in (tmp_path / "less.parquet").read_bytes()  # a column that stays at home


def test_spss_says_what_has_no_order(tmp_path):
    options = {
        **LABELLED,
        "variable_measure": {"region": "nominal", "sex": "ordinal"},
        "missing_ranges": {"cost": [99]},
    }
    source = read_source(str(write_with(pyreadstat.write_sav, "t.sav", tmp_path, **options)))
    assert source.table.schema["region"] == pl.String
    assert source.table.schema["sex"] == pl.Enum(["male", "female"])
    assert source.table["cost"].to_list() == [1.5, None, 0.0, 2.0]
    write_release(source.table, {}, tmp_path / "r.dta", labels=source.labels)
    assert pyreadstat.read_dta(tmp_path / "r.dta", output_format="polars")[0]["region"].to_list() == [3, 1, 3, 1]


def test_portable_and_transport_files(tmp_path):
    for writer, name in ((pyreadstat.write_por, "t.por"), (pyreadstat.write_xport, "t.xpt")):
        table = read_table(str(write_with(writer, name, tmp_path)))
        table = table.rename({name: name.lower() for name in table.columns})
        assert table["zip"].to_list() == ["01", "02", None, "3"]
        assert table["cost"].to_list() == [1.5, 99.0, 0.0, 2.0]


def test_sas_with_and_without_its_catalog(tmp_path):
    here = Path(__file__).parent
    (tmp_path / "people.sas7bdat").write_bytes(gzip.decompress((here / "people.sas7bdat.gz").read_bytes()))
    source = read_source(str(tmp_path / "people.sas7bdat"))
    assert source.table.dtypes == [pl.String, pl.Int64, pl.Float64, pl.Date, pl.Int64]
    assert source.table.row(3) == ("00003", None, 4.5, datetime.date(1960, 10, 27), 2)
    assert source.labels == Labels({"cost": "cost of care"})
    (tmp_path / "people.sas7bcat").write_bytes(gzip.decompress((here / "people.sas7bcat.gz").read_bytes()))
    source = read_source(str(tmp_path / "people.sas7bdat"))
    assert source.table["sex"].to_list() == ["male", "female"] * 20
    assert source.notes == ["labels of codes from people.sas7bcat"]
    (tmp_path / "people.sas7bcat").write_bytes(b"SECRET" * 100)
    with pytest.raises(FileError, match="not a complete SAS file"):
        read_source(str(tmp_path / "people.sas7bdat"))


def test_labels_that_are_not_one_to_one_leave_codes_alone(tmp_path):
    labels = {"variable_value_labels": {"sex": {1: "adult", 2: "adult"}}}
    source = read_source(str(write_with(pyreadstat.write_dta, "t.dta", tmp_path, **labels)))
    assert source.table["sex"].to_list() == [1, 2, 2, None]
    assert source.labels.values["sex"] == {1.0: "adult", 2.0: "adult"}
    assert Labels.from_text("[]") == Labels()


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"two words": [1]}, "Stata cannot name a column 'two words'"),
        ({"x": ["y" * 3000]}, "2,045 bytes"),
        ({"x": [2**60]}, "more than 15 digits"),
        ({"x": [datetime.timedelta(1)]}, "a kind that it does not have"),
    ],
)
def test_what_stata_would_change_is_refused(tmp_path, table, text):
    with pytest.raises(InputError, match=text):
        write_release(pl.DataFrame(table), {}, tmp_path / "t.dta")
    assert list(tmp_path.iterdir()) == []


def test_statistical_files_need_no_pandas(tmp_path):
    write_with(pyreadstat.write_sav, "t.sav", tmp_path, **LABELLED)
    (tmp_path / "t.sas7bdat").write_bytes(gzip.decompress((Path(__file__).parent / "people.sas7bdat.gz").read_bytes()))
    (tmp_path / "t.sas7bcat").write_bytes(gzip.decompress((Path(__file__).parent / "people.sas7bcat.gz").read_bytes()))
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from shoal.io import read_table\n"
        "print(len(read_table(sys.argv[1])), len(read_table(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t.sav"), str(tmp_path / "t.sas7bdat")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "4 40\n", done.stderr


# --- what is damaged, or too large ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ending", [".csv.gz", ".csv.zst", ".parquet", ".arrow", ".xlsx", ".dta", ".sav", ".xpt", ".sas7bdat", ".xls"]
)
def test_truncated_files(tmp_path, table, ending):
    path = tmp_path / f"t{ending}"
    if ending == ".sav":
        pyreadstat.write_sav(table, str(path))
    elif ending == ".xpt":
        pyreadstat.write_xport(table, str(path))
    elif ending in (".sas7bdat", ".xls"):
        path.write_bytes(b"\xd0\xcf\x11\xe0SECRET" * 300)
    else:
        write_release(table, {}, path)
    whole = path.read_bytes()
    for length in (5, len(whole) // 3):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match="Cannot read") as error:
            read_table(str(path))
        assert "\n" not in str(error.value)
        assert "SECRET" not in str(error.value)


def test_a_table_larger_than_memory_is_refused_with_its_size(tmp_path, table, monkeypatch):
    for ending in (".csv", ".csv.gz", ".parquet", ".arrow", ".xlsx", ".dta"):
        write_release(table, {}, tmp_path / f"t{ending}")
        with monkeypatch.context() as patch:
            patch.setattr(memory, "available_memory", lambda: 50)
            with pytest.raises(FileError, match=r"needs about .* MiB of memory to be read.*Apache Spark"):
                read_table(str(tmp_path / f"t{ending}"))
    assert memory.available_memory() > 2**20


def test_limits_of_a_container_count(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory.available_memory() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() > 2**20


def test_arrow_that_is_mostly_air(tmp_path, monkeypatch):
    pl.DataFrame({"x": pl.zeros(30_000_000, dtype=pl.Int8, eager=True)}).write_ipc(
        tmp_path / "t.arrow", compression="zstd"
    )
    assert (tmp_path / "t.arrow").stat().st_size < 1_000_000
    monkeypatch.setattr(memory, "available_memory", lambda: 40 * 2**20)
    with pytest.raises(FileError, match="of memory to be read"):
        read_table(str(tmp_path / "t.arrow"))


def test_days_that_python_does_not_have(tmp_path):
    for values in (pl.Series([2**62]).cast(pl.Datetime("us")), pl.Series([-(2**30)], dtype=pl.Int32).cast(pl.Date)):
        pl.DataFrame({"when": values}).write_parquet(tmp_path / "t.parquet")
        with pytest.raises(FileError, match="'when' has days before the year 1 or after 9999"):
            read_table(str(tmp_path / "t.parquet"))


def test_csv_keeps_types_that_it_can_and_refuses_rows_that_it_cannot(tmp_path):
    at = datetime.datetime(2020, 1, 1, 5, 6, 7, 250000)
    table = pl.DataFrame(
        {"at": pl.Series([at, None], dtype=pl.Datetime("ns")), "x": [float("nan"), 1.5], "z": [0.0, -0.0]}
    )
    write_release(table, {}, tmp_path / "t.csv")
    back = read_table(str(tmp_path / "t.csv"))
    assert back.rows() == [(at, None, 0.0), (None, 1.5, 0.0)]
    for ending in ("csv", "xlsx"):
        with pytest.raises(InputError, match="the 1 rows without any value"):
            write_release(pl.DataFrame({"a": [1, None], "b": ["x", None]}), {}, tmp_path / f"u.{ending}")
    with pytest.raises(InputError, match="'a', which has NUL characters"):
        write_release(pl.DataFrame({"a": ["x\0y"]}), {}, tmp_path / "u.csv")


def test_csv_for_a_spreadsheet_that_wants_semicolons(tmp_path):
    table = pl.DataFrame({"a": ["x;y", "=1"], "b": [1.5, -2.25]})
    written = write_release(table, {}, tmp_path / "t.csv", dialect=Dialect(";", decimal=","))
    assert (tmp_path / "t.csv").read_text() == 'a;b\n"x;y";1,5\n\'=1;-2,25\n'
    assert written["file"]["dialect"] == "semicolons, decimal commas, UTF-8"
    assert read_table(str(tmp_path / "t.csv")).equals(table)


def test_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 40 * 2**20)
    zeros = b"a,b\n" + b"0,0\n" * 15_000_000
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(zeros))
    (tmp_path / "t.csv.zst").write_bytes(zstandard.ZstdCompressor().compress(zeros))
    sheet = b"<worksheet><sheetData>" + b"<row><c><v>0</v></c></row>" * 2_000_000 + b"</sheetData></worksheet>"
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", sheet)
    for name in ("t.csv.gz", "t.csv.zst", "t.xlsx"):
        assert (tmp_path / name).stat().st_size < 1_000_000
        with pytest.raises(FileError, match="of memory to be read"):
            read_table(str(tmp_path / name))
    pl.DataFrame({"x": pl.zeros(30_000_000, dtype=pl.Int8, eager=True)}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(FileError, match="of memory to be read"):
        read_table(str(tmp_path / "t.parquet"))


def test_a_workbook_that_lies_about_its_size(tmp_path, monkeypatch):
    sheet = b"<worksheet><sheetData>" + b"<row><c><v>0</v></c></row>" * 2_000_000 + b"</sheetData></worksheet>"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", sheet)
    data = bytearray(buffer.getvalue())
    place = data.rindex(b"PK\x01\x02")  # the directory's entry: declare 100 bytes
    struct.pack_into("<I", data, place + 24, 100)
    struct.pack_into("<I", data, place + 16, zlib.crc32(sheet[:100]))
    (tmp_path / "t.xlsx").write_bytes(data)
    monkeypatch.setattr(memory, "available_memory", lambda: 40 * 2**20)
    with pytest.raises(FileError):
        read_table(str(tmp_path / "t.xlsx"))


@pytest.mark.slow
def test_ten_thousand_columns(tmp_path):
    wide = pl.DataFrame({f"c{i}": [str(i), "x", "1"] for i in range(10_000)})
    path = tmp_path / "t.csv"
    wide.write_csv(path)
    assert read_table(str(path)).shape == (3, 10_000)
    wide.write_parquet(tmp_path / "t.parquet")
    assert read_table(str(tmp_path / "t.parquet")).width == 10_000


def test_what_is_only_read_is_not_written(tmp_path, table):
    for name in ("t.sav", "t.sas7bdat", "t.xpt", "t.xls"):
        with pytest.raises(InputError, match=f"'{name}' cannot be written"):
            write_release(table, {}, tmp_path / name)
    with pytest.raises(InputError, match="only CSV is compressed on writing"):
        find_output("t.parquet.gz")
