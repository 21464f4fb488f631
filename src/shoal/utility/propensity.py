"""Can original and release be told apart? The propensity score mean squared error, against its null distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.randomness import make_generator
from shoal.utility.designs import make_design
from shoal.utility.pairs import Pair

Floats = NDArray[np.float64]
_MOST_ROWS = 50_000
_MOST_COLUMNS = 300
_AT_ONCE = 20  # permutations
N_PERMUTATIONS = 100


@dataclass(frozen=True)
class Propensity:
    """How well a row's values tell from which table it is.

    Attributes
    ----------
    pmse : float
        Mean squared difference of the propensity and the release's share of the rows: 0 if nothing tells them apart.
    ratio : float
        pmse over its mean if rows were labelled at random: about 1 for an independent sample of the same population.
    z : float
        How many standard deviations of the null distribution pmse is above its mean.
    null : array
        pmse under random labels.
    """

    pmse: float
    ratio: float
    z: float
    null: Floats


def propensity(
    a: Any, b: Any, *, first: int | None = None, n_permutations: int = N_PERMUTATIONS, random_state: Any = 0
) -> Propensity:
    """Return the propensity score mean squared error of two tables (Woo et al. 2009; Snoke et al. 2018).

    The propensity is linear in numbers, levels, squares and products of two columns (at most 300 terms), fitted by
    least squares: the first step of logistic regression, and enough for differences of means, variances and
    correlations. The null distribution is that of labels permuted at random.

    Parameters
    ----------
    a, b : tables with the same columns, or arrays of shape (n, d)
        Of more than 50,000 rows so many are drawn.
    first : int, optional
        Products of one of the first so many columns with a later one come first, if there are too many terms.
    n_permutations : int, default 100
    random_state : int or numpy.random.Generator, default 0

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.normal(size=(500, 2)), rng.normal(size=(500, 2)), rng.normal(size=(500, 1)).repeat(2, axis=1)
    >>> propensity(a, b).ratio < 2.5 < propensity(a, c).ratio
    True
    """
    return propensity_of(Pair.read(a, b), make_generator(random_state), first, n_permutations)


def propensity_of(
    pair: Pair, rng: np.random.Generator, first: int | None = None, n_permutations: int = N_PERMUTATIONS
) -> Propensity:
    """Return the propensity score mean squared error of a pair."""
    pair = pair.sampled(_MOST_ROWS, rng)
    terms = _terms(pair, len(pair.columns) if first is None else first)
    terms -= terms.mean(axis=0)
    label = np.repeat([0.0, 1.0], [pair.n, pair.n_released])
    label -= label.mean()
    inverse = np.linalg.pinv(terms.T @ terms, rcond=1e-10, hermitian=True)

    def explained(labels: Floats) -> Floats:
        moments = terms.T @ labels
        return np.einsum("im,im->m", moments, inverse @ moments) / len(labels)

    pmse = float(explained(label[:, None])[0])
    null: list[float] = []
    while len(null) < n_permutations:
        count = min(_AT_ONCE, n_permutations - len(null))
        null += explained(np.column_stack([rng.permutation(label) for _ in range(count)])).tolist()
    drawn = np.array(null)
    mean, spread = float(drawn.mean()), float(drawn.std(ddof=1))
    ratio = pmse / mean if mean > 0 else 1.0
    return Propensity(pmse, ratio, (pmse - mean) / spread if spread > 0 else 0.0, drawn)


def _terms(pair: Pair, first: int) -> Floats:
    """Return main effects, squares and products as columns; too many products are left out from the last."""
    design = make_design(pair)
    main, place = design.matrix, {name: j for j, name in enumerate(pair.names)}
    main = main[:, :_MOST_COLUMNS]
    owner = np.array([place[effect.column] for effect in design.effects[:_MOST_COLUMNS]], dtype=np.int64)
    number = np.array([effect.what == "number" for effect in design.effects[:_MOST_COLUMNS]], dtype=bool)
    i, j = np.triu_indices(len(owner))
    useful = (owner[i] != owner[j]) | ((i == j) & number[i])
    i, j = i[useful], j[useful]
    across = (owner[i] < first) & (owner[j] >= first)
    order = np.argsort(np.where(i == j, 0, np.where(across, 1, 2)), kind="stable")[: _MOST_COLUMNS - len(owner)]
    products = main[:, i[order]] * main[:, j[order]]
    scale = np.abs(products).max(axis=0, initial=1.0)
    return np.hstack([main, products / scale])
