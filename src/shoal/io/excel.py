"""Excel workbooks: one sheet is a table, and a cell that is a text stays one."""

from __future__ import annotations

import datetime
import io
import logging
import re
import zipfile
from typing import Any

import polars as pl
import polars.selectors as cs

from shoal.errors import FileError, InputError, suggest
from shoal.io.dialect import check_names, infer_days, infer_times, note_columns
from shoal.io.formats import need_extra
from shoal.io.guarding import in_our_words
from shoal.io.labels import Labels
from shoal.io.memory import check_room

_PER_BYTE = 4.0  # bytes of memory per byte of a sheet's XML: measured, rounded up
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_EXACT = 2**53  # whole numbers above are not exact in Excel, whose numbers are all floating-point
_FIRST_DATE = datetime.date(1900, 3, 1)  # before, Excel counts a day that there was not
_LONGEST_TEXT = 32_767
_CHUNK = 1 << 20
_TABLE, _LABELS = "release", "labels"

# In the XML of a sheet, with or without a prefix of its namespace: cells, formulas and values in them, and errors.
_CELL = re.compile(rb"<(?:\w+:)?c\b([^>]*[^/>])?>(.*?)</(?:\w+:)?c>", re.DOTALL)
_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
_VALUE = re.compile(rb"<(?:\w+:)?(?:v|is)\b[^>]*>[^<]")
_ERROR = re.compile(rb"<(?:\w+:)?c\b[^>]*\bt=[\"']e[\"']")
_TEXT_RESULT = re.compile(rb"\bt=[\"']str[\"']")  # whose value may be an empty text
_ROW = re.compile(rb"<(?:\w+:)?row\b[^>]*?\br=[\"'](\d+)")
_FAR = re.compile(rb"<(?:\w+:)?c\b[^>]*?\br=[\"']([A-Z]{2,})\d")
_PER_PLACE = 40.0  # bytes for every place of the rectangle that a sheet fills, with cells or not


def read_excel(data: bytes, sheet: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    """Return the table on a sheet, the first unless named, and what people should know of how it was read."""
    try:
        import fastexcel
    except ImportError:
        raise need_extra("files", "fastexcel") from None
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it tells of empty columns
    zipped = data.startswith(b"PK")
    with in_our_words("It is not a complete Excel workbook, or it has a password."):
        if zipped:
            _refuse_bomb(data)
        book = fastexcel.read_excel(data)
        name = _choose_sheet(book.sheet_names, sheet)
        notes = [] if len(book.sheet_names) == 1 else [f"sheet {name!r} of {len(book.sheet_names)}"]
        if zipped:
            xml = _sheet_xml(data, book.sheet_names.index(name))
            _check_extent(xml)
            notes += _check_formulas(xml, name)
        else:
            notes.append("whether formulas of an .xls have values cannot be told")
        table = _load(book, name)
        notes += _note_lost(book, name, table)
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))
    if table.is_empty():
        raise FileError(f"Sheet {name!r} has a header but no rows.")
    found = table.select(_narrow_times(narrow(column)) for column in table)
    return found, [*notes, *note_columns(found, table.select(cs.string()))]


def _load(book: Any, name: str) -> pl.DataFrame:
    """Return a sheet, its first row as header."""
    header = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_polars()
    names = ["" if cell is None else str(cell) for cell in (header.row(0) if len(header) else ())]
    if not names:
        raise FileError(f"Sheet {name!r} is empty.")
    check_names(names, f"first row of sheet {name!r}, its header,")
    table: pl.DataFrame = book.load_sheet(name, schema_sample_rows=None).to_polars()
    if table.width != len(names):
        raise FileError(f"Sheet {name!r} has cells beyond its header; every column needs a name.")
    table.columns = names
    return table


