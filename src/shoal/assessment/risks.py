"""What a release risks, as scores: the bound, the attackers measured, presence, what an auditor of rows reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.assessment.scores import Score
from shoal.clustering.diversity import measure_diversity
from shoal.encoding import EncodedColumn, joint_codes, positions
from shoal.people import count_people
from shoal.privacy.guessing import guess_owners
from shoal.privacy.linkage import match_nearest
from shoal.privacy.risk import THRESHOLDS, Risk
from shoal.utility.pairs import Pair, reference

Floats = NDArray[np.float64]
_MOST_ATTACKED = 10_000
_FLAT = 12
_BARS = 20
ATTACKERS = {
    "optimal": "Picked out by one who knows the clusters",
    "nearest": "Picked out by the nearest match",
}


@dataclass(frozen=True)
class RiskBar:
    """How many people an attacker picks out with a chance in this range."""

    attacker: str
    low: float
    high: float
    people: int


def score_bound(certificate: Mapping[str, Any], people: int) -> Score:
    """Return what is guaranteed."""
    bound = float(certificate["bound"])
    return Score(
        "bound",
        "Guaranteed: nobody is picked out above",
        bound,
        "lower",
        1 / people,
        f"From the quasi-identifiers alone nobody's record is picked out with a chance above 1/{certificate['k']}; "
        "blind guessing picks one out of all.",
    )


def score_certified(risk: Mapping[str, Mapping[str, Any]], people: int) -> list[Score]:
    """Return what a certificate says of the attackers."""
    found = []
    for name, title in ATTACKERS.items():
        if name in risk:
            figures = risk[name]
            found += _attacker(name, title, figures["mean"], figures["max"], people, exact=figures["exact"])
            found += [
                _above(name, threshold, figures[f"above_{threshold:g}"], people) for threshold in sorted(THRESHOLDS)
            ]
    return found


def score_measured(risk: Mapping[str, Risk], people: int) -> list[Score]:
    """Return what the attackers achieve, in the digits of the certificate."""
    return score_certified({name: found.describe() for name, found in risk.items()}, people)


def _attacker(name: str, title: str, mean: float, highest: float, people: int, *, exact: bool) -> list[Score]:
    about = "" if exact else "at least about " if name == "optimal" else "about "
    leaning = "" if exact or name != "optimal" else " He learns from few releases here; more would teach him more."
    return [
        Score(
            f"{name}_mean",
            title,
            mean,
            "lower",
            1 / people,
            f"He is expected to find {about}{mean * people:,.0f} of {people:,} people; blind guessing finds one."
            + leaning,
        ),
        Score(
            f"{name}_max",
            f"{title}: highest chance of anybody",
            highest,
            "lower",
            1 / people,
            f"Nobody is picked out with a chance above {about.removeprefix('at least ')}{highest:.3g}"
            + ("." if exact else ", as estimated from further releases; the estimate leans upwards."),
            personal=True,
        ),
    ]


def _above(name: str, threshold: float, share: float, people: int) -> Score:
    who = "who knows the clusters" if name == "optimal" else "by nearest match"
    return Score(
        f"{name}_above_{threshold:g}",
        f"People at a risk above {threshold:g}, by one {who}" if name == "optimal" else
        f"People at a risk above {threshold:g}, {who}",
        share,
        "lower",
        0.0,
        f"{share * people:,.0f} of {people:,} people can be picked out with a chance above {threshold:g}.",
        people=people,
    )  # fmt: skip


def score_linkage(pair: Pair, rng: np.random.Generator) -> Score:
    """Return what the nearest match achieves on aligned tables; exact but for the people drawn."""
    placed = positions(pair.columns, reference=pair.n)
    people = _attacked(pair.n, placed.shape[1], rng)
    rate = float(match_nearest(placed[people], placed[pair.n :], people, None).mean())
    of = f"{len(people):,} people" + (f", drawn from {pair.n:,}," if len(people) < pair.n else "")
    return Score(
        "linkage",
        "Picked out by the nearest match, in these very tables",
        rate,
        "lower",
        1 / pair.n,
        f"Of {of} {rate:.2%} are found: everybody's true values against the released rows, ties at random.",
        people=len(people),
    )


def score_guessing(pair: Pair, sensitive: Sequence[EncodedColumn], rng: np.random.Generator) -> Score:
    """Return what an attacker achieves who learns from the release which sensitive values go with whom."""
    n, placed = pair.n, positions(pair.columns, reference=pair.n)
    people = _attacked(n, placed.shape[1], rng)
    values = [column.take(np.arange(n, 2 * n)) for column in sensitive]
    found = guess_owners(placed[:n], placed[n:], values, rng, people)
    return Score(
        "guessing",
        "Picked out by one who guesses sensitive values",
        found.rate,
        "lower",
        1 / n,
        f"{found.rate:.2%} of {len(people):,} people{', drawn at random,' if len(people) < n else ''} by one who "
        "learns from the release which sensitive values go with whom. 1/k does not bind him.",
        people=len(people),
    )


def _attacked(n: int, n_coordinates: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return whom to attack: everybody, or so many drawn at random; in many coordinates a search takes long."""
    most = _MOST_ATTACKED if n_coordinates <= _FLAT else _MOST_ATTACKED // 10
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def score_presence(pair: Pair, people: int, rng: np.random.Generator) -> list[Score]:
    """Return who is alone in a combination, and for how many of them the release shows it."""
    if pair.person is not None:  # one row each
        first = np.unique(pair.person, return_index=True)[1]
        rows = np.concatenate([first, np.arange(pair.n, pair.n + pair.n_released)])
        pair = Pair([column.take(rows) for column in pair.columns], len(first))
    pair = pair.as_one()
    alone, shown = _presence(pair)
    expected = 1 - float(reference(pair, lambda part: np.array([1 - _shown_share(part)]), rng)[0])
    share = shown / alone if alone else 0.0
    return [
        Score(
            "alone",
            "People alone in their combination, in the original",
            alone / people,
            "lower",
            alone / people,
            f"{alone:,} of {people:,} people have quasi-identifiers that nobody else has: released as it is, the table "
            "would single them out.",
            people=people,
        ),
        Score(
            "presence",
            "... whose combination the release shows",
            share,
            "lower",
            expected,
            f"For {shown:,} of these {alone:,} the release shows that somebody with their quasi-identifiers is in the "
            f"data; in an independent sample about {expected:.0%} would occur by chance."
            if alone
            else "Nobody is alone in a combination, so no combination proves anybody's presence.",
            people=alone,
        ),
    ]


