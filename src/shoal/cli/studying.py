"""What the command `study` does: run an experiment, write its page and tables, say what was found."""

from __future__ import annotations

import contextlib
import os
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.cli.run import whatever_happens_to_the_screen
from shoal.compilation import quiet as keep_quiet
from shoal.io import STANDARD, refuse_output
from shoal.io.writing import write_all
from shoal.studies.study import PAGE, MarketRiskStudy, load_people, market_risk

_STYLES = {"holds": "green", "in part": "yellow", "does not hold": "red", "cannot be told": "dim"}


def run_market_risk(
    data: str | None, out: str, *, splits: int, seed: int, jobs: int | None, json: str | None, quiet: bool
) -> None:
    """Run the study of market risk into a folder."""
    from shoal.report import json_text

    if json not in (None, STANDARD):
        refuse_output([] if data is None else [data], [str(json)])
    if not quiet:
        source = load_people(data).source
        hint = "" if data is not None else " Real data: --data FILE, a full-year consolidated file of MEPS."
        sys.stderr.write(f"shoal: people: {source}.{hint}\n")
    try:
        with keep_quiet() if quiet else contextlib.nullcontext():
            study = market_risk(data, out, splits=splits, seed=seed, jobs=jobs, progress=False if quiet else None)
    except KeyboardInterrupt:
        sys.stderr.write(f"shoal: what is finished is kept in {out!r}; the same command goes on from there.\n")
        raise
    if json is not None:
        write_all([(json, json_text(study.to_dict()).encode())], {})
    if not quiet:
        with whatever_happens_to_the_screen("the study was written"):
            _show(study, out, Console(stderr=json == STANDARD))


def _show(study: MarketRiskStudy, out: str, console: Console) -> None:
    rows = Table("the paper says", "here", box=None, padding=(0, 2, 0, 0))
    for claim in study.claims:
        rows.add_row(Text(claim.said), Text(claim.verdict, style=_STYLES[claim.verdict]))
    console.print(rows)
    console.print()
    console.print(Text(str(study)))
    page = os.path.join(out, PAGE)
    console.print(Text(f"Wrote {page}, open it in a browser, and the tables beside it as CSV."), soft_wrap=True)
