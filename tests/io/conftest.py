"""A table of every type, and a real PostgreSQL server, started by the tests from the machine's own binaries."""

from __future__ import annotations

import datetime
import glob
import os
import shutil
import subprocess
import tempfile

import polars as pl
import pytest

PASSWORD = "s3cret-Canary-77"


@pytest.fixture
def plain_table():
    """Three rows of everything that every format holds, with something missing everywhere."""
    return pl.DataFrame(
        {
            "zip": ["007", "010", None],
            "n": [1, None, -3],
            "x": [1.5, 2.0, None],
            "flag": [True, False, None],
            "day": [datetime.date(2020, 1, 1), None, datetime.date(1950, 12, 31)],
            "at": [datetime.datetime(2020, 1, 1, 5, 6, 7), None, datetime.datetime(2020, 1, 1, 5, 6, 7, 250000)],
        }
    )


def _find(program):
    found = shutil.which(program)
    return found or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"), reverse=True)), None)


@pytest.fixture(scope="session")
def postgres():
    """The address of a server that listens on a socket only, and asks for a password."""
    initdb, control = _find("initdb"), _find("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("needs PostgreSQL; `make test-full` installs it on Debian as root")
    folder = tempfile.mkdtemp(prefix="shoal-pg-")  # not pytest's own, whose parents only its owner may enter
    os.chmod(folder, 0o755)
    options = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        options = {"user": "postgres", "group": "postgres", "extra_groups": []}

    def run(*command):
        subprocess.run(
            command, check=True, cwd=folder, capture_output=True, env={"PATH": os.environ["PATH"]}, **options
        )

    secret = os.path.join(folder, "password")
    with open(secret, "w") as file:
        file.write(f"{PASSWORD}\n")
    os.chmod(secret, 0o644)
    data = os.path.join(folder, "data")
    run(initdb, "-D", data, "-U", "alice", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--locale=C")
    settings = f"-k {folder} -c listen_addresses= -c fsync=off"
    run(control, "-D", data, "-w", "-l", os.path.join(folder, "log"), "-o", settings, "start")
    yield f"postgresql://alice:{PASSWORD}@/postgres?host={folder}"
    run(control, "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)