def _presence(pair: Pair) -> tuple[int, int]:
    cells, size = pair.columns[0].codes, pair.columns[0].n_levels
    before, after = cells[: pair.n], cells[pair.n :]
    alone = np.bincount(before, minlength=size)[before] == 1
    return int(alone.sum()), int((np.bincount(after, minlength=size)[before[alone]] > 0).sum())


def _shown_share(pair: Pair) -> float:
    alone, shown = _presence(pair)
    return shown / alone if alone else 0.0


def score_classes(pair: Pair, sensitive: Sequence[EncodedColumn]) -> list[Score]:
    """Return what a tool reads that counts equal rows of the release."""
    rows, person = np.arange(pair.n, pair.n + pair.n_released), pair.person if pair.aligned else None
    classes = joint_codes([column.codes[rows] for column in pair.columns])
    sizes = count_people(classes, person, int(classes.max()) + 1)
    before = joint_codes([column.codes[: pair.n] for column in pair.columns])
    original = count_people(before, pair.person, int(before.max()) + 1)
    everybody = int(sizes.sum())
    found = [
        Score(
            "equal_rows",
            "Smallest group of equal rows in the release (not what is promised)",
            float(sizes.min()),
            "higher",
            float(original.min()),
            "What a tool reads that counts equal rows. A release of shoal keeps its promise without them: the promise "
            "is about which record is whose.",
            "count",
            people=everybody,
        )
    ]
    for column in sensitive:
        released = column.take(rows)
        known = ~released.missing
        if not known.any():
            continue
        found.append(_unique_values(released, person, everybody))
        diverse = measure_diversity(released.codes[known], classes[known], len(sizes))[0]
        same = int(sizes[(diverse == 1) & (sizes > 1)].sum())
        found.append(
            Score(
                f"homogeneous:{column.name}",
                f"People in groups of equal quasi-identifiers that share one value of {column.name}",
                same / everybody,
                "lower",
                None,
                f"{same:,} of {everybody:,}, as the release shows them: whoever knows that somebody is there with "
                "these quasi-identifiers sees one value only, which need not be that person's.",
                people=everybody,
            )
        )
    return found


def _unique_values(column: EncodedColumn, person: NDArray[np.int64] | None, everybody: int) -> Score:
    """Return how many people have a sensitive value, released as it is, that nobody else has."""
    codes = np.where(column.missing, -1, column.codes)
    holders = count_people(codes, person, column.n_levels)
    alone = int(count_people(np.where((codes >= 0) & (holders[codes] == 1), 0, -1), person, 1)[0])
    return Score(
        f"unique:{column.name}",
        f"People whose value of {column.name} nobody else has",
        alone / everybody,
        "lower",
        0.0,
        f"{alone:,} of {everybody:,}. Whoever knows it from elsewhere finds the record by it: 1/k does not bind him. "
        "Rounding (protect) makes it fewer.",
        people=everybody,
    )


def make_risk_bars(risk: Mapping[str, Risk], bound: float) -> list[RiskBar]:
    """Return how many people are at which risk, from 0 to the bound in twenty bars."""
    edges = np.linspace(0, bound, _BARS + 1)
    bars = []
    for name, found in risk.items():
        place = np.clip(np.searchsorted(edges, found.per_record, side="left") - 1, 0, _BARS - 1)
        counts = np.bincount(place, minlength=_BARS)
        bars += [
            RiskBar(name, float(a), float(b), int(count))
            for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return bars
