"""Reading and writing files: how long beside the plain readers, and how much memory for every byte."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

import shoal
from shoal.io import write_release

# Each reads in a process of its own, so that the peak of its memory is what reading took.
_READ = """
import sys, time, psutil
name, how = sys.argv[1:]
import polars as pl, fastexcel, pyreadstat, zstandard
from shoal.io import read_table
from shoal.io import excel, statistical
process = psutil.Process()
readers = {
    "csv": lambda: pl.read_csv(name, infer_schema_length=None),
    "gz": lambda: pl.read_csv(name, infer_schema_length=None),
    "zst": lambda: pl.read_csv(name, infer_schema_length=None),
    "parquet": lambda: pl.read_parquet(name), "arrow": lambda: pl.read_ipc(name),
    "xlsx": lambda: pl.read_excel(name), "dta": lambda: pyreadstat.read_dta(name, output_format="polars"),
    "sav": lambda: pyreadstat.read_sav(name, output_format="polars"),
    "xpt": lambda: pyreadstat.read_xport(name, output_format="polars"),
}
before = process.memory_info().rss
began = time.perf_counter()
kept = read_table(name) if how == "shoal" else readers[name.rsplit(".", 1)[1]]()
seconds = time.perf_counter() - began
status = open("/proc/self/status").read()
peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
print(seconds, peak - before)
"""


def _run(path: Path, how: str) -> tuple[float, int]:
    runs = [
        subprocess.run([sys.executable, "-c", _READ, str(path), how], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    found = [tuple(float(part) for part in run.stdout.split()) for run in runs]
    return min(seconds for seconds, _ in found), int(max(peak for _, peak in found))


def read_and_write(n: int, few: int) -> list[dict[str, object]]:
    """Write a table of six columns in every format, and read it again beside the plain reader."""
    import time

    import pyreadstat

    cohort = shoal.datasets.load_cohort(n).drop("age_group").with_columns(education=pl.col("education").cast(pl.String))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "csv.gz", "csv.zst", "parquet", "arrow", "xlsx", "dta", "sav", "xpt"):
            table = cohort.head(few) if ending in ("xlsx", "dta", "sav", "xpt") else cohort
            path = Path(folder) / f"people.{ending}"
            began = time.perf_counter()
            if ending in ("sav", "xpt"):
                writer = pyreadstat.write_sav if ending == "sav" else pyreadstat.write_xport
                writer(table.with_columns(pl.col(pl.Enum).cast(pl.String)), str(path))
                written = None
            else:
                write_release(table, {}, path)
                written = round(time.perf_counter() - began, 2)
            seconds, peak = _run(path, "shoal")
            plain, plain_peak = _run(path, "plain")
            size = path.stat().st_size
            unpacked = len(cohort.write_csv().encode()) if ending.startswith("csv.") else size
            rows.append(
                {
                    "file": f".{ending}",
                    "rows": len(table),
                    "megabytes": round(size / 2**20, 1),
                    "write (s)": written,
                    "read (s)": round(seconds, 2),
                    "plain reader (s)": round(plain, 2),
                    "memory / byte": round(peak / unpacked, 1),
                    "plain: memory / byte": round(plain_peak / unpacked, 1),
                    "memory / cell": round(peak / (len(table) * table.width), 1),
                }
            )
    return rows
