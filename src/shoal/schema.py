"""Who is who in a table: the role of every column, and its kind.

Roles are never guessed: what a column may do to a person's privacy is the caller's decision. Kinds are inferred from
dtypes, shown, and can be overridden.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, suggest

Role = Literal["identifier", "quasi_identifier", "sensitive", "weight", "unit", "kept", "dropped"]
Kind = Literal["numeric", "ordinal", "nominal", "datetime"]
KINDS: tuple[Kind, ...] = ("numeric", "ordinal", "nominal", "datetime")


@dataclass(frozen=True)
class Column:
    """A column's name, role, kind (only where it is used as data) and, if ordinal, its levels in order."""

    name: str
    role: Role
    kind: Kind | None = None
    levels: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the table's order."""

    columns: tuple[Column, ...]

    def names(self, *roles: Role) -> list[str]:
        """Return the names of the columns in any of these roles."""
        return [column.name for column in self.columns if column.role in roles]

    def name(self, role: Role) -> str | None:
        """Return the one column in this role, or None."""
        return next(iter(self.names(role)), None)

    @property
    def quasi_identifiers(self) -> list[Column]:
        """The quasi-identifiers."""
        return [column for column in self.columns if column.role == "quasi_identifier"]

    def __str__(self) -> str:
        width = max(len(column.name) for column in self.columns)
        return "\n".join(
            f"{c.name:<{width}}  {c.role.replace('_', '-')}{f' ({c.kind})' if c.kind else ''}" for c in self.columns
        )


def read_frame(table: Any) -> nw.DataFrame[Any]:
    """Return a pandas, polars or pyarrow table in a common form, refusing what is none."""
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InputError(
            f"table must be a pandas, polars or pyarrow table, but it is a {type(table).__name__}; collect a lazy "
            "frame first."
        ) from None
    except ValueError:  # narwhals' own, for a column name that occurs twice
        raise InputError("Column names must be texts, each occurring once.") from None
    if not all(isinstance(name, str) for name in frame.columns) or len(set(frame.columns)) < len(frame.columns):
        raise InputError("Column names must be texts, each occurring once.")
    if len(frame) == 0:
        raise InputError("The table has no rows.")
    for name in frame.columns:
        try:
            frame[name][np.array([0])]
        except (NotImplementedError, TypeError, ValueError):  # what Arrow raises for dtypes it cannot handle
            raise InputError(f"Column {name!r} has a dtype of which no rows can be taken; convert it first.") from None
    return frame


def frame_of_array(array: NDArray[Any]) -> nw.DataFrame[Any]:
    """Return an array of shape (n, d) as a table with the columns x0, x1, ..."""
    import polars as pl

    return nw.from_native(pl.DataFrame({f"x{j}": column for j, column in enumerate(array.T)}), eager_only=True)


def read_any(X: Any, what: str, n_columns: int | None = None) -> nw.DataFrame[Any]:
    """Return a table, or an array of numbers, shape (n, d), as a table in a common form; n_columns: of an array."""
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return read_frame(name_columns(X))
    try:
        array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a table, or rows of numbers of equal length.") from None
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{what} must be a table or have shape (n, d), n, d >= 1, but its shape is {array.shape}.")
    if n_columns not in (None, array.shape[1]):
        raise InputError(f"{what} must have {n_columns} columns, but it has {array.shape[1]}.")
    return frame_of_array(array)


def name_columns(table: Any) -> Any:
    """Return a table whose columns are named by texts: pandas may name them by numbers."""
    return table.set_axis([str(name) for name in table.columns], axis=1) if hasattr(table, "set_axis") else table


def read_schema(
    frame: nw.DataFrame[Any],
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    weight: str | None = None,
    unit: str | None = None,
    others: str | None = None,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
) -> Schema:
    """Check the roles a caller gives and infer the kinds of the columns that are used as data."""
    roles = _collect_roles(frame, quasi_identifiers, sensitive, identifiers, weight, unit)
    if others not in (None, "drop", "keep"):
        raise InputError(f"others={others!r} is not known; say 'drop' or 'keep'.")
    without = [name for name in frame.columns if name not in roles]
    if without and others is None:
        raise InputError(
            f"No role was given for {_list(without)}. Name them in quasi_identifiers, sensitive or identifiers, or say "
            "others='drop' to leave them out or others='keep' to release them as they are."
        )
    roles |= dict.fromkeys(without, "dropped" if others == "drop" else "kept")
    given = _check_kinds(kinds or {}, frame.columns, roles)
    columns = []
    for name in frame.columns:
        kind, levels = None, None
        if roles[name] in ("quasi_identifier", "sensitive"):
            strict = roles[name] == "quasi_identifier" or name in given
            kind, levels = _find_kind(frame[name], given.get(name), strict=strict)
        columns.append(Column(name, roles[name], kind, levels))
    return Schema(tuple(columns))


