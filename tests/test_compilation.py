from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from shoal import compilation

CODE = """
import sys
from shoal.clustering import KMemberClustering
from shoal.compilation import quiet
import contextlib
with quiet() if len(sys.argv) > 1 else contextlib.nullcontext():
    KMemberClustering(2).fit([[0.0], [1.0], [2.0], [3.0]])
"""


def run(cache, *arguments):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", CODE, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stderr


def test_compilation_is_announced_once_per_machine(tmp_path):
    assert (
        run(tmp_path / "a") == "shoal: compiling numerical kernels, once on this machine; this takes some seconds ...\n"
    )
    assert run(tmp_path / "a") == ""
    assert run(tmp_path / "b", "quiet") == ""


def test_blocks_cover_every_row_and_errors_surface():
    seen = []
    compilation.run_in_threads(lambda a, b: seen.append((a, b)), 10, 4, n_jobs=1)
    assert seen == [(0, 4), (4, 8), (8, 10)]
    with pytest.raises(ZeroDivisionError):
        compilation.run_in_threads(lambda a, b: 1 // (a - 4), 10, 4, n_jobs=3)


def test_an_interruption_waits_until_the_compiler_is_done(ctrl_c):
    done = []

    def compile_something():
        with compilation.held_signals():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        compile_something()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_compile_without_ado():
    def work(start, stop):
        with compilation.held_signals():
            seen.append((start, stop))

    seen = []
    compilation.run_in_threads(work, 4, 1, n_jobs=2)
    assert sorted(seen) == [(0, 1), (1, 2), (2, 3), (3, 4)]
