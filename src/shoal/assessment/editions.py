"""An assessment as plain data, in two editions: *internal* for the house, *public* for everybody.

Neither holds a value that fewer than k people have. The public one also leaves out what is about a single person, tells
no number of people under k (nor one that would follow from it), and rounds to three digits, so that nobody's part in a
figure can be solved for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.assessment.scores import Score
from shoal.errors import InputError, suggest

if TYPE_CHECKING:
    from shoal.assessment.assessing import Assessment, Prediction
    from shoal.assessment.keeping import Dependence

EDITIONS = ("internal", "public")
FORMAT = "shoal assessment 1"
_MOST_PAIRS = 40  # columns whose pairs are written out
_MOST_COMBINATIONS = 15
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
        "not_measured": [{"what": what, "why": why} for what, why in assessment.refused],
        "columns": [_column(column) for column in assessment.columns],
        "dependence": _dependence(assessment.dependence),
        "prediction": None if assessment.prediction is None else _prediction(assessment.prediction),
        "risk": _risk(assessment, k, public=public),
        "combinations": [
            {"columns": list(c.columns), "alone": _number(c.alone, k, public), "below": _number(c.below, k, public)}
            for c in _worst(assessment.combinations)
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
    value, reference, reading = score.value, score.reference, score.reading
    if public and _is_small(score, k):
        value, reference, reading = None, None, f"Of a group of fewer than {k} people; not told in a public edition."
    digits = score.written()
    return {
        "name": score.name,
        "title": score.title,
        "value": value,
        "written": digits[0] if value is not None else "-" if score.value is None else "not told",
        "better": score.better,
        "reference": reference,
        "reference_written": digits[1] if reference is not None else "-",
        "reading": reading,
        "form": score.form,
    }


def _is_small(score: Score, k: int) -> bool:
    """Return whether a score counts a group of fewer than k people, or all but so few."""
    if score.people is None or score.value is None:
        return False
    if score.form == "count":
        return 0 < score.value < k
    counted = score.value * score.people
    return score.people < k or 0 < round(counted, 6) < k or 0 < round(score.people - counted, 6) < k


def _number(people: int, k: int, public: bool) -> int | None:
    return None if public and 0 < people < k else people


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


def _prediction(prediction: Prediction) -> dict[str, Any]:
    kept = prediction.kept
    return {
        "target": kept.target,
        "model": kept.model,
        "measure": kept.measure,
        "original": kept.original,
        "release": kept.release,
        "share": kept.share,
        "interval": list(kept.interval),
        "tested": kept.tested,
        "groups": [
            {"expected_from_original": one, "expected_from_release": two, "observed": truth}
            for one, two, truth in kept.groups
        ],
        "effects": [
            {
                "effect": label,
                "original": effect.original,
                "release": effect.release,
                "standard_error": effect.standard_error,
                "shift": effect.shift,
            }
            for label, effect in zip(prediction.labels, prediction.effects, strict=True)
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
    """Return the certificate; in public without the highest chance of anybody, which is one person's."""
    if not public:
        return dict(certificate)
    people, k = int(certificate["people"]), int(certificate["k"])

    def kept(name: str, value: Any) -> bool:
        counted = value * people if name.startswith("above") else 0
        return name != "max" and not 0 < counted < k

    risk = {
        who: {name: value for name, value in figures.items() if kept(name, value)}
        for who, figures in certificate["risk"].items()
    }
    return {**certificate, "risk": risk}


def round_numbers(data: Any, digits: int) -> Any:
    """Return data with every number at so many digits that count; NaN and infinity become null, as JSON has none."""
    if isinstance(data, Mapping):
        return {str(key): round_numbers(value, digits) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [round_numbers(value, digits) for value in data]
    if isinstance(data, float | np.floating):
        return float(f"{data:.{digits}g}") if math.isfinite(data) else None
    return int(data) if isinstance(data, np.integer) else data
