"""Run the benchmarks and write them, with date, versions and cores, to benchmarks/results/.

Everything that is compared is run side by side, in one run, several times, and the fastest time counts: machines are
noisy, ratios less so. Run all with `make bench`, or some by name: python benchmarks/run.py transport mixture
"""

from __future__ import annotations

import datetime
import inspect
import io
import json
import math
import platform
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
import psutil
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import ndtr

import compare_clustering
import compare_files
import compare_markets
import compare_reports
import compare_shift
import lower_bound
import shoal
from shoal.clustering import KMemberClustering
from shoal.compilation import count_threads
from shoal.dither import GaussianDither, draw_members
from shoal.encoding import standardise
from shoal.io.reading import _PER_BYTE as FILE_MEMORY
from shoal.io.reading import _PER_CELL as CELL_MEMORY
from shoal.privacy import compare_attackers, reidentification_risk
from shoal.recovery import MixtureRosenblatt, transport_recover

RESULTS = Path(__file__).parent / "results"
WAYS = {"permute": {"method": "permute"}, "gaussian + transport": {"method": "gaussian", "recovery": "transport"}}


def fastest(work, times: int = 3) -> float:
    """Return the shortest of several times, after one run to warm up."""
    work()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


# ---------------------------------------------------------------- anonymize, end to end


def people(n: int) -> pl.DataFrame:
    """Five quasi-identifiers (two of them continuous) and a cost."""
    rng = np.random.default_rng(0)
    cohort = shoal.datasets.load_cohort(n)
    return cohort.select("sex", "age", "education", "income", "cost").with_columns(
        height=pl.Series(rng.normal(170, 9, n).round(1))
    )


def release_file(source: str, way: str, target: str) -> dict[str, float]:
    """Release a Parquet file: run in a process of its own, so that its peak memory can be read."""
    qi = ["sex", "age", "education", "income", "height"]
    table = pl.read_parquet(source)
    shoal.anonymize(table.head(200), quasi_identifiers=qi, sensitive=["cost"], **WAYS[way])  # compile, load
    process, seconds = psutil.Process(), []
    before = peak = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, process.memory_info().rss)

    threading.Thread(target=watch, daemon=True).start()
    for _ in range(3 if len(table) < 1_000_000 else 1):
        began = time.perf_counter()
        table = pl.read_parquet(source)
        shoal.anonymize(table, quasi_identifiers=qi, sensitive=["cost"], **WAYS[way]).write(target)
        seconds.append(time.perf_counter() - began)
    done.set()
    return {"seconds": min(seconds), "megabytes": (peak - before) / 2**20}


