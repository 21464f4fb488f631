"""Read CSV in its dialects: separator, encoding and decimal mark are guessed, told, and may be given."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from shoal.errors import FileError, InputError

# A text cell that begins so would be run as a formula by a spreadsheet; the writer puts an apostrophe before it.
FORMULA = r"^'*[=+\-@\t\r]"
_ESCAPED = r"^'('*[=+\-@\t\r])"

_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_FLOAT = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DECIMAL_COMMA = r"^-?((0|[1-9][0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]*)?|,[0-9]+)([eE][+-]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"

_SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
_WINDOWS = "cp1252"  # what is guessed where text is not UTF-8
_SAMPLE = 1 << 16  # bytes looked at to guess the separator
_CHUNK = 1 << 20
_MOSTLY = 0.8  # share of numbers in a column of which it is said that some cells are none
_DAYS = r"^[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4}$"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; None is guessed.

    Attributes
    ----------
    separator : one character
    encoding : a name that Python knows
    decimal : "." or ","
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def check(self) -> None:
        """Refuse what no file can be written in."""
        mark = self.separator
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
            raise InputError(f"separator={mark!r} must be one character, such as ';' or a tab.")
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal={self.decimal!r} must be '.' or ','.")
        if mark is not None and mark == self.decimal:
            raise InputError(f"separator and decimal are both {mark!r}; one of them must be something else.")
        try:
            known = self.encoding is None or getattr(codecs.lookup(self.encoding), "_is_text_encoding", True)
        except (LookupError, ValueError):
            known = False
        if not known or self.encoding == "":
            raise InputError(f"encoding={self.encoding!r} is not known; utf-8, cp1252 or latin-1, for instance.")

    def describe(self) -> str:
        """Return the dialect in words."""
        between = _SEPARATORS.get(self.separator or ",", f"{self.separator!r} between cells")
        mark = "decimal commas" if self.decimal == "," else "decimal points"
        return (
            f"{between}, {mark}, {'Windows-1252' if self.encoding == _WINDOWS else (self.encoding or 'utf-8').upper()}"
        )


_PLAIN = Dialect(",", "utf-8", ".")


def read_csv(data: bytes, asked: Dialect) -> tuple[pl.DataFrame, list[str]]:
    """Return the table of a CSV file, types inferred from all rows, and what people should know of how it was read."""
    data, encoding = _to_utf8(data, asked.encoding)
    data, told = _take_hint(data)
    separator = asked.separator or told or _guess_separator(data)
    names = _read_header(data, separator)
    table = pl.read_csv(io.BytesIO(data), separator=separator, new_columns=names, infer_schema=False, encoding="utf8")
    table = table.with_columns(pl.all().replace("", None))
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines are nobody
    if table.is_empty():
        raise FileError("The CSV file has a header but no rows.")
    if table.width != len(names):
        raise FileError(f"The CSV header has {len(names)} names, but the rows have {table.width} cells.")
    if table[:, -1].null_count():
        _refuse_short_rows(data, separator, len(names))
    table = table.rename({name: re.sub(_ESCAPED, r"\1", name) for name in names})
    decimal = asked.decimal or _guess_decimal(table, separator)
    found = table.select(infer_type(column, decimal) for column in table)
    dialect = Dialect(separator, encoding, decimal)
    notes = [] if dialect == _PLAIN else [dialect.describe()]
    return found, [*notes, *note_columns(found, table, decimal)]


def _to_utf8(data: bytes, asked: str | None) -> tuple[bytes, str]:
    """Return text in UTF-8 without a mark of its byte order, and how it was encoded."""
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    mark, marked = next(((mark, name) for mark, name in marks.items() if data.startswith(mark)), (b"", None))
    wanted = asked if asked is not None else marked or "utf-8"
    name = codecs.lookup(wanted).name
    if marked is not None and name in (marked, "utf-16"):
        data, name = data[len(mark) :], marked
    if name == "utf-8" and not _decodes(data, name):
        if asked is None and _decodes(data, _WINDOWS):
            name = _WINDOWS
        else:
            raise FileError("The CSV file is not UTF-8; say its encoding, or save it as UTF-8 (in Excel: CSV UTF-8).")
    if name not in ("utf-8", "ascii"):
        try:
            data = b"".join(_recode(data, name))
        except (UnicodeError, LookupError):
            raise FileError(f"The CSV file is not in the encoding {wanted!r}; say another one.") from None
    if b"\0" in data:
        raise FileError("The CSV file has NUL characters: is it text, perhaps in UTF-16? Say its encoding.")
    return data, name


def _decodes(data: bytes, encoding: str) -> bool:
    """Return whether data are text in an encoding; control characters that nobody types speak against it."""
    try:
        for piece in _recode(data, encoding):
            if encoding == _WINDOWS and re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", piece):
                return False
    except UnicodeError:
        return False
    return True


def _recode(data: bytes, encoding: str) -> Iterator[bytes]:
    """Yield text in UTF-8, piece by piece, so that little more memory is needed."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), _CHUNK):
        yield decoder.decode(data[start : start + _CHUNK], start + _CHUNK >= len(data)).encode()


