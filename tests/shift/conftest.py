"""Two shifts whose ratio is known, and weights on records that undo a biased draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest


@dataclass
class Shift:
    source: np.ndarray
    target: np.ndarray
    weight_source: np.ndarray | None
    weight_target: np.ndarray | None
    log_ratio: np.ndarray  # at the source


@pytest.fixture
def gaussian():
    """N(0, 1) against N(0.8, 1) in the first of d columns; with weights, draws that are too old and too young."""

    def make(n_source=20_000, n_target=13_000, d=2, weighted=False, seed=3):
        rng = np.random.default_rng(seed)
        source, target = rng.normal(size=(n_source, d)), rng.normal(size=(n_target, d))
        weight_source = weight_target = None
        if weighted:  # drawn shifted by 0.3, weighted back
            source[:, 0] += 0.3
            target[:, 0] -= 0.3
            weight_source = 7.0 * np.exp(-0.3 * source[:, 0] + 0.045)
            weight_target = np.exp(0.3 * target[:, 0] + 0.045)
        target[:, 0] += 0.8
        if weighted:
            weight_target = np.exp(0.3 * (target[:, 0] - 0.8) + 0.045)
        return Shift(source, target, weight_source, weight_target, 0.8 * source[:, 0] - 0.32)

    return make


@pytest.fixture
def discrete():
    """Two columns of 3 and 4 levels with known shares."""

    def make(n_source=20_000, n_target=13_000, weighted=False, seed=4):
        rng = np.random.default_rng(seed)
        p = np.array([[6, 5, 4, 5], [9, 8, 10, 8], [12, 11, 12, 10]]) / 100
        q = np.array([[14, 12, 6, 3], [8, 9, 10, 8], [10, 8, 5, 7]]) / 100
        tilt = np.array([[2.0, 1, 1, 0.5], [1, 2, 1, 1], [1, 1, 3, 1]])
        draw_p, draw_q = (p, q) if not weighted else (p * tilt / (p * tilt).sum(), q / tilt / (q / tilt).sum())
        cells_s = rng.choice(12, n_source, p=draw_p.ravel())
        cells_t = rng.choice(12, n_target, p=draw_q.ravel())
        source, target = (np.column_stack([cells // 4, cells % 4]) for cells in (cells_s, cells_t))
        weights = (None, None) if not weighted else ((p / draw_p).ravel()[cells_s], (q / draw_q).ravel()[cells_t])
        return Shift(source.astype(float), target.astype(float), *weights, np.log(q / p).ravel()[cells_s])

    return make