def bench_anonymize() -> list[dict[str, object]]:
    """Time a whole release, against reading and writing the same file."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/people.parquet", f"{folder}/release.parquet"
        for n in (15_000, 100_000, 1_000_000):
            people(n).write_parquet(source)

            def copy() -> None:
                pl.read_parquet(source).write_parquet(target)

            copying = fastest(copy)
            for way in WAYS:
                command = [sys.executable, __file__, "--release", source, way, target]
                shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                measured = json.loads(shown)
                before = next((row["seconds"] for row in reversed(rows) if row["method"] == way), None)
                exponent = np.log10(measured["seconds"] / before) if n == 1_000_000 else None
                rows.append(
                    {
                        "rows": n,
                        "method": way,
                        "seconds": round(measured["seconds"], 2),
                        **({} if exponent is None else {"growth exponent": round(float(exponent), 2)}),
                        "peak MB above the library": round(measured["megabytes"]),
                        "times reading and writing Parquet": round(measured["seconds"] / copying),
                    }
                )
    return rows


# ---------------------------------------------------------------- what every method keeps


def dummies(table: pl.DataFrame) -> np.ndarray:
    """Return an additive, dummy-coded design: sex, age in groups, education, income."""
    group = np.digitize(table["age"].to_numpy(), [25, 35, 45, 55, 65, 75, 85])
    codes = [group, table["education"].to_physical().to_numpy(), table["income"].to_physical().to_numpy()]
    levels = [code[:, None] == np.arange(1, 1 + top) for code, top in zip(codes, (7, 4, 4), strict=True)]
    return np.hstack([np.ones((len(table), 1)), (table["sex"] == "female").to_numpy()[:, None], *levels]).astype(float)


def bench_methods() -> list[dict[str, object]]:
    """Release the built-in cohort (15,000 people) at k = 10 and 50: what is kept, and how long it takes.

    A model for log(1 + cost) is trained on the release and tested on 15,000 people who are not in it.
    """
    cohort, fresh = shoal.datasets.load_cohort(15_000, 0), shoal.datasets.load_cohort(15_000, 1)
    roles = {"quasi_identifiers": ["sex", "age", "education", "income"], "sensitive": ["cost"], "others": "drop"}
    truth = np.log1p(fresh["cost"].to_numpy())

    def score(train: pl.DataFrame) -> float:
        weights = np.linalg.lstsq(dummies(train), np.log1p(train["cost"].to_numpy()), rcond=None)[0]
        return round(1 - ((truth - dummies(fresh) @ weights) ** 2).mean() / truth.var(), 4)

    rows: list[dict[str, object]] = [
        {"method": "untouched", "k": None, "joint histogram kept": 1.0, "R2 on new people": score(cohort)}
    ]
    ways = [("permute", None), ("gaussian", "transport"), ("gaussian", "rank"), ("gaussian", "cdf"), ("resample", None)]
    ways.append(("centroid", None))
    for k in (10, 50):
        for method, recovery in ways:
            began = time.perf_counter()
            release = shoal.anonymize(cohort, **roles, k=k, method=method, recovery=recovery)
            rows.append(
                {
                    "method": method + (f", {recovery}" if recovery else ""),
                    "k": k,
                    "joint histogram kept": round(release.certificate["measured"]["histogram_intersection"], 4),
                    "R2 on new people": score(release.table),
                    "seconds": round(time.perf_counter() - began, 2),
                }
            )
    return rows


# ---------------------------------------------------------------- clustering


def bench_clustering() -> list[dict[str, object]]:
    """Cluster Gaussian rows by every algorithm and peer, side by side; IL is 100 SSE / SST. The chart is in docs/."""
    rows = compare_clustering.compare()
    compare_clustering.draw(rows, Path(__file__).parents[1] / "docs" / "clustering.svg")
    return rows


def bench_scale() -> list[dict[str, object]]:
    """Cluster Gaussian rows of 5 columns: how time and memory grow with the rows."""
    return compare_clustering.grow_with_rows()


def bench_reference() -> list[dict[str, object]]:
    """Information loss on the reference sets of microaggregation, 13 standardised columns (100 SSE / SST).

    The lower bound is that of benchmarks/lower_bound.py: no clustering whatever has a smaller loss.
    """
    rows = []
    for name in ("CASCrefmicrodata.csv", "Tarragona.csv"):
        Z = lower_bound.load(name)
        total = (Z**2).sum()
        for k in (3, 4, 5, 10):

            def fit(algorithm: str, seconds: float | None = None, k: int = k, Z: np.ndarray = Z) -> KMemberClustering:
                return KMemberClustering(k, algorithm=algorithm, time_limit=seconds, random_state=0).fit(Z)

            long = fit("refined", 60)
            row = {"set": name.removesuffix(".csv"), "k": k}
            for algorithm in ("mdav", "greedy", "flow", "auto"):
                row[algorithm] = round(100 * fit(algorithm).inertia_ / total, 3)
            row["refined, 3 s"] = round(100 * fit("refined", 3).inertia_ / total, 3)
            row["refined, 60 s"] = round(100 * long.inertia_ / total, 3)
            row["its clusters"], row["floor(n / k)"] = long.n_clusters_, len(Z) // k
            if k == 3:
                proved, _ = lower_bound.bound_from_below(Z, k, [long.labels_], seconds=600)
                row["no clustering is below"] = round(100 * proved / total - 5e-4, 3)
                row["refined at most above the best, %"] = math.ceil(1e3 * (long.inertia_ / proved - 1)) / 10
            rows.append(row)
    return rows


# ---------------------------------------------------------------- risk


def simulate_risk(X: np.ndarray, labels: np.ndarray, trials: int) -> np.ndarray:
    """Return every record's share of successes of the paper's attack on releases by resampling, ties at random."""
    values, of_record = np.unique(X, axis=0, return_inverse=True)
    of_record = of_record.ravel()
    distance = cdist(values, values)
    order = np.argsort(distance, axis=1, kind="stable")
    ranked = np.take_along_axis(distance, order, axis=1)
    shell = np.cumsum(np.diff(ranked, axis=1, prepend=0.0) > 1e-9, axis=1)
    shell_of = np.empty_like(shell)
    np.put_along_axis(shell_of, order, shell, axis=1)
    rng = np.random.default_rng(0)
    total = np.zeros(len(X))
    for _ in range(trials):
        received = of_record[draw_members(labels, rng)]
        present = np.bincount(received, minlength=len(values))
        nearest = np.where(present > 0, shell_of, np.iinfo(np.int64).max).min(axis=1)
        ties = np.where(shell_of == nearest[:, None], present, 0).sum(axis=1)
        hit = shell_of[of_record, received] == nearest[of_record]
        success = hit & (rng.random(len(X)) < 1 / ties[of_record])
        total += success
    return total / trials


def bench_risk() -> list[dict[str, object]]:
    """Exact re-identification risk against 1,000 simulated releases, nearest-match attacker, k = 10.

    15,000 people of the cohort in about 400 classes (sex, age in 8 groups, education, income). The simulation is plain
    vectorised NumPy on classes, releases by resampling, success counted as in the paper. Error: root mean square over
    records of simulated minus exact risk; that of the exact one is below 1e-10 (tests). Then what other methods take,
    and larger tables; peak memory is that of the process above its start.
    """
    cohort = shoal.datasets.load_cohort(15_000)
    codes = [cohort[c].to_physical().to_numpy() for c in ("education", "income")]
    age = np.digitize(cohort["age"], [25, 35, 45, 55, 65, 75, 85])
    X = np.column_stack([cohort["sex"] == "female", age, *codes]).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = KMemberClustering(10).fit(X).labels_
    classes = len(np.unique(X, axis=0))

    def row(name: str, n: int, m: int, seconds: float, **more: object) -> dict[str, object]:
        return {"what": name, "records": n, "classes": m, "seconds": round(seconds, 3), **more}

    exact = reidentification_risk(X, labels, method="resample")
    seconds = fastest(lambda: reidentification_risk(X, labels, method="resample"))
    began = time.perf_counter()
    mean = simulate_risk(X, labels, 1_000)
    simulated = time.perf_counter() - began
    rows = [
        row("resample, exact", 15_000, classes, seconds, error=0.0, mean_risk=round(exact.mean, 6)),
        row(
            "resample, 1,000 simulated releases",
            15_000,
            classes,
            simulated,
            error=float(f"{np.sqrt(((mean - exact.per_record) ** 2).mean()):.2g}"),
            mean_risk=round(float(mean.mean()), 6),
        ),
    ]
    rows[0]["times faster"] = round(simulated / seconds)
    for method, recovery, releases in (
        ("permute", None, 2),
        ("centroid", None, 2),
        ("gaussian", "cdf", 20),
        ("gaussian", "rank", 20),
        ("gaussian", "transport", 20),
    ):

        def measure(method: str = method, recovery: str | None = recovery, releases: int = releases) -> object:
            return reidentification_risk(
                X, labels, method=method, recovery=recovery, n_releases=releases, random_state=0
            )

        name = f"{recovery or method}, {'20 releases' if recovery else 'exact'}"
        found = measure()
        more = {"error": float(f"{found.mean_standard_error:.2g}"), "mean_risk": round(found.mean, 6)}
        rows.append(row(name, 15_000, classes, fastest(measure, 1), **more))
    rng = np.random.default_rng(0)
    for name, Z, k in (
        ("resample, exact", rng.integers(0, 17, (1_000_000, 3)).astype(float), 10),
        ("resample, exact, continuous", rng.standard_normal((100_000, 3)), 10),
    ):
        groups = np.empty(len(Z), dtype=np.int64)
        groups[np.lexsort(Z.T)] = np.arange(len(Z)) // k  # any clusters will do
        before = psutil.Process().memory_info().rss
        peak = [before]
        done = threading.Event()

        def watch(peak: list[int] = peak, done: threading.Event = done) -> None:
            while not done.wait(0.01):
                peak[0] = max(peak[0], psutil.Process().memory_info().rss)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        began = time.perf_counter()
        found = reidentification_risk(Z, groups, method="resample")
        seconds = time.perf_counter() - began
        done.set()
        watcher.join()
        memory = {"peak MB": round((peak[0] - before) / 1e6)}
        rows.append(row(name, len(Z), len(found.classes), seconds, mean_risk=round(found.mean, 6), **memory))
    return rows


def bench_attackers() -> list[dict[str, object]]:
    """Share of people found by attackers of whom 1/k = 0.1 binds the first only, on four tables of them.

    3,000 synthetic people with three Gaussian quasi-identifiers and a sensitive value y = x1 + 2 x2 + 3 x3, with noise
    of standard deviation 0.1, nearly determined by them; and with a y that has nothing to do with them. k = 10.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 3))
    rows = []
    for name, y in (
        ("depends on x", X @ [1, 2, 3] + 0.1 * rng.standard_normal(3_000)),
        ("independent of x", rng.standard_normal(3_000)),
    ):
        found = {
            way: compare_attackers(X, y, k=10, method=way, random_state=0, progress=False).findings
            for way in ("permute", "gaussian")
        }
        for attacker in found["permute"]["raw"]:
            row: dict[str, object] = {"y": name, "attacker": attacker}
            for table in ("raw", "centroid"):
                row[table] = round(found["permute"][table][attacker].rate, 4)
            row["permute"] = round(found["permute"]["release"][attacker].rate, 4)
            row["gaussian, transport"] = round(found["gaussian"]["release"][attacker].rate, 4)
            rows.append(row)
    return rows


