"""An assessment as plain data, in two editions: *internal* for the house, *public* for everybody.

Neither holds a value that fewer than k people have. The public one also leaves out what is about a single person;
numbers of people under k are not told, and others are rounded down to multiples of k, so that none follows by
subtraction; figures have three digits, so that nobody's part in them can be solved for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.assessment.scores import Score
from shoal.errors import InputError, suggest
from shoal.privacy.combinations import leave_out_supersets

if TYPE_CHECKING:
    from shoal.assessment.keeping import Dependence
    from shoal.assessment.result import Assessment

EDITIONS = ("internal", "public")
FORMAT = "shoal assessment 1"
_MOST_PAIRS = 40  # columns whose pairs are written out
_MOST_COMBINATIONS = 15
_CANNOT = "its values cannot be compared"
_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 does not allow
_DIGITS = {"internal": 6, "public": 3}


def check_edition(edition: str) -> None:
    """Refuse an edition that there is not."""
    if edition not in EDITIONS:
        raise InputError(f"edition={edition!r} is not known{suggest(edition, EDITIONS)}")


def as_dict(assessment: Assessment, edition: str) -> dict[str, Any]:
    """Return an assessment as JSON-able data."""
    check_edition(edition)
    k = int(assessment.about["small_group"])
    public = edition == "public"
    data: dict[str, Any] = {
        "format": FORMAT,
        "edition": edition,
        "about": dict(assessment.about),
        "privacy": [_score(score, k, public=public) for score in assessment.privacy.values()],
        "utility": [_score(score, k, public=public) for score in assessment.utility.values()],
        "not_measured": [
            {"what": what, "why": _CANNOT if public and what.startswith("column ") else why}
            for what, why in assessment.refused
        ],
        "columns": [_column(column) for column in assessment.columns],
        "dependence": _dependence(assessment.dependence),
        "prediction": None if assessment.prediction is None else _prediction(assessment, k, public=public),
        "risk": _risk(assessment, k, public=public),
        "combinations": [
            {"columns": list(c.columns), "alone": _number(c.alone, k, public), "below": _number(c.below, k, public)}
            for c in _worst(leave_out_supersets(assessment.combinations, int(assessment.about["people"])))
        ],
        "certificate": None if assessment.certificate is None else _certificate(assessment.certificate, public=public),
    }
    for part in ("privacy", "utility"):
        data[part] = [score for score in data[part] if score is not None]
    return dict(round_numbers(data, _DIGITS[edition]))


def _score(score: Score, k: int, *, public: bool) -> dict[str, Any] | None:
    """Return a score; None if it is about one person, without its number if that speaks of a small group."""
    if public and score.personal:
        return None
    if public and score.people is not None:
        score = _round_people(score, k)
    value, reference = score.written()
    return {
        "name": score.name,
        "title": score.title,
        "value": score.value,
        "written": "not told" if score.reading == _not_told(k) else value,
        "better": score.better,
        "reference": score.reference,
        "reference_written": reference,
        "reading": score.reading,
        "form": score.form,
    }


def _not_told(k: int) -> str:
    return f"Fewer than {k} people; not told in a public edition."


def _round_people(score: Score, k: int) -> Score:
    """Return a score whose number of people is a multiple of k, none, or everybody; or is not told."""
    assert score.people is not None
    if score.value is None:
        return score
    if score.form == "count":
        small = [value is not None and 0 < value < k for value in (score.value, score.reference)]
        reference = None if small[1] else score.reference
        return replace(score, value=None, reference=reference, reading=_not_told(k)) if small[0] else replace(
            score, reference=reference)  # fmt: skip
    everybody = _floor(score.people, k)
    counted = score.people if score.value == 1 else _floor(score.value * score.people, k)
    if everybody is None or counted is None:
        return replace(score, value=None, reference=None, reading=_not_told(k))
    if everybody == 0:
        return score
    share = 1.0 if score.value == 1 else min(counted / everybody, 1.0)
    reading = f"Numbers of people are rounded down to multiples of {k} in a public edition."
    return replace(score, value=share, reference=score.reference if score.name != "alone" else share, reading=reading)


def _floor(people: float, k: int) -> int | None:
    """Return a number of people rounded down to a multiple of k; None for 1 to k - 1."""
    whole = round(people, 6)
    return None if 0 < whole < k else int(whole // k) * k


def _number(people: int, k: int, public: bool) -> int | None:
    return _floor(people, k) if public else people


def _worst(combinations: Sequence[Any]) -> list[Any]:
    return [c for c in combinations if c.below][:_MOST_COMBINATIONS]


def _column(column: Any) -> dict[str, Any]:
    return {**vars(column), "bars": [vars(bar) for bar in column.bars]}


def _dependence(found: Dependence) -> dict[str, Any]:
    """Return the pairs of the columns that changed most."""
    change = np.nan_to_num(np.abs(found.information_released - found.information))
    change += np.nan_to_num(np.abs(found.correlation_released - found.correlation))
    np.fill_diagonal(change, 0.0)
    chosen = np.sort(np.argsort(-change.max(axis=1, initial=0.0), kind="stable")[:_MOST_PAIRS])
    grid = np.ix_(chosen, chosen)
    return {
        "columns": [found.names[i] for i in chosen],
        "of_columns": len(found.names),
        "rows": found.rows,
        "correlation": found.correlation[grid].tolist(),
        "correlation_released": found.correlation_released[grid].tolist(),
        "correlation_reference": found.correlation_reference,
        "information": found.information[grid].tolist(),
        "information_released": found.information_released[grid].tolist(),
        "information_reference": found.information_reference,
    }


def _prediction(assessment: Assessment, k: int, *, public: bool) -> dict[str, Any]:
    """Return what was learnt; in public without details of a target whose values were protected before they left."""
    assert assessment.prediction is not None
    prediction, kept = assessment.prediction, assessment.prediction.kept
    protected = [step["column"] for step in (assessment.certificate or {}).get("protected", [])]
    told = not (public and kept.target in protected)
    everybody = kept.tested == assessment.about["rows"]
    return {
        "target": kept.target,
        "model": kept.model,
        "measure": kept.measure,
        "original": kept.original,
        "release": kept.release,
        "share": kept.share,
        "interval": list(kept.interval),
        "tested": kept.tested if everybody or not public else _floor(kept.tested, k),
        "groups": [
            {"expected_from_original": one, "expected_from_release": two, "observed": truth}
            for one, two, truth in (kept.groups if told else [])
        ],
        "effects": [
            {
                "effect": label,
                "original": effect.original,
                "release": effect.release,
                "standard_error": effect.standard_error,
                "shift": effect.shift,
            }
            for label, effect in (zip(prediction.labels, prediction.effects, strict=True) if told else [])
        ],
    }


def _risk(assessment: Assessment, k: int, *, public: bool) -> list[dict[str, Any]]:
    """Return how many people are at which risk; in public, neighbouring bars are joined until none is small."""
    bars = []
    for attacker in dict.fromkeys(bar.attacker for bar in assessment.risk_bars):
        own = [[bar.low, bar.high, bar.people] for bar in assessment.risk_bars if bar.attacker == attacker]
        bars += [
            {"attacker": attacker, "low": low, "high": high, "people": people}
            for low, high, people in (_join(own, k) if public else own)
        ]
    return bars


def _join(bars: list[list[Any]], k: int) -> list[list[Any]]:
    joined: list[list[Any]] = []
    for low, high, people in bars:
        if joined and 0 < joined[-1][2] < k:
            joined[-1][1:] = [high, joined[-1][2] + people]
        else:
            joined.append([low, high, people])
    while len(joined) > 1 and 0 < joined[-1][2] < k:
        low, high, people = joined.pop()
        joined[-1][1:] = [high, joined[-1][2] + people]
    return joined


def _certificate(certificate: Mapping[str, Any], *, public: bool) -> dict[str, Any]:
    """Return the certificate; in public without the highest chance of anybody and numbers of people at risk."""
    if not public:
        return dict(certificate)
    risk = {
        who: {name: value for name, value in figures.items() if name != "max" and not name.startswith("above_")}
        for who, figures in certificate["risk"].items()
    }
    return {**certificate, "risk": risk}


def round_numbers(data: Any, digits: int) -> Any:
    """Return data that JSON and a page can hold: numbers at so many digits, null for NaN, no control characters."""
    if isinstance(data, str):
        return _UNPRINTABLE.sub("\ufffd", data)
    if isinstance(data, Mapping):
        return {round_numbers(str(key), digits): round_numbers(value, digits) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [round_numbers(value, digits) for value in data]
    if isinstance(data, float | np.floating):
        return float(f"{data:.{digits}g}") if math.isfinite(data) else None
    return int(data) if isinstance(data, np.integer) else data
