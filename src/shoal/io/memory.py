"""How much memory there is, and whether a table fits: better a clear refusal than a process that the system kills."""

from __future__ import annotations

import os
from pathlib import Path

from shoal.errors import FileError

_GIB = 1024**3
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return how many bytes this process may still use, None where the system does not say."""
    limits = [limit for limit in (_free_memory(), _left_in_group(), _left_to_process()) if limit is not None]
    return min(limits) if limits else None


def check_room(needed: float, what: str) -> None:
    """Refuse a table that would not fit into memory."""
    room = available_memory()
    if room is not None and needed > room:
        raise FileError(
            f"{what} needs about {_write_size(needed)} of memory to be read, but {_write_size(room)} are free. Use a "
            "machine with more memory, leave out columns that are not released, or turn to Apache Spark for tables of "
            "this size."
        )


def _write_size(size: float) -> str:
    return f"{size / _GIB:,.1f} GiB" if size >= 0.1 * _GIB else f"{size / 1024**2:,.1f} MiB"


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _left_in_group() -> int | None:
    """Return what is left of the limit of a container."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)


def _left_to_process() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return limit
    return max(0, limit - used)
