"""What the commands that only look at tables do: assess, frontier, inspect."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.assessment import Scores, assess
from shoal.assessment.scores import write_number
from shoal.cli.run import say_pages, whatever_happens_to_the_screen
from shoal.cli.sources import Input
from shoal.compilation import quiet as keep_quiet
from shoal.errors import FileError, InputError
from shoal.inspection import Inspection, inspect
from shoal.io import STANDARD, certificate_path_of, read_certificate, refuse_output
from shoal.io.writing import write_files
from shoal.tradeoff import Frontier, frontier

_MOST_SHOWN = 10


def run_assess(
    original: Input,
    released: Input,
    options: dict[str, Any],
    *,
    certificate: str | None,
    pages: Mapping[str, str | None],
    json: str | None,
    charts: tuple[str | None, str],
    quiet: bool,
) -> None:
    """Compare two files, write what was asked for, and show the scores."""
    from shoal.report import FORMATS, chart_files, json_text, render_page

    _need_quasi_identifiers(options)
    folder, fmt = charts
    if fmt not in FORMATS:
        raise InputError(f"--chart-format {fmt!r} is not known; choose from {', '.join(FORMATS)}.")
    if folder is not None and not os.path.isdir(folder):
        raise FileError(f"The folder {folder!r} does not exist; make it first.")
    after = str(released.path)
    beside = certificate_path_of(after)
    if certificate is None and beside is not None and os.path.exists(beside):
        certificate = beside
    _refuse([*original.files(), *released.files(), certificate], [*pages.values(), json])
    note = None if certificate is None else read_certificate(certificate, after)
    with keep_quiet() if quiet else contextlib.nullcontext():
        tables = [source.read(quiet=quiet).table for source in (original, released)]
        found = assess(*tables, certificate=note, progress=False if quiet else None, **options)
    internal = found.to_dict()
    files = [(path, render_page(found.to_dict(edition)).encode()) for edition, path in pages.items() if path]
    drawn = [] if folder is None else chart_files(found.charts(), folder, fmt)
    _write(files, drawn, None if json is None else (json, json_text(internal)))
    if quiet:
        return
    with whatever_happens_to_the_screen("the work is done"):
        console = _console(json)
        _show_scores("what is risked", found.privacy, console)
        _show_scores("what is kept", found.utility, console)
        for what, why in found.refused:
            console.print(Text(f"not measured: {what}: {why}"), soft_wrap=True)
        _say_written(files, drawn, console)


def run_frontier(
    source: Input,
    options: dict[str, Any],
    *,
    page: str | None,
    json: str | None,
    chart: str | None,
    quiet: bool,
) -> None:
    """Try settings on a file, write what was asked for, and show the table."""
    from shoal.report import FORMATS, draw, json_text, render_page

    _need_quasi_identifiers(options)
    fmt = "" if chart is None else Path(chart).suffix.lower().removeprefix(".")
    if chart is not None and fmt not in FORMATS:
        raise InputError(f"--chart {chart!r} must end in {', '.join('.' + name for name in FORMATS)}.")
    _refuse(source.files(), [page, chart, json])
    given = {name: value for name, value in options.items() if value is not None}
    with keep_quiet() if quiet else contextlib.nullcontext():
        found = frontier(source.read(quiet=quiet).table, progress=False if quiet else None, **given)
    data = found.to_dict()
    files = [] if page is None else [(page, render_page(None, data).encode())]
    drawn = [] if chart is None else [(Path(os.path.realpath(chart)), draw(found.chart, fmt))]
    _write(files, drawn, None if json is None else (json, json_text(data)))
    if quiet:
        return
    with whatever_happens_to_the_screen("the work is done"):
        console = _console(json)
        _show_frontier(found, console)
        _say_written(files, drawn, console)


def run_inspect(
    source: Input,
    quasi_identifiers: Sequence[str] | None,
    kinds: Mapping[str, Any],
    *,
    json: str | None,
    quiet: bool,
) -> None:
    """Show what a file has and what singles people out in it."""
    from shoal.report import json_text

    _refuse(source.files(), [json])
    table = source.read(quiet=quiet).table
    found = inspect(table, quasi_identifiers=quasi_identifiers, kinds=kinds, progress=False if quiet else None)
    _write([], [], None if json is None else (json, json_text(found.to_dict())))
    if quiet:
        return
    with whatever_happens_to_the_screen("the work is done"):
        _show_inspection(found, source, _console(json))


def _need_quasi_identifiers(options: Mapping[str, Any]) -> None:
    if not options["quasi_identifiers"]:
        raise InputError("Say by which columns a person could be recognised: --qi age,sex,zip.")


def _refuse(inputs: Sequence[str | None], outputs: Sequence[str | None]) -> None:
    """Refuse outputs that would overwrite anything; JSON alone may go to standard output."""
    given = [path for path in outputs if path not in (None, STANDARD)]
    if STANDARD in outputs[:-1]:
        raise FileError("Only --json can go to standard output; name files for the rest.")
    refuse_output([path for path in inputs if path is not None], [str(path) for path in given])


def _write(
    files: Sequence[tuple[str, bytes]], drawn: Sequence[tuple[Path, bytes]], json: tuple[str, str] | None
) -> None:
    """Write all files or none, JSON to standard output if that is what was said."""
    ready = [(Path(os.path.realpath(path)), content) for path, content in files] + list(drawn)
    text = b"" if json is None else json[1].encode()
    if json is not None and json[0] != STANDARD:
        ready.append((Path(os.path.realpath(json[0])), text))
        text = b""
    write_files(ready, to_standard_output=text)


def _console(json: str | None) -> Console:
    return Console(stderr=json == STANDARD)


def _say_written(files: Sequence[tuple[str, bytes]], drawn: Sequence[tuple[Path, bytes]], console: Console) -> None:
    say_pages(files, console)
    if drawn:
        names = ", ".join(path.name for path, _ in drawn)
        console.print(Text(f"Drew {names} in {drawn[0][0].parent}."), soft_wrap=True)


def _show_scores(title: str, scores: Scores, console: Console) -> None:
    rows = Table(title, "value", "independent sample", "better", box=None, padding=(0, 2, 0, 0))
    rows.columns[1].justify = rows.columns[2].justify = "right"
    for score in scores.values():
        value, reference = score.written()
        rows.add_row(Text(score.title), value, reference, score.better)
    console.print(rows)
    console.print()


def _show_frontier(found: Frontier, console: Console) -> None:
    heads = ("k", "setting", "bound", "optimal", "nearest", "joint", "predicts", "shift", "kept")
    rows = Table(*heads, box=None, padding=(0, 1, 0, 0))
    for column in (rows.columns[0], *rows.columns[2:]):
        column.justify = "right"
    for o in found.outcomes:
        figures = (o.bound, o.optimal, o.nearest, o.joint, o.prediction, o.shift, o.utility)
        mark = "* " if o is found.recommended else ""
        rows.add_row(f"{mark}{o.k}", o.name, *(write_number(figure, "share") for figure in figures))
    console.print(rows)
    said = (
        "bound: guaranteed. optimal, nearest: picked out by one who knows the clusters, and by the nearest match. "
        "joint, predicts: shares kept. shift: error of an estimate for another population. kept: the least of all. "
        f"*: recommended. {found.predicted}"
    )
    console.print(Text(said, style="dim"))
    console.print()
    console.print(Text(found.why))


def _show_inspection(found: Inspection, source: Input, console: Console) -> None:
    rows = Table("column", "kind", "missing", "values", "role?", "why", box=None, padding=(0, 2, 0, 0))
    rows.columns[2].justify = rows.columns[3].justify = "right"
    for c in found.columns:
        share = write_number(c.missing / found.rows, "share")
        rows.add_row(Text(c.name), c.kind or c.dtype, share, f"{c.distinct:,}", c.suggested.replace("_", "-"), c.why)
    console.print(rows)
    console.print()
    if found.combinations:
        worst = Table("columns together", "people alone", "in groups under 10", box=None, padding=(0, 2, 0, 0))
        worst.columns[1].justify = worst.columns[2].justify = "right"
        for one in found.combinations[:_MOST_SHOWN]:
            worst.add_row(Text(" + ".join(one.columns)), f"{one.alone:,}", f"{one.below:,}")
        console.print(worst)
        console.print()
    console.print(Text(found.reading))
    console.print()
    console.print(Text("Roles are for you to decide. To paste, and to think about first:"))
    console.print(Text(found.as_command(*source.words())), soft_wrap=True)
    sys.stdout.flush()