def _collect_roles(
    frame: nw.DataFrame[Any],
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    identifiers: Sequence[str],
    weight: str | None,
    unit: str | None,
) -> dict[str, Role]:
    given: list[tuple[Role, str, Sequence[str]]] = [
        ("quasi_identifier", "quasi_identifiers", quasi_identifiers),
        ("sensitive", "sensitive", sensitive),
        ("weight", "weight", [] if weight is None else [weight]),
        ("unit", "unit", [] if unit is None else [unit]),
        ("identifier", "identifiers", identifiers),
    ]
    named = [
        name for _, _, names in given if isinstance(names, Iterable) and not isinstance(names, str) for name in names
    ]
    known = frame.columns
    if named and not any(name in known or difflib.get_close_matches(str(name), known) for name in named):
        raise InputError(  # without a list of columns: where a file has no header, they are somebody's values
            "None of the named columns is in the table. If it comes from a file, does that begin with a header?"
        )
    roles: dict[str, Role] = {}
    for role, argument, names in given:
        if isinstance(names, str):
            raise InputError(
                f"{argument} must be a list of column names, but it is the text {names!r}; write [{names!r}]."
            )
        if names is not None and not isinstance(names, Iterable):
            raise InputError(f"{argument} must be a list of column names, but it is a {type(names).__name__}.")
        for name in () if names is None else names:
            if name not in frame.columns:
                raise InputError(f"{argument} names {name!r}, which is not a column{suggest(name, frame.columns)}")
            if role == "identifier" and name == unit:
                continue  # the person's column is an identifier anyway
            if name in roles:
                twice = "twice" if roles[name] == role else f"as {roles[name]} and as {role}"
                raise InputError(f"Column {name!r} is given {twice}; a column has one role.")
            roles[name] = role
    if not any(role == "quasi_identifier" for role in roles.values()):
        raise InputError("quasi_identifiers is empty; name the columns by which a person could be recognised.")
    return roles


def _check_kinds(
    kinds: Mapping[str, str | Sequence[Any]], columns: Sequence[str], roles: Mapping[str, Role]
) -> dict[str, str | Sequence[Any]]:
    if not isinstance(kinds, Mapping):
        raise InputError(f"kinds must map columns to kinds, but it is a {type(kinds).__name__}.")
    for name, kind in kinds.items():
        if name not in columns:
            raise InputError(f"kinds names {name!r}, which is not a column{suggest(name, columns)}")
        if roles[name] not in ("quasi_identifier", "sensitive"):
            raise InputError(f"kinds names {name!r}, but only quasi-identifiers and sensitive columns have a kind.")
        if not isinstance(kind, str | Sequence) or not all(isinstance(level, Hashable) for level in kind):
            raise InputError(f"kinds[{name!r}] must be a kind or a list of levels in order.")
        if isinstance(kind, str) and kind not in KINDS:
            raise InputError(f"kinds[{name!r}]={kind!r} is not known{suggest(kind, KINDS)}")
    return dict(kinds)


def _find_kind(
    series: nw.Series[Any], given: str | Sequence[Any] | None, *, strict: bool
) -> tuple[Kind | None, tuple[Any, ...] | None]:
    """Return kind and levels, the caller's where given. A column nobody computes with may be of any dtype."""
    if given is not None and not isinstance(given, str):
        levels = tuple(given)
        if len(set(levels)) != len(levels) or not levels:
            raise InputError(f"kinds[{series.name!r}] must list different levels in order, at least one.")
        return "ordinal", levels
    inferred, levels_in_order = infer_kind(series)
    if given is None or inferred is None:
        if inferred is None and strict:
            raise InputError(
                f"Column {series.name!r} has dtype {dtype_name(series)}, which cannot be a quasi-identifier; make it "
                "numbers, text or dates, or drop it."
            )
        return inferred, levels_in_order
    if given == "ordinal" and inferred == "nominal":
        raise InputError(
            f"Column {series.name!r} has no order of its own; give its levels: kinds={{{series.name!r}: [...]}}."
        )
    if given == "datetime" and inferred != "datetime":
        raise InputError(f"Column {series.name!r} has dtype {dtype_name(series)}; convert it to a date or time first.")
    kind: Kind = next(kind for kind in KINDS if kind == given)
    return kind, levels_in_order if kind == "ordinal" else None


def infer_kind(series: nw.Series[Any]) -> tuple[Kind | None, tuple[Any, ...] | None]:
    """Return the kind a dtype suggests, None for one that cannot be encoded, and the levels if it carries an order."""
    dtype = series.dtype
    if isinstance(dtype, nw.Enum):
        return "ordinal", tuple(dtype.categories)
    if isinstance(dtype, nw.Categorical):
        levels = _arrow_levels(series)
        return ("nominal", None) if levels is None else ("ordinal", levels)
    if dtype.is_numeric():
        return "numeric", None
    if dtype in (nw.Boolean, nw.String):
        return "nominal", None
    if dtype in (nw.Date, nw.Datetime, nw.Time, nw.Duration):
        return "datetime", None
    if dtype == nw.Object:
        return _infer_object_kind(series), None
    return None, None


def dtype_name(series: nw.Series[Any]) -> str:
    """Return the name of a dtype without its parameters: categories are values of the data."""
    return type(series.dtype).__name__


def _infer_object_kind(series: nw.Series[Any]) -> Kind | None:
    import datetime
    import numbers
    from decimal import Decimal

    missing = series.is_null().to_numpy()
    types = {type(value) for value, absent in zip(series.to_list(), missing, strict=True) if not absent}
    if all(issubclass(t, str) or t is bool for t in types) and len(types) <= 1:
        return "nominal"
    if bool not in types and all(issubclass(t, numbers.Real | Decimal) for t in types):
        return "numeric"
    if len(types) == 1 and issubclass(next(iter(types)), datetime.date | datetime.time | datetime.timedelta):
        return "datetime"
    return None


def _arrow_levels(series: nw.Series[Any]) -> tuple[Any, ...] | None:
    """Return the levels of an ordered Arrow dictionary column, which narwhals does not tell from an unordered one."""
    if series.implementation is not nw.Implementation.PYARROW:
        return None
    native = series.to_native()
    if not native.type.ordered:
        return None
    return tuple(native.unify_dictionaries().chunk(0).dictionary.to_pylist()) if native.num_chunks else ()


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"
