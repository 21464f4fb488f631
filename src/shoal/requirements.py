"""What the caller asks of sensitive values beyond k: l-diversity and t-closeness, by column."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from shoal.clustering.diversity import Model, Requirement
from shoal.encoding import encode
from shoal.errors import InputError, suggest
from shoal.people import People
from shoal.schema import Schema


def read_requirements(
    frame: nw.DataFrame[Any], schema: Schema, people: People, l_diversity: Any, t_closeness: Any
) -> list[Requirement]:
    """Return what every cluster must hold, having checked that it makes sense."""
    asked: list[tuple[str, Model, float]] = []
    for argument, given in (("l_diversity", l_diversity), ("t_closeness", t_closeness)):
        for name, what in _by_column(argument, given, schema.names("sensitive")).items():
            model, level = _read_level(argument, name, what)
            asked.append((name, model, level))
    columns = {column.name: column for column in schema.columns}
    found = []
    for name, model, level in asked:
        if columns[name].kind is None:
            raise InputError(f"Column {name!r} has a dtype for which no model can be measured; convert it.")
        encoded = encode(frame[name], columns[name])
        ordered = encoded.kind != "nominal"
        rows = np.arange(len(frame))
        requirement = Requirement(name, model, level, encoded.codes, encoded.missing, ordered, rows, people.of_row)
        requirement.check_reachable()
        found.append(requirement)
    return found


def _by_column(argument: str, given: Any, sensitive: list[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if not sensitive:
        raise InputError(f"{argument} needs sensitive columns; name them in sensitive.")
    if not isinstance(given, Mapping):
        return dict.fromkeys(sensitive, given)
    for name in given:
        if name not in sensitive:
            raise InputError(f"{argument} names {name!r}, which is not a sensitive column{suggest(name, sensitive)}")
    return dict(given)


def _read_level(argument: str, name: str, what: Any) -> tuple[Model, float]:
    if argument == "t_closeness":
        if not isinstance(what, Real) or isinstance(what, bool) or not 0 <= float(what) <= 1:
            raise InputError(f"t_closeness of {name!r} must be a distance between 0 and 1, but it is {what!r}.")
        return "closeness", float(what)
    kind, level = what if isinstance(what, tuple | list) and len(what) == 2 else ("distinct", what)
    if kind not in ("distinct", "entropy"):
        raise InputError(
            f"l_diversity of {name!r} is of the kind 'distinct' or 'entropy', not {kind!r}; for one column: column=3."
        )
    if not isinstance(level, Real) or isinstance(level, bool) or not 1 < float(level) < float("inf"):
        raise InputError(
            f"l_diversity of {name!r} must be a number above 1, or a pair such as ('entropy', 2.5), but it is {what!r}."
        )
    return ("entropy" if kind == "entropy" else "distinct"), float(level)
