"""k-anonymity, l-diversity and t-closeness of any table, by classes of equal quasi-identifiers.

What a class-size auditor reads. A release of shoal keeps its promise without k equal rows, so on it these read low: the
models it was asked for hold for its clusters, and its certificate says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.clustering.diversity import measure_closeness, measure_diversity
from shoal.encoding import EncodedColumn, encode
from shoal.errors import InputError, suggest
from shoal.schema import read_any, read_schema
from shoal.utility.fidelity import shared_cells

Kinds = Mapping[str, str | Sequence[Any]] | None


def k_anonymity(table: Any, quasi_identifiers: Sequence[str]) -> int:
    """Return the size of the smallest class of equal quasi-identifiers.

    Examples
    --------
    >>> import polars as pl
    >>> k_anonymity(pl.DataFrame({"age": [30, 30, 40], "ill": ["no", "yes", "no"]}), ["age"])
    1
    """
    classes, _ = _read(table, quasi_identifiers, [], None)
    return int(np.bincount(classes).min())


def l_diversity(
    table: Any,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    *,
    kind: str = "distinct",
    kinds: Kinds = None,
) -> float:
    """Return the l of l-diversity: the least diverse class, over all sensitive columns.

    Parameters
    ----------
    kind : {"distinct", "entropy"}, default "distinct"
        The number of different values, or exp of their entropy. Missing values do not count.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [30, 30, 30, 40, 40], "ill": ["no", "yes", "no", "no", "yes"]})
    >>> l_diversity(people, ["age"], ["ill"]), round(l_diversity(people, ["age"], ["ill"], kind="entropy"), 3)
    (2.0, 1.89)
    """
    if kind not in ("distinct", "entropy"):
        raise InputError(f"kind={kind!r} is not known{suggest(kind, ('distinct', 'entropy'))}")
    classes, columns = _read(table, quasi_identifiers, sensitive, kinds)
    _need(columns)
    n_classes = int(classes.max()) + 1
    found = []
    for column in columns:
        known = ~column.missing
        found.append(measure_diversity(column.codes[known], classes[known], n_classes)[kind == "entropy"].min())
    return float(min(found))


def t_closeness(
    table: Any, quasi_identifiers: Sequence[str], sensitive: Sequence[str], *, kinds: Kinds = None
) -> float:
    """Return the t of t-closeness: the largest earth mover's distance of a class, over all sensitive columns.

    Numbers, dates and ordered levels are at the distance of their ranks, nominal levels at distance 1.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [30, 30, 40, 40], "ill": ["no", "yes", "no", "no"]})
    >>> t_closeness(people, ["age"], ["ill"])
    0.25
    """
    classes, columns = _read(table, quasi_identifiers, sensitive, kinds)
    _need(columns)
    everyone = np.arange(len(classes))
    return float(
        max(
            measure_closeness(column.codes, everyone, classes, ordered=column.kind != "nominal").max()
            for column in columns
        )
    )


def _read(
    table: Any, quasi_identifiers: Sequence[str], sensitive: Sequence[str], kinds: Kinds
) -> tuple[NDArray[np.int64], list[EncodedColumn]]:
    """Return the class of every row, and the sensitive columns."""
    frame = read_any(table, "table")
    schema = read_schema(frame, quasi_identifiers=quasi_identifiers, sensitive=sensitive, others="drop", kinds=kinds)
    classes, _ = shared_cells(frame, frame, schema.names("quasi_identifier"))
    columns = [column for column in schema.columns if column.role == "sensitive"]
    for column in columns:
        if column.kind is None:
            raise InputError(f"Column {column.name!r} has a dtype for which no model can be measured; convert it.")
    return classes, [encode(frame[column.name], column) for column in columns]


def _need(columns: list[EncodedColumn]) -> None:
    if not columns:
        raise InputError("sensitive is empty; name the columns to be measured.")