def _note_lost(book: Any, name: str, table: pl.DataFrame) -> list[str]:
    """Return a note for every column of numbers, days or truths in which a text such as n/a was taken for missing."""
    suspected = [i for i, column in enumerate(table) if column.dtype != pl.String and column.null_count()]
    if not suspected:
        return []
    texts = book.load_sheet(name, dtypes="string", use_columns=suspected).to_polars()
    lost = {
        table.columns[i]: (table[:, i].is_null() & texts[:, j].is_not_null()).sum() for j, i in enumerate(suspected)
    }
    return [f"column {column!r}: {n:,} cells such as n/a as missing" for column, n in lost.items() if n]


def narrow(column: pl.Series) -> pl.Series:
    """Return floating-point numbers that are all whole as whole numbers, and empty texts as missing."""
    known = column.drop_nulls()
    if column.dtype in (pl.Float32, pl.Float64) and len(known):
        whole = bool((known.is_finite() & (known == known.floor()) & (known.abs() <= _EXACT)).all())
        return column.cast(pl.Int64) if whole else column
    return column.replace("", None) if column.dtype == pl.String else column


def _narrow_times(column: pl.Series) -> pl.Series:
    """Return times that are all midnights, and texts that are all days, as dates."""
    if column.dtype == pl.String:
        days = infer_times(column)
        if days is None and (found := infer_days(column)) is not None:
            days = found[0]
        return column if days is None else days
    if not isinstance(column.dtype, pl.Datetime):
        return column
    known = column.drop_nulls()
    midnight = len(known) > 0 and bool((known == known.dt.truncate("1d")).all())
    return column.cast(pl.Date) if midnight else column.cast(pl.Datetime("us"))


def _choose_sheet(names: list[str], asked: str | None) -> str:
    if not names:
        raise FileError("The workbook has no sheet with cells.")
    if asked is not None and asked not in names:
        raise InputError(f"sheet={asked!r} is not in the workbook{suggest(asked, names)}")
    return names[0] if asked is None else asked


def _refuse_bomb(data: bytes) -> None:
    """Refuse a workbook whose parts would unpack to more than memory holds, whatever sizes it declares."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        check_room(_PER_BYTE * sum(part.file_size for part in parts.infolist()), "The workbook")
        unpacked = 0
        for part in parts.infolist():
            with parts.open(part) as stream:
                while piece := stream.read(_CHUNK):
                    unpacked += len(piece)
        check_room(_PER_BYTE * unpacked, "The workbook")


def _check_formulas(xml: bytes, name: str) -> list[str]:
    """Refuse formulas without a value, which would be read as missing; tell of those with one, and of errors."""
    formulas = empty = 0
    for about, inside in _CELL.findall(xml) if _FORMULA.search(xml) else []:
        if _FORMULA.search(inside):
            formulas += 1
            empty += not _VALUE.search(inside) and not _TEXT_RESULT.search(about)
    if empty:
        raise FileError(
            f"Sheet {name!r} has {empty:,} formula cells without a value; open it in Excel and save it, or paste the "
            "values."
        )
    errors = len(_ERROR.findall(xml))
    notes = [f"{formulas:,} formula cells, by the values last computed"] if formulas else []
    return [*notes, f"{errors:,} cells with an error such as #N/A, as missing"] if errors else notes


def _check_extent(xml: bytes) -> None:
    """Refuse a sheet with a cell so far from the others that the rectangle of all would not fit into memory."""
    rows = max((int(row) for row in _ROW.findall(xml)), default=0)
    letters = max(set(_FAR.findall(xml)), key=lambda far: (len(far), far), default=b"Z")
    columns = 0
    for letter in letters:
        columns = 26 * columns + letter - 64
    check_room(_PER_PLACE * rows * columns, "The sheet")


def _sheet_xml(data: bytes, index: int) -> bytes:
    """Return the XML of a sheet, by its place in the workbook; nothing if the workbook keeps it in another form."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        names = set(parts.namelist())
        if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= names:
            return b""
        order = [
            found[1]
            for found in re.findall(rb"<(?:\w+:)?sheet\b[^>]*?\s\w+:id=([\"'])(.*?)\1", parts.read("xl/workbook.xml"))
        ]
        relations = parts.read("xl/_rels/workbook.xml.rels")
        targets = {}
        for relation in re.findall(rb"<(?:\w+:)?Relationship\b[^>]*>", relations):
            identity, target = (re.search(rb"\b%s=[\"']([^\"']+)" % name, relation) for name in (b"Id", b"Target"))
            if identity and target:
                targets[identity[1]] = target[1].decode()
        target_path = targets.get(order[index], "") if index < len(order) else ""
        path = target_path.lstrip("/") if target_path.startswith("/") else f"xl/{target_path}"
        return parts.read(path) if path in names else b""