def _take_hint(data: bytes) -> tuple[bytes, str | None]:
    """Return data without the line by which spreadsheets tell one another the separator, and that."""
    hint = re.match(rb'"?sep=(.)"?\r?\n', data, re.IGNORECASE)
    return (data, None) if hint is None else (data[hint.end() :], hint[1].decode())


def _guess_separator(data: bytes) -> str:
    """Return the mark by which most rows have as many cells as the header, more than one."""
    sample = data[:_SAMPLE].decode("utf-8", errors="replace")
    whole = len(data) <= _SAMPLE
    found, best = ",", (0.0, 0)
    for mark in _SEPARATORS:
        try:
            rows = [row for row in csv.reader(io.StringIO(sample, newline=""), delimiter=mark) if row]
        except csv.Error:  # a cell longer than it reads
            continue
        rows = rows if whole else rows[:-1]
        if len(rows) > 1 and len(rows[0]) > 1:
            fitting = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
            if (fitting, len(rows[0])) > best:
                found, best = mark, (fitting, len(rows[0]))
        elif len(rows) == 1 and len(rows[0]) > best[1]:
            found, best = mark, (0.0, len(rows[0]))
    return found


def _read_header(data: bytes, separator: str) -> list[str]:
    header = pl.read_csv(
        io.BytesIO(data), separator=separator, has_header=False, n_rows=1, infer_schema=False, encoding="utf8"
    )
    return check_names(["" if name is None else name for name in header.row(0)], "CSV header")


def check_names(names: list[str], what: str) -> list[str]:
    """Refuse names of columns that are empty or occur twice."""
    if not names or len(set(names)) < len(names) or "" in names:
        raise FileError(f"The {what} has empty or repeated names; every column needs a name of its own.")
    return names


def _refuse_short_rows(data: bytes, separator: str, width: int) -> None:
    """Refuse rows of too few cells, which the fast reader fills up: the sign of a file that was cut."""
    csv.field_size_limit(len(data) + 1)
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    for number, row in enumerate(csv.reader(lines, delimiter=separator), start=1):
        if row and len(row) != width:
            raise FileError(f"CSV row {number} has {len(row)} cells, but the header has {width} names.")


def _guess_decimal(table: pl.DataFrame, separator: str) -> str:
    """Return the decimal mark: a comma if columns of numbers have one, and none has a point; refuse both."""
    if separator == ",":
        return "."
    commas = [c.name for c in table if _all_match(c, _DECIMAL_COMMA) and c.str.contains(",", literal=True).any()]
    points = [c.name for c in table if _all_match(c, _FLOAT) and c.str.contains(".", literal=True).any()]
    if commas and points:
        raise FileError(
            f"Column {commas[0]!r} has decimal commas, column {points[0]!r} decimal points: say which are numbers, "
            "decimal=',' or decimal='.'."
        )
    return "," if commas else "."


