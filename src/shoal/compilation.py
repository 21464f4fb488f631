"""Compile numerical kernels once per machine, and run them on all cores.

Kernels are compiled by numba the first time they are called, never at import, and cached on disk. Because the first
call takes seconds, it is announced on standard error (`quiet()` keeps it silent).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numba

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Kernels never see a NaN: input is checked before. Saying so lets the compiler vectorise a minimum.
_NO_NAN = {"nnan", "nsz"}
_REORDERED = _NO_NAN | {"contract", "reassoc"}
_quiet: ContextVar[bool] = ContextVar("shoal_quiet", default=False)
_announced: list[bool] = []
_pools: list[Any] = []
_limit: list[int] = []  # at most one: how many cores everything may use


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the compilation notice off standard error inside this block."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Deliver an interruption or termination that arrives inside this block after it.

    The compiler calls back into Python from where no exception can get out: Ctrl-C would be swallowed there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    wanted = [s for s in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(s))]
    before = [signal.signal(s, lambda number, _: arrived.append(number)) for s in wanted]
    try:
        yield
    finally:
        for number, handler in zip(wanted, before, strict=True):
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a small function that kernels call; the compiler folds it into them."""
    return numba.njit(inline="always", **_OPTIONS)(function)


def subroutine(*, reordered: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that kernels call; the compiler decides whether to fold it into them."""
    return numba.njit(fastmath=_REORDERED if reordered else _NO_NAN, **_OPTIONS)


class Kernel:
    """A function from arrays to arrays, compiled when first called and cached on disk."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str]) -> None:
        self.compiled = numba.njit(fastmath=fastmath, **_OPTIONS)(function)
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, compiling it first where this machine has not done so yet."""
        if self.compiled.signatures:
            return self.compiled(*args)
        if not self._is_cached():
            _announce()
        with held_signals():
            return self.compiled(*args)

    def _is_cached(self) -> bool:
        function = self.compiled.py_func
        file = function.__module__.rpartition(".")[2]
        return any(Path(self.compiled.stats.cache_path).glob(f"{file}.{function.__name__}-*.nbi"))


def kernel(*, fused: bool = False, reordered: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Compile the decorated function; it runs without the interpreter lock.

    fused=True lets a multiplication and an addition become one instruction: faster and more exact, but no longer
    equal to NumPy in the last bit, nor symmetric, so not where ties decide. reordered=True lets a sum be taken in
    another order too, which vectorises sums over few numbers; only where the last digits decide nothing.
    """
    fastmath = _REORDERED if reordered else _NO_NAN | {"contract"} if fused else _NO_NAN
    return lambda function: Kernel(function, fastmath)


def _announce() -> None:
    if not _announced and not _quiet.get() and sys.stderr is not None:
        sys.stderr.write("shoal: compiling numerical kernels, once on this machine; this takes some seconds ...\n")
        sys.stderr.flush()
        _announced.append(True)


def count_threads(n_jobs: int | None) -> int:
    """Resolve `n_jobs` as scikit-learn does: None or -1 is every core this process may use."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if _limit:
        return _limit[0]
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_threads(n_jobs: int | None) -> None:
    """Let everything of this process that names no number of its own use so many cores; None or -1: every one."""
    from threadpoolctl import threadpool_limits

    while _pools:
        _pools.pop().restore_original_limits()
    _limit[:] = [] if n_jobs is None or n_jobs < 1 else [n_jobs]
    if _limit:
        _pools.append(threadpool_limits(_limit[0]))


def run_in_threads(work: Callable[[int, int], None], n_rows: int, block: int, n_jobs: int | None = None) -> None:
    """Call `work(start, stop)` over blocks of rows, on several threads when there are several blocks.

    Blocks must be independent of one another, so that the result cannot depend on the number of threads.
    """
    ranges = [(start, min(start + block, n_rows)) for start in range(0, n_rows, block)]
    threads = min(count_threads(n_jobs), len(ranges))
    if threads <= 1:
        for start, stop in ranges:
            work(start, stop)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(lambda r: work(*r), ranges))  # a list, so that an error in a thread surfaces here
        except BaseException:
            pool.shutdown(cancel_futures=True)  # waits for what has begun, which still uses the arrays
            raise