# ---------------------------------------------------------------- transport


def bench_transport() -> list[dict[str, object]]:
    """Time transport at a million rows, and set both settings beside the exact assignment where that can be had."""
    rng = np.random.default_rng(0)

    def pair(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, d))
        return X[rng.permutation(n)] + 0.7 * rng.standard_normal((n, d)), X

    def total(dithered: np.ndarray, X: np.ndarray, index: np.ndarray) -> float:
        return float(((dithered - X[index]) ** 2).sum())

    settings = {"up to 50,000 rows": (512, 4), "above": (128, 2)}
    rows = []
    for n, d in ((4_000, 4), (4_000, 8), (100_000, 5), (1_000_000, 5)):
        dithered, X = pair(n, d)
        best = None
        if n == 4_000:
            began = time.perf_counter()
            best = total(dithered, X, linear_sum_assignment(cdist(dithered, X, "sqeuclidean"))[1])
            rows.append({"rows": n, "columns": d, "setting": "exact", "seconds": round(time.perf_counter() - began, 2)})
            rows[-1]["total over the best known"] = 1.0
        for name, (leaf, rounds) in settings.items():
            if n == 1_000_000 and name != "above":
                continue
            began = time.perf_counter()
            index = transport_recover(dithered, X, leaf_size=leaf, rounds=rounds, return_index=True)
            seconds = time.perf_counter() - began
            found = total(dithered, X, index)
            best = best or found
            row = {"rows": n, "columns": d, "setting": name, "seconds": round(seconds, 2)}
            row["total over the best known"] = round(found / best, 3) if n < 1_000_000 else None
            rows.append(row)
    return rows


