"""Clustering algorithms side by side on the same rows: those of shoal, and what else people use.

A run is given up at two minutes, and has a process of its own, which warms up on a few rows first. As a script this
file makes one run: python benchmarks/compare_clustering.py "shoal greedy" 1000 4 5
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit

from shoal.clustering import KMemberClustering
from shoal.clustering.distortion import squared_distances

GIVE_UP = 120.0
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SECONDS = {1_000: 3.0, 10_000: 10.0, 100_000: 20.0, 1_000_000: 90.0}  # for "refined"


@njit(cache=True)
def _plain_mdav(X, k):
    """MDAV as one would write it down and compile it: distances of all free rows, again and again."""
    n, d = X.shape
    labels = np.full(n, -1)
    free = np.arange(n)
    cluster = 0
    centroid, distance = np.empty(d), np.empty(n)

    def measure(free, point):
        for p in range(len(free)):
            total = 0.0
            for j in range(d):
                total += (X[free[p], j] - point[j]) ** 2
            distance[p] = total
        return distance[: len(free)]

    while len(free) >= 2 * k:
        centroid[:] = 0.0
        for i in free:
            centroid += X[i]
        centroid /= len(free)
        point = centroid
        for _ in range(2 if len(free) >= 3 * k else 1):
            first = free[np.argmax(measure(free, point))]
            point = X[first]
            measure(free, point)
            near = np.full(k, np.inf)
            who = np.zeros(k, dtype=np.int64)
            for p in range(len(free)):
                at = k - 1
                if distance[p] < near[at]:
                    while at > 0 and near[at - 1] > distance[p]:
                        near[at], who[at] = near[at - 1], who[at - 1]
                        at -= 1
                    near[at], who[at] = distance[p], free[p]
            labels[who] = cluster
            free = free[labels[free] < 0]
            cluster += 1
    labels[free] = cluster
    return labels


def mondrian(X: np.ndarray, k: int) -> np.ndarray:
    """Halve at the median along the column of the largest variance while both halves keep k rows."""
    labels, cluster, stack = np.empty(len(X), dtype=np.int64), 0, [np.arange(len(X))]
    while stack:
        rows = stack.pop()
        if len(rows) < 2 * k:
            labels[rows] = cluster
            cluster += 1
            continue
        column = X[rows, X[rows].var(axis=0).argmax()]
        order = np.argpartition(column, len(rows) // 2)
        stack += [rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]]
    return labels


def constrained_k_means(X: np.ndarray, k: int) -> np.ndarray:
    """k-means-constrained, with floor(n / k) clusters."""
    from k_means_constrained import KMeansConstrained

    return KMeansConstrained(len(X) // k, size_min=k, n_init=1, random_state=0, n_jobs=1).fit(X).labels_


def ours(algorithm: str, **options):
    return lambda X, k: KMemberClustering(k, algorithm=algorithm, random_state=0, **options).fit(X).labels_


ALGORITHMS = {
    "shoal greedy": ours("greedy"),
    "shoal auto": ours("auto"),
    "shoal refined": lambda X, k: ours("refined", time_limit=SECONDS.get(len(X), 1.0))(X, k),
    "shoal mdav": ours("mdav"),
    "shoal flow": ours("flow"),
    "k-means-constrained": constrained_k_means,
    "plain compiled MDAV": _plain_mdav,
    "Mondrian, NumPy": mondrian,
}


def peak_kilobytes() -> int:
    """Return this process's peak memory; getrusage would count that of the process that started it too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def run_one(algorithm: str, n: int, d: int, k: int) -> dict[str, float]:
    """Cluster Gaussian rows; return seconds, the information loss, and the bytes a row takes beyond the data."""
    X = np.random.default_rng(0).standard_normal((n, d))
    find = ALGORITHMS[algorithm]
    for few in (300, min(n, 6000)) if algorithm.startswith("shoal") and "flow" not in algorithm else (300,):
        find(X[:few], k)
    before = peak_kilobytes()
    began = time.perf_counter()
    labels = find(X, k)
    seconds = time.perf_counter() - began
    used = peak_kilobytes() - before
    assert np.bincount(labels).min() >= k
    loss = 100 * squared_distances(X, np.ones(n), labels).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    return {"seconds": seconds, "loss": loss, "clusters": len(np.unique(labels)), "bytes": 1024 * used / n}


