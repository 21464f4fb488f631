"""Work that takes long: in parallel, kept piece by piece, and taken up again where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

import shoal
from shoal.compilation import quiet
from shoal.errors import FileError
from shoal.io.writing import write_files

# What only shows results, and may change without making pieces anew.
_SHOWN = ("figures", "page", "published", "study", "summarising")
_LIBRARIES = ("numba", "numpy", "polars", "scikit-learn", "scipy")
_SHOWN_ONLY = ("report/", "cli/", "studies/claims/", *(f"studies/{name}.py" for name in _SHOWN))


@dataclass(frozen=True)
class Task:
    """A piece of work: a function of plain arguments, which returns what JSON can hold.

    name: unique, and fit for a file. cost: about how long it takes, in any unit, for the progress bar and the order.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    cost: float = 1.0


def run_tasks(
    tasks: Sequence[Task], shared: Any, folder: Path | None, jobs: int, report: Callable[[float], None]
) -> dict[str, Any]:
    """Return what `function(shared, *arguments)` gives for every task, by its name.

    What is done is kept in the folder, if there is one, a file a task: the same call made again after an interruption
    does the rest. Tasks must not depend on one another, nor on how many run at once.
    """
    found: dict[str, Any] = {}
    for task in tasks:
        kept = None if folder is None else _recall(folder / f"{task.name}.json")
        if kept is not None:
            found[task.name] = kept[0]
    todo = sorted((task for task in tasks if task.name not in found), key=lambda task: -task.cost)
    whole = sum(task.cost for task in tasks)
    left = sum(task.cost for task in todo)
    report(1 - left / whole)
    for task, result in _run(todo, shared, jobs):
        found[task.name] = result
        if folder is not None:
            write_files([(folder / f"{task.name}.json", json.dumps(result).encode())])
        left -= task.cost
        report(min(1.0, 1 - left / whole))
    return found


def _run(todo: Sequence[Task], shared: Any, jobs: int) -> Any:
    if jobs == 1 or len(todo) < 2:
        for task in todo:
            with threadpool_limits(1):  # as in the processes below, so that sums are added up in the same order
                _, result = _work(task, shared)
            yield task, result
        return
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", max_nbytes=None, batch_size=1)
        named = {task.name: task for task in todo}
        for name, result in parallel(joblib.delayed(_work)(task, shared) for task in todo):
            yield named[name], result


def _work(task: Task, shared: Any) -> tuple[str, Any]:
    with quiet():
        return task.name, _as_json(task.function(shared, *task.arguments))


def _as_json(result: Any) -> Any:
    """Return the result as it will be read again, so that a run taken up again cannot differ from one in one go."""
    return json.loads(json.dumps(result))


def _recall(path: Path) -> list[Any] | None:
    """Return what was kept, in a list; None where nothing was, or not all of it."""
    try:
        return [json.loads(path.read_bytes())]
    except (OSError, ValueError):
        return None


def make_folder(out: Path, *what: str) -> Path:
    """Return the folder for the pieces of this very work: of this code and its libraries, and of what else is named."""
    versions = [f"{name} {version(name)}" for name in _LIBRARIES]
    digest = hashlib.sha256("\n".join([_digest_of_code(), *versions, *what]).encode()).hexdigest()[:16]
    folder = out / "parts" / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {os.fspath(folder)!r}: {error.strerror}.") from None
    return folder


def _digest_of_code() -> str:
    """Return a fingerprint of the package's code that pieces depend on: those made by other code are never used."""
    home = Path(os.path.dirname(shoal.__file__))
    found = hashlib.sha256(shoal.__version__.encode())
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).as_posix()
        if not name.startswith(_SHOWN_ONLY):
            found.update(name.encode() + path.read_bytes())
    return found.hexdigest()