# ---------------------------------------------------------------- the mixture transform


def chunked_numpy(x, means, covariances, weights, chunk: int = 64) -> np.ndarray:
    """Transform in plain NumPy, in chunks of rows: what one would write without a compiler."""
    factors = np.linalg.inv(np.linalg.cholesky(covariances))
    u = np.empty_like(x)
    for start in range(0, len(x), chunk):
        rows = x[start : start + chunk]
        log_weight = np.broadcast_to(np.log(weights), (len(rows), len(weights)))
        difference = rows[:, None, :] - means
        for j in range(x.shape[1]):
            z = np.einsum("nci,ci->nc", difference[:, :, : j + 1], factors[:, j, : j + 1])
            posterior = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
            u[start : start + chunk, j] = (posterior * ndtr(z)).sum(axis=1) / posterior.sum(axis=1)
            log_weight = log_weight - 0.5 * z**2 + np.log(factors[:, j, j])
    return u


def bench_mixture() -> list[dict[str, object]]:
    """Time the mixture transform on a MEPS-like cohort, n = 15,000, k = 5, d = 4, against chunked NumPy."""
    cohort = shoal.datasets.load_cohort(15_000)
    sex = (cohort["sex"] == "female").to_numpy()
    codes = [sex, *(cohort[name].to_physical().to_numpy() for name in ("age_group", "education", "income"))]
    X = np.column_stack([standardise(column.astype(float)) for column in codes])
    labels = KMemberClustering(5).fit(X).labels_
    dither = GaussianDither.fit(X, labels)
    x = dither.draw(labels, np.random.default_rng(0))
    mixture = dither.means, dither.covariances, dither.sizes
    began = time.perf_counter()
    reference = chunked_numpy(x, dither.means, dither.covariances, dither.sizes / len(x))
    plain = time.perf_counter() - began
    rows = [
        {"transform": "chunked NumPy", "components": len(labels) // 5, "seconds": round(plain, 2), "times faster": 1.0}
    ]
    for merge in (False, True):
        transform = MixtureRosenblatt(*mixture, merge=merge)
        u = transform.transform(x)
        seconds = fastest(lambda transform=transform: transform.transform(x), 5)
        rows.append(
            {
                "transform": "shoal, equal components merged" if merge else "shoal",
                "components": transform.n_components,
                "seconds": round(seconds, 3),
                "times faster": round(plain / seconds, 1),
                "largest difference": f"{np.abs(u - reference).max():.0e}",
            }
        )
    return rows


# ---------------------------------------------------------------- writing it down

# Anchors of the reference sets, Census then Tarragona, k = 3, 4, 5, 10.
DESCENT = (5.070, 6.670, 7.846, 11.967, 15.150, 17.529, 20.573, 30.723)
ANNEALING = (4.718, 6.074, 7.318, 11.409, 14.476, 17.116, 20.166, 30.122)


def of(rows: list[dict], algorithm: str) -> dict:
    """Return the row of an algorithm at 100,000 x 4, k = 5."""
    wanted = {"rows": 100_000, "columns": 4, "k": 5, "algorithm": algorithm}
    return next(row for row in rows if wanted.items() <= row.items())


# What must hold; a benchmark that misses one fails. Ratios are of times in the same run.
# ---------------------------------------------------------------- learning under shift


def bench_shift() -> list[dict[str, object]]:
    """Weigh a source for a target whose true ratio is known; then fit a linear model, of the wrong form, with them.

    numbers: four normal columns, of which the first has another mean and variance in the target. levels: sex x age x
    education x income, with a tilt by age and an interaction. Two thirds as many target records as source records. The
    error is the mean squared one on the target, against that of a fit with the true ratio. Every contender has a
    process of its own, at most 200 s and 12 GB; widths of kernels are chosen by the libraries from 0.03 to 1.
    """
    return compare_shift.compare()


def excess(rows: list[dict[str, object]], kind: str, who: str) -> float:
    """Return by how many per cent the target error is above that with the true ratio, at most."""
    name = "target error above that with the true ratio"
    found = [row[name] for row in rows if (row["columns"], row["weights by"]) == (kind, who)]
    return max(float(str(error).rstrip("%")) for error in found)


def bench_assess() -> list[dict[str, object]]:
    """Assess releases of five quasi-identifiers and a cost, and two tables of 200 columns, and write the page."""
    return compare_reports.assess_sizes((15_000, 100_000, 1_000_000))


def bench_references() -> list[dict[str, object]]:
    """Compare what an assessment says that an independent sample would score with what six do (10,000 people)."""
    return compare_reports.compare_references()


def bench_frontier() -> list[dict[str, object]]:
    """Risk against utility of all settings on the built-in cohort (15,000 people); drawn in docs/frontier.svg."""
    return compare_reports.draw_frontier()


def bench_study() -> list[dict[str, object]]:
    """Run the whole study of market risk on the built-in cohort by its command, from an empty folder.

    Every experiment, method and k is in it. How many pieces run at once changes no number.
    """
    rows = []
    for splits, jobs in ((10, 1), (10, count_threads(None)), (200, count_threads(None))):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "shoal", "study", "market-risk", "--quiet", "--out", folder]
            began = time.perf_counter()
            subprocess.run([*command, "--splits", str(splits), "--jobs", str(jobs)], check=True)
            rows.append({"splits": splits, "processes": jobs, "seconds": round(time.perf_counter() - began)})
    alone = float(rows[0]["seconds"])
    rows[1]["times faster"] = round(alone / float(rows[1]["seconds"]), 2)
    return rows