def _all_match(column: pl.Series, pattern: str) -> bool:
    """Return whether all cells match, looking at the first ones first: most columns fail there."""
    known = column.drop_nulls()
    return len(known) > 0 and bool(known.head(100).str.contains(pattern).all() and known.str.contains(pattern).all())


def infer_type(column: pl.Series, decimal: str = ".") -> pl.Series:
    """Return a text column as what all of its cells are."""
    if column.null_count() == len(column):
        return column
    plain = column
    if decimal == "," and _all_match(column, _DECIMAL_COMMA):
        plain = column.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    elif decimal == "," and not _all_match(column, _INTEGER):
        return _infer_rest(column)
    if _all_match(plain, _INTEGER) and (plain.drop_nulls().str.strip_prefix("-").str.len_chars() <= 18).all():
        return plain.cast(pl.Int64)
    if _all_match(plain, _FLOAT):
        known = plain.drop_nulls()
        digits = known.str.replace("[eE].*$", "").str.replace(r"^-?0*\.?0*", "").str.count_matches("[0-9]")
        numbers = plain.cast(pl.Float64)
        # Codes look like numbers too: 250.0 beside 250.00, 8E5, or more digits than a number can hold.
        is_code = (digits > 17).any() or known.str.contains("^[0-9]+E").any() or numbers.is_infinite().any()
        return column if is_code or known.n_unique() > numbers.drop_nulls().n_unique() else numbers
    return _infer_rest(column)


def _infer_rest(column: pl.Series) -> pl.Series:
    """Return a text column of which not all cells are numbers as what they are."""
    if column.drop_nulls().is_in(["true", "false"]).all():
        return column == "true"
    times = infer_times(column)
    if times is None and (days := infer_days(column)) is not None:
        return days[0]
    return column.str.replace(_ESCAPED, "$1") if times is None else times


def infer_days(column: pl.Series) -> tuple[pl.Series, str] | None:
    """Return a text column of days written 31.12.2020 or 12/31/2020 as dates, and which comes first.

    With slashes only if some day of the column is above 12, so that there is one way to read it.
    """
    if not _all_match(column, _DAYS):
        return None
    dotted = _all_match(column, r"^[^/]*$")
    if not dotted and not _all_match(column, r"^[^.]*$"):
        return None
    form = column.str.replace_all(".", "/", literal=True)
    ways = {"day first": form.str.to_date("%d/%m/%Y", strict=False)}
    if not dotted:
        ways["month first"] = form.str.to_date("%m/%d/%Y", strict=False)
    whole = {how: dates for how, dates in ways.items() if dates.null_count() == column.null_count()}
    how, dates = next(iter(whole.items())) if len(whole) == 1 else ("", None)
    return None if dates is None else (dates, how)


def note_columns(table: pl.DataFrame, texts: pl.DataFrame, decimal: str = ".") -> list[str]:
    """Return what people should know of how columns of text were read, or were not."""
    notes = []
    for text in texts:
        if table[text.name].dtype == pl.Date and (found := infer_days(text)) is not None:
            notes.append(f"column {text.name!r} as dates, {found[1]}")
        if table[text.name].dtype != pl.String or (known := text.drop_nulls()).is_empty():
            continue
        if _all_match(text, _DAYS):
            notes.append(f"column {text.name!r} as text: its days may be read in two ways; write them as 2020-12-31")
            continue
        numbers = known.str.contains(_DECIMAL_COMMA if decimal == "," else _FLOAT).sum()
        if _MOSTLY * len(known) <= numbers < len(known):
            notes.append(
                f"column {text.name!r} as text: {len(known) - numbers:,} of its {len(known):,} cells are no numbers"
            )
    return notes


def infer_times(column: pl.Series) -> pl.Series | None:
    """Return a text column of which all cells are ISO dates, or times, as such; None if they are not."""
    if _all_match(column, _DATE):
        dates = column.str.to_date("%Y-%m-%d", strict=False)
        return dates if dates.null_count() == column.null_count() else None
    if _all_match(column, _DATETIME):
        times = column.str.replace(" ", "T", literal=True).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False)
        return times if times.null_count() == column.null_count() else None
    return None
