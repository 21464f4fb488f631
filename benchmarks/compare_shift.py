"""Density ratios of shoal beside those of other libraries, on shifts whose true ratio is known.

Every contender runs in a process of its own, the others in an environment of their own (`make bench` installs it into
.venv-peers: adapt brings TensorFlow). Called with the name of a contender, this file runs it and prints what it took:
that part needs NumPy and scikit-learn only.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression

PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
LIMIT = 200  # seconds a contender may take
MOST_MEMORY = 12 * 2**30  # bytes
OURS = ("shoal EmpiricalRatio", "shoal LogisticRatio", "shoal LogisticRatio quadratic", "shoal NeighborRatio")
OTHERS = ("scikit-learn logit", "adapt KLIEP", "adapt uLSIF", "densratio uLSIF")


def make_problem(kind: str, n: int) -> dict[str, np.ndarray]:
    """Return source, target, responses and the true ratio at the source; two thirds as many target records."""
    rng = np.random.default_rng(1)
    m = 2 * n // 3
    if kind == "numbers":  # four normal columns, the target elsewhere and narrower in the first
        source, target = rng.normal(size=(n, 4)), rng.normal(size=(m, 4))
        target[:, 0] = 0.8 + 0.8 * target[:, 0]
        target[:, 1] += 0.3
        logs = -(((source[:, 0] - 0.8) / 0.8) ** 2 - source[:, 0] ** 2) / 2 - np.log(0.8)
        logs += 0.3 * source[:, 1] - 0.045
    else:  # sex x age x education x income, as codes; a tilt by age, and poor people of middle age twice as often
        levels = (2, 8, 5, 5)
        source, pool = (
            np.column_stack([rng.integers(0, k, size) for k in levels]).astype(float) for size in (n, 8 * m)
        )

        def odds(X: np.ndarray) -> np.ndarray:
            return np.exp(0.25 * X[:, 1]) * np.where((X[:, 3] == 0) & (X[:, 1] > 2) & (X[:, 1] < 6), 2.0, 1.0)

        every = np.stack(np.meshgrid(*map(np.arange, levels), indexing="ij"), axis=-1).reshape(-1, 4)
        logs = np.log(odds(source)) - np.log(odds(every).mean())
        target = pool[rng.choice(len(pool), m, p=odds(pool) / odds(pool).sum())]

    def respond(X: np.ndarray) -> np.ndarray:
        Z = (X - source.mean(axis=0)) / source.std(axis=0)
        return Z[:, 0] ** 2 + Z[:, 1] ** 2 + Z[:, 0] * Z[:, 1] + Z[:, 3] + rng.normal(size=len(X)) / 2

    return {
        "source": source,
        "target": target,
        "y": respond(source),
        "y_target": respond(target),
        "logs": logs,
    }


def weigh(who: str, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the weights that a contender gives the source's records."""
    if who.startswith("shoal"):
        from shoal import shift

        _, name, *options = who.split()
        return getattr(shift, name)(*options).fit(source, target).weights_
    if who == "scikit-learn logit":
        from sklearn.linear_model import LogisticRegression

        domain = np.repeat([0, 1], [len(source), len(target)])
        chance = LogisticRegression().fit(np.vstack([source, target]), domain).predict_proba(source)[:, 1]
        return chance / (1 - chance) * len(source) / len(target)
    if who == "densratio uLSIF":
        from densratio import densratio

        return densratio(target, source, verbose=False).compute_density_ratio(source)
    from adapt.instance_based import KLIEP, ULSIF

    spread = np.vstack([source, target]).std(axis=0)
    X, Z = source / spread, target / spread
    if who == "adapt KLIEP":
        return KLIEP(Xt=Z, kernel="rbf", gamma=[0.03, 0.1, 0.3, 1.0], verbose=0, random_state=0).fit_weights(X, Z)
    options = {"kernel": "rbf", "gamma": [0.03, 0.1, 0.3, 1.0], "lambdas": [0.01, 0.1, 1.0]}
    return ULSIF(Xt=Z, **options, verbose=0, random_state=0).fit_weights(X, Z)


def load(who: str) -> None:
    """Import and compile what a contender needs, before anything is measured."""
    rng = np.random.default_rng(0)
    weigh(who, rng.integers(0, 9, (400, 4)).astype(float), rng.integers(0, 9, (300, 4)).astype(float))


def read_peak() -> float:
    """Return the highest memory of this process so far, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def run_one(who: str, kind: str, n: int) -> dict[str, float]:
    """Run a contender: seconds, memory, and how well a linear model does on the target with its weights."""
    problem = make_problem(kind, n)
    load(who)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # begin the peak anew
    before, began = read_peak(), time.perf_counter()
    weights = np.maximum(weigh(who, problem["source"], problem["target"]), 0.0)
    seconds, memory = time.perf_counter() - began, read_peak() - before

    def error(w: np.ndarray) -> float:
        model = LinearRegression().fit(problem["source"], problem["y"], sample_weight=w)
        return float(np.mean((model.predict(problem["target"]) - problem["y_target"]) ** 2))

    true = error(np.exp(problem["logs"]))
    positive = weights > 0
    return {
        "seconds": seconds,
        "megabytes": memory,
        "excess": error(weights) / true - 1,
        "unweighted": error(np.ones(n)) / true - 1,
        "correlation": float(np.corrcoef(np.log(weights[positive]), problem["logs"][positive])[0, 1]),
    }


def compare(sizes: tuple[int, ...] = (15_000, 200_000)) -> list[dict[str, object]]:
    """Run all contenders on both problems."""
    rows = []
    for kind in ("numbers", "levels"):
        for n in sizes:
            for who in (*OURS, *OTHERS):
                python = str(PEERS) if who.split()[0] in ("adapt", "densratio") else sys.executable
                row: dict[str, object] = {"columns": kind, "source records": n, "weights by": who}
                try:
                    command = [python, "-W", "ignore", __file__, who, kind, str(n)]
                    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
                    found = json.loads(done.stdout.splitlines()[-1])
                    row["seconds"] = round(found["seconds"], 2)
                    row["MB"] = round(found["megabytes"])
                    row["target error above that with the true ratio"] = f"{found['excess']:+.2%}"
                    row["correlation of log-weights with the truth"] = round(found["correlation"], 3)
                    row["(without weights)"] = f"{found['unweighted']:+.1%}"
                except FileNotFoundError:
                    row["seconds"] = "not installed"
                except subprocess.TimeoutExpired:
                    row["seconds"] = f"over {LIMIT}"
                except subprocess.CalledProcessError as failed:
                    row["seconds"] = (
                        f"failed: {failed.stderr.strip().splitlines()[-1][:60] if failed.stderr else 'killed'}"
                    )
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    print(json.dumps(run_one(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
