from __future__ import annotations

import mpmath
import numpy as np
import openturns as ot
import pytest
from scipy.special import ndtr
from scipy.stats import kstest, norm

from shoal import compilation
from shoal.errors import InputError
from shoal.recovery import MixtureRosenblatt


def random_mixture(rng, c, d, loading=0.1):
    means = rng.standard_normal((c, d))
    roots = rng.standard_normal((c, d, d))
    return means, roots @ roots.transpose(0, 2, 1) + loading * np.eye(d), rng.random(c) + 0.1


def draw(rng, means, covariances, weights, n):
    component = rng.choice(len(weights), n, p=weights / weights.sum())
    noise = rng.standard_normal((n, means.shape[1]))
    return means[component] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[component], noise)


def plain_transform(x, means, covariances, weights, sign=1.0):
    """The specification: the paper's formulas, one row and component at a time; sign=-1 is the paper's misprint."""
    u = np.empty_like(x)
    for i, row in enumerate(x):
        posterior = weights / weights.sum()
        for j in range(x.shape[1]):
            cdf, density = np.empty(len(weights)), np.empty(len(weights))
            for component, (mean, cov) in enumerate(zip(means, covariances, strict=True)):
                regression = np.linalg.solve(cov[:j, :j], cov[:j, j]) if j else np.zeros(0)
                centre = mean[j] + sign * regression @ (row[:j] - mean[:j])
                spread = np.sqrt(cov[j, j] - regression @ cov[:j, j])
                cdf[component] = norm.cdf(row[j], centre, spread)
                density[component] = norm.pdf(row[j], centre, spread)
            u[i, j] = posterior @ cdf
            posterior = posterior * density
            posterior = posterior / posterior.sum()
    return u


def exact_transform(row, means, covariances, weights):
    """The same in 60 digits."""
    mpmath.mp.dps = 60
    weight = [mpmath.mpf(float(w)) for w in weights]
    u = []
    for j in range(len(row)):
        numerator, total = mpmath.mpf(0), mpmath.fsum(weight)
        for component, (mean, cov) in enumerate(zip(means, covariances, strict=True)):
            centre, variance = mpmath.mpf(float(mean[j])), mpmath.mpf(float(cov[j, j]))
            if j:
                block = mpmath.matrix(cov[:j, :j].tolist())
                across = mpmath.matrix(cov[:j, j].tolist())
                regression = mpmath.lu_solve(block, across)
                for i in range(j):
                    centre += regression[i] * (mpmath.mpf(float(row[i])) - mpmath.mpf(float(mean[i])))
                    variance -= regression[i] * across[i]
            z = (mpmath.mpf(float(row[j])) - centre) / mpmath.sqrt(variance)
            numerator += weight[component] * mpmath.erfc(-z / mpmath.sqrt(2)) / 2
            weight[component] *= mpmath.exp(-z * z / 2) / mpmath.sqrt(variance)
        u.append(float(numerator / total))
    return np.array(u)


@pytest.mark.parametrize(("c", "d"), [(1, 1), (4, 2), (7, 4), (3, 6)])
def test_agrees_with_openturns(rng, c, d):
    means, covariances, weights = random_mixture(rng, c, d)
    x = draw(rng, means, covariances, weights, 40)
    parts = [ot.Normal(ot.Point(m), ot.CovarianceMatrix(s)) for m, s in zip(means, covariances, strict=True)]
    oracle = ot.Mixture(parts, weights / weights.sum())
    expected = [list(oracle.computeSequentialConditionalCDF(ot.Point(row))) for row in x]
    np.testing.assert_allclose(MixtureRosenblatt(means, covariances, weights).transform(x), expected, atol=1e-10)


def test_agrees_with_the_plain_version(rng):
    means, covariances, weights = random_mixture(rng, 6, 3)
    x = draw(rng, means, covariances, weights, 200)
    u = MixtureRosenblatt(means, covariances, weights).transform(x)
    np.testing.assert_allclose(u, plain_transform(x, means, covariances, weights), atol=1e-12)


