"""Columns to numbers and back: level codes, standardised coordinates, missing values, and dtypes restored exactly."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isnan
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.errors import CheckError, InputError, suggest
from shoal.schema import Column, Kind, read_any, read_schema

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_EPOCH = datetime.date(1970, 1, 1).toordinal()
N_BINS = 20  # of a continuous column, where distributions are compared in bins
MANY_LEVELS = 32  # above this a column with an order counts as continuous, a nominal one is embedded approximately


@dataclass(frozen=True)
class EncodedColumn:
    """One column as codes: levels 0, 1, ... in their order, missing last; and as numbers where it has an order."""

    name: str
    kind: Kind
    codes: Codes
    n_levels: int
    missing: NDArray[np.bool_]
    numbers: Floats | None  # None for nominal columns; NaN where missing
    holds_numbers: bool = True  # whether fresh numbers can be written into its dtype

    @property
    def is_continuous(self) -> bool:
        """Whether the column is a number or time with many distinct values."""
        return self.kind in ("numeric", "datetime") and self.n_levels > MANY_LEVELS

    def binned(self) -> Codes:
        """Return the codes, those of a continuous column in 20 quantile bins."""
        return bin_codes(self.codes, N_BINS) if self.is_continuous else self.codes

    def followed_by(self, other: EncodedColumn) -> EncodedColumn:
        """Return the column with another one of the same codes below it."""
        numbers = None
        if self.numbers is not None and other.numbers is not None:
            numbers = np.concatenate([self.numbers, other.numbers])
        missing = np.concatenate([self.missing, other.missing])
        return replace(self, codes=np.concatenate([self.codes, other.codes]), missing=missing, numbers=numbers)

    def take(self, rows: Codes) -> EncodedColumn:
        """Return the column at these rows, with the same codes."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(self, codes=self.codes[rows], missing=self.missing[rows], numbers=numbers)


@dataclass(frozen=True)
class Coordinate:
    """One axis of the space in which distances are measured and points are dithered.

    A number has standardised `values`. A cell (a nominal column, or whether a number is missing) has `codes` for
    values and an `embedding` of its levels, different levels at distance 1. `targets` are the codes that the
    column-by-column recoveries hand out: the codes themselves, or quantile bins for a continuous column.
    """

    targets: Codes
    values: Floats | None = None
    codes: Codes | None = None
    embedding: Floats | None = None

    def position(self) -> Floats:
        """Return the coordinate as columns in which Euclidean distance means something, shape (n, m)."""
        if self.values is not None:
            return self.values[:, None]
        assert self.embedding is not None
        assert self.codes is not None
        return self.embedding[self.codes]


def find_missing(series: nw.Series[Any]) -> NDArray[np.bool_]:
    """Return where a column has no value: null, NA, NaT or NaN alike."""
    missing = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_float():
        missing = missing | series.is_nan().fill_null(value=True).to_numpy().astype(bool)
    return missing


def encode(series: nw.Series[Any], column: Column) -> EncodedColumn:
    """Encode a column that will be used as data, checking its values."""
    assert column.kind is not None
    missing = find_missing(series)
    if column.levels is not None:
        codes = _codes_of_levels(series, missing, column.levels)
        numbers = codes.astype(np.float64)
    elif column.kind == "nominal":
        codes, numbers = _codes_of_values(series, missing), None
    else:
        values, missing = _read_finite_numbers(series, missing, column.kind)
        _refuse_empty(series.name, missing)
        codes = np.zeros(len(values), dtype=np.int64)
        codes[~missing] = np.unique(values[~missing], return_inverse=True)[1]
        numbers = codes.astype(np.float64) if column.kind == "ordinal" else values.astype(np.float64)
    _refuse_empty(series.name, missing)
    codes = _make_dense(codes, missing)
    if numbers is not None:
        numbers = np.where(missing, np.nan, numbers)
    n_levels, writable = int(codes.max()) + 1, _holds_numbers(series.dtype)
    return EncodedColumn(series.name, column.kind, codes, n_levels, missing, numbers, writable)


