"""Progress for whatever takes longer than two seconds: a bar with the time left on a terminal, or a callback."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

PATIENCE = 2.0  # seconds before anything is shown

Progress = Callable[[str, float], None]


def ignore(share: float) -> None:
    """Show nothing."""


@contextlib.contextmanager
def waiting(what: str, *, shown: bool = True) -> Iterator[None]:
    """Say on a terminal, after two seconds, what goes on inside this block: nobody knows how much of it is done."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{what} ...")
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class Reporter:
    """Tell how far each stage is; a context manager, so that the terminal is left clean.

    progress: None shows a bar if standard error is a terminal, True always, False never; a callable is called with
    the stage and the share done, from 0 to 1.
    """

    def __init__(self, progress: bool | Progress | None = None) -> None:
        self._callback = progress if callable(progress) else None
        shown = (sys.stderr is not None and sys.stderr.isatty()) if progress is None else progress is True
        self._shown = shown and self._callback is None
        self._began = time.monotonic()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def stage(self, name: str) -> Callable[[float], None]:
        """Return a function that takes the share done of this stage."""

        def report(share: float) -> None:
            if self._callback is not None:
                self._callback(name, share)
            elif self._shown:
                self._show(name, share)

        report(0.0)
        return report

    def _show(self, name: str, share: float) -> None:
        if self._bar is None:
            if time.monotonic() - self._began < PATIENCE:
                return
            self._bar = _make_bar()
            self._bar.start()
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=1.0)
        self._bar.update(self._tasks[name], completed=share)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
    return Progress(*columns, TimeRemainingColumn(compact=True), console=Console(stderr=True), transient=True)