def test_error_is_under_1e_12_against_60_digits(rng):
    means, covariances, weights = random_mixture(rng, 40, 4, loading=1 / 3)
    x = draw(rng, means, covariances, weights, 12)
    u = MixtureRosenblatt(means, covariances, weights).transform(x)
    for row, got in zip(x, u, strict=True):
        np.testing.assert_allclose(got, exact_transform(row, means, covariances, weights), atol=1e-12)


@pytest.mark.parametrize("distance", [9.0, 20.0, 37.0, 39.0, 60.0, 300.0])
def test_is_right_far_from_every_component(rng, distance):
    means, covariances, weights = random_mixture(rng, 5, 3, loading=0.5)
    direction = np.array([1.0, -0.7, 0.4])
    x = np.vstack([distance * direction, -distance * direction])
    u = MixtureRosenblatt(means, covariances, weights).transform(x)
    assert np.isfinite(u).all()
    for row, got in zip(x, u, strict=True):
        np.testing.assert_allclose(got, exact_transform(row, means, covariances, weights), atol=1e-12)


def correlated(rng, n=4000):
    """Components so correlated that the sign of the regression matters."""
    means = np.array([[0.0, 0.0], [1.0, 2.0]])
    covariances = np.array([[[1.0, 0.95], [0.95, 1.0]], [[1.0, 0.9], [0.9, 1.0]]])
    weights = np.array([0.5, 0.5])
    return (means, covariances, weights), draw(rng, means, covariances, weights, n)


def test_is_uniform_and_the_papers_minus_sign_is_not(rng):
    mixture, x = correlated(rng)
    u = MixtureRosenblatt(*mixture).transform(x)
    assert kstest(u[:, 1], "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u.T)[0, 1]) < 0.06
    misprint = plain_transform(x[:2000], *mixture, sign=-1.0)
    assert kstest(misprint[:, 1], "uniform").pvalue < 1e-10


def test_does_not_depend_on_threads_or_batches_bit_for_bit(rng):
    means, covariances, weights = random_mixture(rng, 50, 4)
    x = draw(rng, means, covariances, weights, 9001)
    whole = MixtureRosenblatt(means, covariances, weights, n_jobs=1).transform(x)
    threads = MixtureRosenblatt(means, covariances, weights, n_jobs=4).transform(x)
    assert (whole == threads).all()
    mixture = MixtureRosenblatt(means, covariances, weights)
    parts = [mixture.transform(part) for part in np.split(x, [1, 64, 100, 4096, 4097, 8000])]
    assert (whole == np.vstack(parts)).all()
    assert (whole[::-1] == mixture.transform(x[::-1])).all()


def test_merging_equal_components_changes_nothing(rng):
    means, covariances, weights = random_mixture(rng, 5, 3)
    again = rng.integers(0, 5, 300)
    many = means[again], covariances[again], weights[rng.integers(0, 5, 300)]
    x = draw(rng, *many, 100)
    merged, separate = MixtureRosenblatt(*many), MixtureRosenblatt(*many, merge=False)
    assert merged.n_components == 5
    assert separate.n_components == 300
    np.testing.assert_allclose(merged.transform(x), separate.transform(x), atol=1e-13)


def plain_with_cells(x, means, covariances, weights, cells):
    """Specification with cells: the Gaussian part by the plain version of each single component."""
    gaussian = [j for j in range(x.shape[1]) if j not in cells]
    u = np.empty_like(x)
    for i, row in enumerate(x):
        posterior = weights / weights.sum()
        for j in range(x.shape[1]):
            cdf, density = np.empty(len(weights)), np.empty(len(weights))
            for c in range(len(weights)):
                if j in cells:
                    level = int(row[j])
                    cdf[c] = cells[j][c, :level].sum() + cells[j][c, level] * (row[j] - level)
                    density[c] = cells[j][c, level]
                else:
                    at = gaussian.index(j)
                    z = np.linalg.solve(np.linalg.cholesky(covariances[c]), row[gaussian] - means[c])[at]
                    cdf[c] = ndtr(z)
                    density[c] = np.exp(-z * z / 2) / np.linalg.cholesky(covariances[c])[at, at]
            u[i, j] = posterior @ cdf
            posterior = posterior * density / (posterior @ density)
    return u


@pytest.mark.parametrize("positions", [(0,), (1,), (3,), (0, 2), (2, 3)])
def test_cells_among_gaussian_coordinates(rng, positions):
    d = 4
    means, covariances, weights = random_mixture(rng, 6, d - len(positions))
    cells = {j: rng.dirichlet(np.ones(3 + j), 6) for j in positions}
    x = rng.standard_normal((80, d))
    for j in positions:
        x[:, j] = rng.integers(0, 3 + j, 80) + rng.random(80)
    u = MixtureRosenblatt(means, covariances, weights, cells=cells).transform(x)
    np.testing.assert_allclose(u, plain_with_cells(x, means, covariances, weights, cells), atol=1e-12)


def test_cells_far_from_every_component(rng):
    means, covariances, weights = random_mixture(rng, 4, 1, loading=1.0)
    cells = {1: rng.dirichlet(np.ones(3), 4)}
    x = np.array([[200.0, 1.25]])
    nearest = np.argmin([(200 - m[0]) ** 2 / s[0, 0] for m, s in zip(means, covariances, strict=True)])
    expected = cells[1][nearest, 0] + 0.25 * cells[1][nearest, 1]
    got = MixtureRosenblatt(means, covariances, weights, cells=cells).transform(x)
    assert got[0, 1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[1.0]], [[[1.0]]], [-1.0]), "weights must be 1 numbers"),
        (([[1.0]], [[[1.0]]], [0.0]), "not all 0"),
        (([1.0], [[[1.0]]], [1.0]), "means must have shape"),
        (([[1.0]], [[1.0]], [1.0]), "covariances must have shape"),
        (([[1.0]], [[[0.0]]], [1.0]), "positive definite"),
        (([[np.nan]], [[[1.0]]], [1.0]), "finite"),
    ],
)
def test_bad_mixtures(arguments, text):
    with pytest.raises(InputError, match=text):
        MixtureRosenblatt(*arguments)