def bench_market() -> list[dict[str, object]]:
    """Estimate what the enrollees of another market will cost, from released members: what the method and k cost.

    The world of docs/learning.md: about 19,000 members of a market of 60,000, young ones mostly; a new market known by
    its margins of age and income. Three releases each; the charts of the page are drawn from these.
    """
    return compare_markets.compare()


def bench_files() -> list[dict[str, object]]:
    """Read files of the built-in cohort, six columns, with types found out, beside the plain reader of each format.

    Every reading is a process of its own; memory is its peak above what was there before, by byte of the file
    (unpacked) and by cell. What `shoal.io.reading` reckons with must be above that.
    """
    return compare_files.read_and_write(1_000_000, 200_000)


PROMISES = {
    "files": [
        (
            "memory by byte is below what reading reckons with",
            lambda rows: all(
                row["memory / byte"]
                <= FILE_MEMORY.get(
                    {"csv": "csv", "arrow": "arrow", "dta": "stata", "sav": "spss", "xpt": "xport"}.get(
                        row["file"].split(".")[1]
                    ),
                    1e9,
                )
                for row in rows
            ),
        ),
        (
            "memory by cell is below what reading reckons with, Parquet",
            lambda rows: all(row["memory / cell"] <= CELL_MEMORY for row in rows if row["file"] == ".parquet"),
        ),
        (
            "CSV at most ten times the plain reader's time",
            lambda rows: rows[0]["read (s)"] < 10 * rows[0]["plain reader (s)"],
        ),
    ],
    "study": [
        ("200 splits in under 15 minutes", lambda rows: rows[-1]["seconds"] < 900),
        ("10 splits in about a minute: at most two", lambda rows: rows[1]["seconds"] < 120),
    ],
    "market": [
        (
            "permuted members, k up to 20: within 1 % of the raw members' estimate",
            lambda rows: all(
                abs(float(str(row["off from raw"]).rstrip("%"))) < 1
                for row in rows
                if row["members"] == "permute" and row["k"] <= 20
            ),
        )
    ],
    "shift": [
        (
            "within 2 % of the error with the true ratio, by the ratio that fits the columns",
            lambda rows: (
                max(
                    excess(rows, "numbers", "shoal LogisticRatio quadratic"),
                    excess(rows, "numbers", "shoal NeighborRatio"),
                    excess(rows, "levels", "shoal EmpiricalRatio"),
                )
                < 2
            ),
        )
    ],
    "risk": [
        (
            "15,000 records in about 400 classes in under 2 s, closed forms and integral",
            lambda rows: rows[0]["seconds"] < 2,
        ),
        ("and faster than simulating", lambda rows: rows[0]["times faster"] > 1),
    ],
    "clustering": [
        (
            "greedy at least 10 times faster than a plain compiled MDAV at 100,000 x 4, k = 5",
            lambda rows: of(rows, "plain compiled MDAV")["seconds"] >= 10 * of(rows, "shoal greedy")["seconds"],
        ),
        (
            "20 s of refinement improve the greedy by 5 % there",
            lambda rows: of(rows, "shoal refined")["IL"] <= 0.95 * of(rows, "shoal greedy")["IL"],
        ),
    ],
    "scale": [
        ("greedy: growth exponent under 1.25", lambda rows: max(r["growth exponent"] for r in rows[:2]) < 1.25),
        ("greedy: under 100 bytes a row", lambda rows: max(r["bytes a row beyond the data"] for r in rows[:2]) < 100),
    ],
    "reference": [
        (
            "refined in 3 s at or below MDAV, greedy, flow and the published greedy with descent",
            lambda rows: all(
                row["refined, 3 s"] <= min(bound, row["mdav"], row["greedy"], row["flow"])
                for row, bound in zip(rows, DESCENT, strict=True)
            ),
        ),
        (
            "refined in 60 s within 1 % of the best of a prototype's annealing",
            lambda rows: all(row["refined, 60 s"] <= 1.01 * best for row, best in zip(rows, ANNEALING, strict=True)),
        ),
    ],
    "anonymize": [
        (
            "growth exponent from 100,000 to 1,000,000 rows under 1.25",
            lambda rows: max(row.get("growth exponent", 0.0) for row in rows) < 1.25,
        )
    ],
    "assess": [
        ("15,000 rows in under 10 s", lambda rows: rows[0]["seconds, release in memory"] < 10),
        ("a million rows in under two minutes", lambda rows: rows[2]["seconds, release in memory"] < 120),
        ("every page under 2 MB", lambda rows: max(row["page KB"] for row in rows) < 2_000),
    ],
    "mixture": [
        ("15 times faster than chunked NumPy", lambda rows: rows[1]["times faster"] >= 15),
        ("50 times with equal components merged", lambda rows: rows[2]["times faster"] >= 50),
    ],
    "transport": [
        (
            "within 10 % of the exact assignment",
            lambda rows: all(
                row["total over the best known"] <= 1.1
                for row in rows
                if row["rows"] == 4_000 and row["setting"] == "up to 50,000 rows"
            ),
        ),
        ("a million rows in under 30 s", lambda rows: rows[-1]["seconds"] < 30),
    ],
}
BENCHMARKS = {
    "methods": bench_methods,
    "anonymize": bench_anonymize,
    "clustering": bench_clustering,
    "scale": bench_scale,
    "reference": bench_reference,
    "risk": bench_risk,
    "attackers": bench_attackers,
    "transport": bench_transport,
    "mixture": bench_mixture,
    "shift": bench_shift,
    "market": bench_market,
    "assess": bench_assess,
    "references": bench_references,
    "frontier": bench_frontier,
    "study": bench_study,
    "files": bench_files,
}