def write_excel(table: pl.DataFrame, labels: Labels) -> bytes:
    """Return a table as a workbook: text cells are texts, never formulas or links; a second sheet has labels."""
    try:
        import xlsxwriter
    except ImportError:
        raise need_extra("files", "xlsxwriter") from None
    if len(table) >= _MOST_ROWS or table.width > _MOST_COLUMNS:
        raise InputError(
            f"An Excel sheet holds {_MOST_ROWS - 1:,} rows and {_MOST_COLUMNS:,} columns, but the table has "
            f"{len(table):,} and {table.width:,}; choose .parquet or .csv."
        )
    columns = [_for_excel(column) for column in table]
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True, "constant_memory": True})
    sheet = book.add_worksheet(_TABLE)
    bold = book.add_format({"bold": True})
    formats = {
        pl.Date: book.add_format({"num_format": "yyyy-mm-dd"}),
        pl.Datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
    }
    sheet.freeze_panes(1, 0)
    sheet.set_row(0, None, bold)
    for j, column in enumerate(columns):
        sheet.write_string(0, j, column.name, bold)
    writers = [_writer(sheet, column.dtype, formats.get(column.dtype.base_type())) for column in columns]
    for i, row in enumerate(zip(*(column.to_list() for column in columns), strict=True), start=1):
        for j, value in enumerate(row):
            if value is not None:
                writers[j](i, j, value)
    if labels:
        _write_labels(book.add_worksheet(_LABELS), table, labels)
    book.close()
    return buffer.getvalue()


def _writer(sheet: Any, dtype: pl.DataType, style: Any) -> Any:
    if dtype == pl.Boolean:
        return sheet.write_boolean
    if dtype.is_numeric():
        return sheet.write_number
    if dtype.is_temporal():
        return lambda i, j, value: sheet.write_datetime(i, j, value, style)
    return sheet.write_string


def _for_excel(column: pl.Series) -> pl.Series:
    """Return a column as Excel can hold it; refuse one that it would change."""
    dtype = column.dtype
    if dtype in (pl.Categorical, pl.Enum, pl.Null):
        column = column.cast(pl.String)
    elif dtype.is_decimal():
        column = column.cast(pl.Float64)
    elif dtype.is_float():
        column = column.fill_nan(None)
    known = column.drop_nulls()
    problem = None
    if column.dtype == pl.String:
        problem = "texts of more than 32,767 letters" if (known.str.len_chars() > _LONGEST_TEXT).any() else None
    elif column.dtype.is_integer():
        problem = "whole numbers of more than 15 digits" if (known.cast(pl.Int128).abs() > _EXACT).any() else None
    elif column.dtype.is_float():
        problem = "numbers that are infinite or above 1.797e308" if (known.abs() > 1.797e308).any() else None
    elif column.dtype == pl.Date or (isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is None):
        problem = "dates before March 1900" if (known.dt.date() < _FIRST_DATE).any() else None
    elif column.dtype != pl.Boolean:
        problem = "values of a kind that it does not have"
    if problem is not None:
        raise InputError(f"Excel cannot hold column {column.name!r}, which has {problem}; choose .parquet or .csv.")
    return column


def _write_labels(sheet: Any, table: pl.DataFrame, labels: Labels) -> None:
    rows = [("column", "code", "label")]
    for name in table.columns:
        if name in labels.columns:
            rows.append((name, "", labels.columns[name]))
        rows += [(name, f"{code:g}" if isinstance(code, float) else str(code), label)
                 for code, label in labels.values.get(name, {}).items()]  # fmt: skip
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            sheet.write_string(i, j, text)