def test_absurd_points_and_weights_stay_finite():
    mixture = MixtureRosenblatt([[0.0, 0.0], [1.0, 1.0]], [np.eye(2)] * 2, [1.7e308, 1.7e308])
    assert mixture.weights.tolist() == [0.5, 0.5]
    assert np.isfinite(mixture.transform([[1e155, -1e300], [-1.7e308, 1.7e308]])).all()


def test_bad_points_and_cells():
    mixture = MixtureRosenblatt([[0.0]], [[[1.0]]], [1.0], cells={1: [[0.5, 0.5]]})
    with pytest.raises(InputError, match=r"shape \(n, 2\)"):
        mixture.transform([[0.0]])
    with pytest.raises(InputError, match="finite"):
        mixture.transform([[np.inf, 0.5]])
    with pytest.raises(InputError, match=r"in \[0, 2\)"):
        mixture.transform([[0.0, 2.5]])
    with pytest.raises(InputError, match="name coordinates from 0 to 1"):
        MixtureRosenblatt([[0.0]], [[[1.0]]], [1.0], cells={5: [[1.0]]})
    unreachable = MixtureRosenblatt([[0.0]], [[[1.0]]], [1.0], cells={0: [[0.0, 1.0]]})
    with pytest.raises(InputError, match="cell of coordinate 0 that no component can reach"):
        unreachable.transform([[0.5, 0.0]])
    with pytest.raises(InputError, match="each a distribution"):
        MixtureRosenblatt([[0.0]], [[[1.0]]], [1.0], cells={1: [[0.5, 0.1]]})


def test_thread_count_follows_scikit_learn():
    assert compilation.count_threads(3) == 3
    assert compilation.count_threads(None) == compilation.count_threads(-1) >= 1
