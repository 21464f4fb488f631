"""Assessing a release: how long, how much memory, how large a page; and what the frontier of the built-in cohort is."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import psutil

import shoal
from shoal.report import draw, render_page

QI = ["sex", "age", "education", "income"]
DOCS = Path(__file__).parents[1] / "docs"


def measure(work) -> tuple[object, float, float]:
    """Return what it gives, seconds, and megabytes above what was there before."""
    process = psutil.Process()
    before = peak = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    return result, seconds, (peak - before) / 2**20


def assess_sizes(sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """Assess releases of five quasi-identifiers and a cost, in memory and as two tables; then 200 columns."""
    rows = []
    for n in sizes:
        cohort = shoal.datasets.load_cohort(n)[[*QI, "cost"]].with_columns(
            height=pl.Series(np.random.default_rng(0).normal(170, 9, n).round(1))
        )
        qi = [*QI, "height"]
        release = shoal.anonymize(cohort, quasi_identifiers=qi, sensitive=["cost"], method="permute", progress=False)
        release.assess(progress=False) if n == sizes[0] else None  # compile, load
        found, seconds, megabytes = measure(lambda release=release: release.assess(progress=False))
        _, files, _ = measure(
            lambda cohort=cohort, release=release, qi=qi: shoal.assess(
                cohort, release.table, quasi_identifiers=qi, sensitive=["cost"], progress=False
            )
        )
        rows.append(row(n, 6, found, seconds, files, megabytes))
    rng = np.random.default_rng(0)
    wide = pl.DataFrame({f"x{i}": rng.integers(0, 30, 100_000) for i in range(200)})
    other = wide.with_columns(pl.all().shuffle(seed=0))
    found, seconds, megabytes = measure(
        lambda: shoal.assess(wide, other, quasi_identifiers=wide.columns[:190], sensitive=wide.columns[190:])
    )
    return [*rows, row(len(wide), 200, found, None, seconds, megabytes)]


def row(n: int, d: int, found, seconds: float | None, files: float, megabytes: float) -> dict[str, object]:
    """Return a line of the result."""
    page, drawing, _ = measure(lambda: render_page(found.to_dict()))
    return {
        "rows": n,
        "columns": d,
        "seconds, release in memory": None if seconds is None else round(seconds, 1),
        "seconds, two tables": round(files, 1),
        "seconds, the page": round(drawing, 1),
        "peak MB above the tables": round(megabytes),
        "page KB": round(len(page.encode()) / 1000),
    }


def draw_frontier() -> list[dict[str, object]]:
    """Try all settings on the built-in cohort, draw them, and return them."""
    found = shoal.frontier(
        shoal.datasets.load_cohort(), quasi_identifiers=QI, sensitive=["cost"], random_state=0, progress=False
    )
    (DOCS / "frontier.svg").write_bytes(draw(found.chart, "svg"))
    return [
        {
            "k": o.k,
            "setting": o.name,
            "bound": round(o.bound, 4),
            "optimal attacker": float(f"{o.optimal:.3g}"),
            "nearest match": float(f"{o.nearest:.3g}"),
            "joint histogram kept": round(o.joint, 4),
            "prediction kept": round(o.prediction, 4),
            "error under a shift": round(o.shift, 4),
            "utility": round(o.utility, 4),
            "recommended": "yes" if o is found.recommended else None,
        }
        for o in found.outcomes
    ]


def compare_references(n: int = 10_000) -> list[dict[str, object]]:
    """Compare what an assessment says an independent sample would score with what six of them do."""
    first, *others = (shoal.datasets.load_cohort(n, random_state=seed)[[*QI, "cost"]] for seed in range(7))
    found = [
        shoal.assess(first, other, quasi_identifiers=QI, sensitive=["cost"], progress=False).utility for other in others
    ]
    return [
        {
            "score": name,
            "said": float(f"{found[0][name].reference:.4g}"),
            "mean of six samples": float(f"{np.mean([one[name].value for one in found]):.4g}"),
            "lowest": float(f"{min(one[name].value for one in found):.4g}"),
            "highest": float(f"{max(one[name].value for one in found):.4g}"),
        }
        for name in found[0]
    ]