def as_markdown(rows: list[dict[str, object]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    out.write(f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n")
    for row in rows:
        cells = [
            "" if row.get(name) is None else f"{row[name]:,}" if isinstance(row[name], int) else str(row[name])
            for name in names
        ]
        out.write(f"| {' | '.join(cells)} |\n")
    return out.getvalue()


def main(wanted: list[str]) -> None:
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    packages = ("shoal", "numpy", "scipy", "scikit-learn", "numba", "polars")
    about = f"{today}, Python {platform.python_version()}, {platform.machine()}, {count_threads(None)} cores; "
    about += ", ".join(f"{name} {version(name)}" for name in packages)
    missed: list[str] = []
    for name in wanted or BENCHMARKS:
        rows = BENCHMARKS[name]()
        text = f"# {name}\n\n{inspect.getdoc(BENCHMARKS[name])}\n\n{about}\n\n{as_markdown(rows)}"
        kept = {promise: holds(rows) for promise, holds in PROMISES.get(name, [])}
        text += "".join(f"\n{'holds' if fine else 'MISSED'}: {promise}\n" for promise, fine in kept.items())
        (RESULTS / f"{name}.md").write_text(text)
        print(text)
        missed += [f"{name}: {promise}" for promise, fine in kept.items() if not fine]
    if missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--release"]:
        print(json.dumps(release_file(*sys.argv[2:])))
    else:
        main(sys.argv[1:])