def _read_finite_numbers(
    series: nw.Series[Any], missing: NDArray[np.bool_], kind: Kind
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the numbers of a column and where it has none, refusing infinite ones."""
    values = _read_numbers(series, missing, kind)
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)  # texts and objects may say so too
        if np.isinf(values).any():
            raise InputError(f"Column {series.name!r} has infinite values; make them missing or remove the rows.")
    return values, missing


def read_numbers(series: nw.Series[Any], column: Column) -> Floats:
    """Return a column with an order as numbers, NaN where missing, perhaps everywhere; ordered levels are 0, 1, ..."""
    assert column.kind is not None
    missing = find_missing(series)
    if column.levels is not None:
        values: NDArray[Any] = _codes_of_levels(series, missing, column.levels)
    else:
        values, missing = _read_finite_numbers(series, missing, column.kind)
    return np.where(missing, np.nan, values.astype(np.float64))


def encode_table(
    X: Any, kinds: Mapping[str, str | Sequence[Any]] | None = None, released: Any = None
) -> list[EncodedColumn]:
    """Encode every column of a table or array; with a released table, its rows after those of the original.

    The codes and numbers of the two then mean the same.
    """
    frame = read_any(X, "X")
    schema = read_schema(frame, quasi_identifiers=frame.columns, kinds=kinds)
    if released is None:
        return [encode(frame[column.name], column) for column in schema.columns]
    other = read_any(released, "X_released")
    absent = [name for name in frame.columns if name not in other.columns]
    if absent:
        raise InputError(f"X_released has no column {absent[0]!r}{suggest(absent[0], other.columns)}")
    return [_encode_pair(frame[column.name], other[column.name], column) for column in schema.columns]


def _encode_pair(a: nw.Series[Any], b: nw.Series[Any], column: Column) -> EncodedColumn:
    """Encode two columns of one meaning, one after the other."""
    missing = np.concatenate([find_missing(a), find_missing(b)])
    _refuse_empty(column.name, missing)
    numbers = None
    if column.kind == "nominal":
        keys = [None if gone else level_key(v) for v, gone in zip((*a.to_list(), *b.to_list()), missing, strict=True)]
        code = {key: i for i, key in enumerate(sorted(set(keys) - {None}, key=str))} | {None: 0}
        codes = np.fromiter((code[key] for key in keys), dtype=np.int64, count=len(keys))
    else:
        kind = "numeric" if column.kind == "ordinal" and column.levels is None else column.kind
        parts = [encode(series, replace(column, kind=kind)).numbers for series in (a, b)]
        numbers = np.concatenate([part for part in parts if part is not None])
        missing = np.isnan(numbers)
        codes = np.unique(np.where(missing, 0.0, numbers), return_inverse=True)[1]
        if column.kind == "ordinal" and column.levels is None:
            numbers = np.where(missing, np.nan, _make_dense(codes, missing))
    codes = _make_dense(codes, missing)
    return EncodedColumn(column.name, column.kind or "nominal", codes, int(codes.max()) + 1, missing, numbers)


def _holds_numbers(dtype: Any) -> bool:
    """Return whether fresh numbers can be written: not into text, times of day or Python objects."""
    if dtype in (nw.Int128, nw.UInt128):
        return False
    return bool(dtype.is_numeric()) or dtype in (nw.Boolean, nw.Date, nw.Datetime, nw.Duration)


def _refuse_empty(name: str, missing: NDArray[np.bool_]) -> None:
    if missing.all():
        raise InputError(f"Column {name!r} has no value at all; drop it.")


def _make_dense(codes: Codes, missing: NDArray[np.bool_]) -> Codes:
    """Return codes 0, 1, ... of the levels that occur, missing after the last."""
    dense = np.zeros(len(codes), dtype=np.int64)
    levels, dense[~missing] = np.unique(codes[~missing], return_inverse=True)
    dense[missing] = len(levels)
    return dense


def _read_numbers(series: nw.Series[Any], missing: NDArray[np.bool_], kind: Kind) -> NDArray[Any]:
    """Return integers or floats that order the column; what stands where it is missing does not matter."""
    dtype = series.dtype
    if dtype in (nw.Datetime, nw.Date, nw.Duration):
        times = series.to_numpy()
        if times.dtype == object:  # dates of pandas' Arrow-backed dtype, where some are missing
            times = np.array([None if gone else v for v, gone in zip(times, missing, strict=True)], dtype="M8[us]")
        return times.astype("m8[us]" if dtype == nw.Duration else "M8[us]").view(np.int64)
    if dtype == nw.Boolean:
        return series.fill_null(value=False).to_numpy().astype(np.int64)
    if dtype.is_numeric() and not dtype.is_decimal():
        return np.asarray(series.fill_null(0).to_numpy())
    try:
        return np.array([0.0 if gone else _as_float(v) for v, gone in zip(series.to_list(), missing, strict=True)])
    except (TypeError, ValueError, OverflowError):
        what = "dates or times: text has to be converted first" if kind == "datetime" else "numbers"
        raise InputError(f"Column {series.name!r} is to be {kind}, but some values are not {what}.") from None


def _as_float(value: Any) -> float:
    """Return a number, or microseconds, as columns of times have them: since 1970, since midnight, or of a duration."""
    if isinstance(value, datetime.datetime):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else datetime.UTC)
        return (value - epoch) / datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value.toordinal() - _EPOCH) * 86_400e6
    if isinstance(value, datetime.time):
        return (value.hour * 3600.0 + value.minute * 60.0 + value.second) * 1e6 + value.microsecond
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(microseconds=1)
    return float(value)


def _codes_of_values(series: nw.Series[Any], missing: NDArray[np.bool_]) -> Codes:
    """Return codes of a nominal column, levels in the order of their text: no order in the data may show."""
    if series.dtype == nw.Boolean:
        return series.fill_null(value=False).to_numpy().astype(np.int64)
    if series.dtype.is_integer():
        return np.unique(series.fill_null(0).to_numpy(), return_inverse=True)[1].astype(np.int64)
    values = [None if gone else value for value, gone in zip(series.to_list(), missing, strict=True)]
    code = {value: i for i, value in enumerate(sorted(set(values) - {None}, key=str))} | {None: 0}
    return np.fromiter((code[value] for value in values), dtype=np.int64, count=len(values))


def _codes_of_levels(series: nw.Series[Any], missing: NDArray[np.bool_], levels: tuple[Any, ...]) -> Codes:
    code: dict[Any, int] = {level_key(level): i for i, level in enumerate(levels)}
    code = {str(level): i for i, level in enumerate(levels)} | code
    values = zip(series.to_list(), missing, strict=True)
    found = (0 if gone else code.get(level_key(v), code.get(str(v), -1)) for v, gone in values)
    codes = np.fromiter(found, dtype=np.int64, count=len(missing))
    unknown = int((codes < 0).sum())
    if unknown:
        raise InputError(f"Column {series.name!r} has {unknown} values that are not among its {len(levels)} levels.")
    return codes


def level_key(value: Any) -> Any:
    """Return a number as a number, so that 1 and 1.0 are one level; anything else as text."""
    return float(value) if isinstance(value, Real | Decimal) and not isinstance(value, bool) else str(value)


def is_missing(value: Any) -> bool:
    """Return whether a single value is missing: None, NaN, NA or NaT alike."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))


def make_coordinates(
    columns: list[EncodedColumn], n_bins: int | None = None, reference: int | None = None
) -> list[Coordinate]:
    """Return the coordinates of encoded columns, in column order, a missing-or-not cell before its number.

    n_bins is the number of quantile bins of a continuous column's targets; default: so many that the cells of all
    columns together hold about five records each, from 4 to 64. reference: the first so many rows, default all, are
    the ones by which columns are standardised.
    """
    n = len(columns[0].codes)
    n_bins = n_bins or int(np.clip((n / 5) ** (1 / len(columns)), 4, 64))
    coordinates = []
    for column in columns:
        if column.numbers is None:
            embedding = embed_levels(column.n_levels)
            coordinates.append(Coordinate(column.codes, codes=column.codes, embedding=embedding))
            continue
        targets = bin_codes(column.codes, n_bins) if column.is_continuous else column.codes
        if column.missing.any():
            gone = column.missing.astype(np.int64)
            coordinates.append(Coordinate(gone, codes=gone, embedding=embed_levels(2)))
            targets = np.where(column.missing, 0, targets)
        coordinates.append(Coordinate(targets, values=standardise(column.numbers, reference)))
    return coordinates


def standardise(numbers: Floats, reference: int | None = None) -> Floats:
    """Return numbers with mean 0 and variance 1 (divisor n), missing ones at the mean, constant columns at 0.

    With reference, mean and variance are those of the first so many rows; where these are constant, of all.
    """
    known = ~np.isnan(numbers)
    values = numbers[known]
    result = np.zeros(len(numbers))
    if len(values) == 0 or values.min() == values.max():
        return result
    largest = np.abs(values).max()
    model = values if reference is None else values[: known[:reference].sum()]
    model = model if len(model) and model.min() < model.max() else values
    centre = (model / largest).mean()
    scaled = values / largest - centre  # of order 1, so that squares neither over- nor underflow
    spread = scaled if model is values else model / largest - centre
    result[known] = scaled / np.sqrt((spread**2).mean())
    return result


def positions(columns: list[EncodedColumn], reference: int | None = None) -> Floats:
    """Return the records as points, distances between which mean something, shape (n, p)."""
    return np.hstack([coordinate.position() for coordinate in make_coordinates(columns, 4, reference)])


def embed_levels(n_levels: int) -> Floats:
    """Return a point for every level, two different ones at distance 1.

    Two levels are 0 and 1 on a line; up to 32 are one-hot / sqrt 2. More are code words of 32 signs, at distance
    about 1 (their squared distances have mean 1 and standard deviation 0.18): memory does not grow with the levels.
    """
    if n_levels <= 2:
        return np.arange(n_levels, dtype=np.float64)[:, None]
    if n_levels <= MANY_LEVELS:
        return np.eye(n_levels) / np.sqrt(2)
    masks = np.arange(1, MANY_LEVELS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # splitmix64, first words
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        masks = (masks ^ (masks >> np.uint64(shift))) * np.uint64(factor)
    words = np.bitwise_count(np.arange(n_levels, dtype=np.uint64)[:, None] & masks) & 1
    return (1.0 - 2.0 * words) / np.sqrt(2 * MANY_LEVELS)


def bin_codes(codes: Codes, n_bins: int) -> Codes:
    """Return quantile bins of ordered codes; equal codes share a bin."""
    counts = np.bincount(codes)
    before = np.cumsum(counts) - counts
    return (before * n_bins // len(codes))[codes]


def joint_codes(columns: list[Codes]) -> Codes:
    """Return one code per distinct combination of the columns' codes."""
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        joint = joint * (int(codes.max()) + 1) + codes
        joint = np.unique(joint, return_inverse=True)[1].astype(np.int64)
    return joint


def restore(
    series: nw.Series[Any], source: Codes, numbers: Floats | None = None, *, promote: bool = False
) -> nw.Series[Any]:
    """Return the series at the source rows, its dtype untouched; with numbers, those in place of the values there.

    Where a source row or a number is missing, the row's own value stays. promote=True turns integers into floats
    (means need them); else numbers are rounded and clipped to what the dtype can hold.
    """
    if numbers is None:
        return series[source]
    if promote and not series.dtype.is_float():
        series = _as_floats(series)
    taken = series[source]
    fresh = ~find_missing(taken) & ~np.isnan(numbers)
    values = np.where(fresh, numbers, 0.0)
    new = nw.new_series(series.name, _fit(values, series.dtype), backend=series.implementation)
    if series.dtype in (nw.Date, nw.Datetime, nw.Duration):
        zone = getattr(series.dtype, "time_zone", None)
        new = new.cast(nw.Duration("us") if series.dtype == nw.Duration else nw.Datetime("us", zone))
    new = new.cast(series.dtype)
    if series.implementation is nw.Implementation.PYARROW:  # which cannot scatter into durations
        import pyarrow.compute

        native = pyarrow.compute.if_else(pyarrow.array(fresh), new.to_native(), taken.to_native())
        return nw.from_native(native, series_only=True).alias(series.name)
    at = np.flatnonzero(fresh)
    return taken.scatter(at, new[at])


def _as_floats(series: nw.Series[Any]) -> nw.Series[Any]:
    try:
        return series.cast(nw.Float64())
    except ValueError:  # Arrow refuses to round large integers
        values = [None if gone else float(v) for v, gone in zip(series.to_list(), find_missing(series), strict=True)]
        return nw.new_series(series.name, values, nw.Float64(), backend=series.implementation)


def _fit(values: Floats, dtype: Any) -> NDArray[Any]:
    """Return values rounded and clipped to what a dtype can hold, times as microseconds."""
    if dtype.is_integer():
        limits = np.iinfo(str(dtype).lower())
        largest = np.nextafter(float(limits.max), 0)  # 2^63 - 1 is no float: the one below it is
        return np.rint(np.clip(values, float(limits.min), largest)).astype(limits.dtype)
    if dtype in (nw.Date, nw.Datetime, nw.Duration):
        step = {"s": 1e6, "ms": 1e3}.get(getattr(dtype, "time_unit", "us"), 86_400e6 if dtype == nw.Date else 1.0)
        limit = 9.2e15 if getattr(dtype, "time_unit", "us") == "ns" else 9.2e18
        return (np.floor(np.clip(values, -limit, limit) / step) * step).astype(np.int64)
    return values


def forget_order(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return the series without any trace of the order in which its values once stood.

    Categories often stand in the order of their first occurrence, which is that of the original rows: two such
    columns side by side would tell which values came from one record. So unordered categories are sorted. And a
    polars text is a view into a buffer that keeps the original order when rows are taken from it, in memory and in
    Arrow files: such columns are built anew.
    """
    native = series.to_native()
    if series.implementation is nw.Implementation.POLARS:
        if not any(text in str(native.dtype) for text in ("String", "Binary")):  # also inside lists and structs
            return series
        sorted_native = type(native)(native.name, native.to_list(), dtype=native.dtype)
        if not sorted_native.equals(native):  # nanoseconds beside text, for instance
            raise CheckError(f"Column {series.name!r} cannot be built anew without a change; take it apart or drop it.")
    elif series.implementation is nw.Implementation.PYARROW:
        sorted_native = _sort_dictionary(native)
    elif series.implementation is nw.Implementation.PANDAS and hasattr(native.dtype, "pyarrow_dtype"):
        sorted_native = type(native)(
            type(native.array)(_sort_dictionary(native.array.__arrow_array__())), name=native.name
        )
    elif series.implementation is nw.Implementation.PANDAS and hasattr(native, "cat") and not native.cat.ordered:
        sorted_native = native.cat.set_categories(sorted(native.cat.categories, key=str))
    else:
        return series
    return nw.from_native(sorted_native, series_only=True).alias(series.name)


def _sort_dictionary(array: Any) -> Any:
    """Return an Arrow dictionary column with its dictionary sorted, all values kept."""
    import pyarrow as pa

    if pa.types.is_nested(array.type) and "dictionary<" in str(array.type):
        return pa.chunked_array([pa.array(array.to_pylist(), array.type)])
    if not pa.types.is_dictionary(array.type) or array.type.ordered:
        return array
    whole = pa.chunked_array(array) if isinstance(array, pa.Array) else array
    whole = whole.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    values = whole.dictionary.to_pylist()
    order = sorted(range(len(values)), key=lambda i: str(values[i]))
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.arange(len(values))
    indices = pa.array(place).take(whole.indices).cast(whole.indices.type)
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices, whole.dictionary.take(pa.array(order, pa.int64())))]
    )