def run_apart(algorithm: str, n: int, d: int, k: int) -> tuple[dict[str, float] | None, str]:
    """Make one run in a process of its own; return what it measured, or None and why."""
    command = [sys.executable, __file__, algorithm, str(n), str(d), str(k)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP + 30, check=False)
    except subprocess.TimeoutExpired:
        return None, "given up"
    if done.returncode == 0:
        return json.loads(done.stdout), ""
    return None, "refused: too many arcs" if "InputError" in done.stderr else f"failed: {done.stderr[-200:]}"


def grow_with_rows() -> list[dict[str, object]]:
    """Return time and memory of 100,000 and 1,000,000 rows of 5 columns, and how time grows between them."""
    rows: list[dict[str, object]] = []
    for algorithm in ("shoal greedy", "shoal mdav", "shoal auto"):
        for k in (5, 10):
            small, _ = run_apart(algorithm, 100_000, 5, k)
            large, _ = run_apart(algorithm, 1_000_000, 5, k)
            rows.append(
                {
                    "algorithm": algorithm,
                    "k": k,
                    "seconds, 100,000 rows": round(small["seconds"], 2),
                    "seconds, 1,000,000 rows": round(large["seconds"], 1),
                    "growth exponent": round(float(np.log10(large["seconds"] / small["seconds"])), 2),
                    "bytes a row beyond the data": round(large["bytes"]),
                    "IL, 1,000,000 rows": round(large["loss"], 4),
                }
            )
    return rows


def compare(sizes=SIZES) -> list[dict[str, object]]:
    """Return a row for every algorithm and size; seconds are missing where a run was given up."""
    rows, before = [], {}
    for n in sizes:
        for d in (4, 8):
            for k in (5, 10):
                for algorithm in ALGORITHMS:
                    row: dict[str, object] = {"rows": n, "columns": d, "k": k, "algorithm": algorithm}
                    rows.append(row)
                    if before.get((algorithm, d, k), 0.0) * 10 > GIVE_UP and algorithm != "shoal refined":
                        row["note"] = "not tried: over two minutes even if it only grew with n"
                        before[algorithm, d, k] = GIVE_UP
                        continue
                    found, stopped = run_apart(algorithm, n, d, k)
                    if found is None or found["seconds"] > GIVE_UP:
                        row["note"] = stopped or "given up"
                        before[algorithm, d, k] = GIVE_UP
                    else:
                        before[algorithm, d, k] = found["seconds"]
                        row |= {"seconds": float(f"{found['seconds']:.3g}"), "IL": round(found["loss"], 3)}
                        row["clusters"] = found["clusters"]
                    print(row, file=sys.stderr, flush=True)
    return rows


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Draw the loss, relative to the greedy's, against time."""
    import altair as alt
    import polars as pl

    data = [row for row in rows if "seconds" in row]
    greedy = {(r["rows"], r["columns"], r["k"]): r["IL"] for r in data if r["algorithm"] == "shoal greedy"}
    points = [
        {
            "algorithm": r["algorithm"],
            "rows": r["rows"],
            "seconds": r["seconds"],
            "loss": r["IL"] / greedy[r["rows"], r["columns"], r["k"]],
            "case": f"d = {r['columns']}, k = {r['k']}",
        }
        for r in data
        if (r["rows"], r["columns"], r["k"]) in greedy
    ]
    base = alt.Chart(pl.DataFrame(points)).encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="seconds (two shared cores)"),
        y=alt.Y(
            "loss:Q",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=[0.8, 0.9, 1, 1.2, 1.5, 2]),
            title="information loss / greedy's",
        ),
        color=alt.Color("algorithm:N", sort=list(ALGORITHMS), scale=alt.Scale(scheme="category10"), title=None),
        shape=alt.Shape("case:N", title=None),
    )
    chart = base.mark_point(filled=True, size=90, opacity=0.85).properties(width=330, height=230)
    chart = chart.facet(
        facet=alt.Facet(
            "rows:O", title=None, header=alt.Header(labelExpr="format(datum.value, ',') + ' rows'", labelFontSize=14)
        ),
        columns=2,
    )
    chart = chart.resolve_scale(x="shared", y="shared").configure_axis(labelFontSize=12, titleFontSize=13)
    chart.configure_legend(labelFontSize=12).save(path)


if __name__ == "__main__":
    algorithm, *numbers = sys.argv[1:]
    print(json.dumps(run_one(algorithm, *map(int, numbers))))
