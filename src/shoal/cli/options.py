"""Options that several commands share, as typer wants them declared."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.completing import complete_columns, one_of

EPILOG = (
    "Exit codes: 0 done; 2 wrong usage or input; 3 refused to protect people, or a check failed; 4 a file or database "
    "cannot be read or written; 70 internal error; 130 interrupted. Unless it is 0, no output file was written."
)

METHODS = ("gaussian", "permute", "resample", "centroid")
RECOVERIES = ("transport", "rank", "cdf")
CLUSTERINGS = ("auto", "greedy", "refined", "mdav", "optimal", "flow")
KINDS = ("numeric", "ordinal", "nominal", "datetime")

Table = Annotated[
    str | None,
    typer.Argument(
        help="CSV (also .gz, .zst), Parquet, Arrow, Excel, Stata, SPSS or SAS file; - for standard input. Not with "
        "--from."
    ),
]
QI = Annotated[
    str | None,
    typer.Option(
        "--qi",
        help="Columns by which a person could be recognised, separated by commas.",
        autocompletion=complete_columns,
    ),
]
Sensitive = Annotated[
    str | None, typer.Option(help="Columns released as they are, with their record.", autocompletion=complete_columns)
]
Identifiers = Annotated[str | None, typer.Option(help="Columns that never leave.", autocompletion=complete_columns)]
Weight = Annotated[
    str | None,
    typer.Option(help="Survey weight; it travels with the quasi-identifiers.", autocompletion=complete_columns),
]
Unit = Annotated[
    str | None,
    typer.Option(help="Person column, when a person has several rows.", autocompletion=complete_columns),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        help="Override a kind: zip=nominal, or levels in order, quoted: 'edu=none<school'. Repeatable.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="Sensitive column that a model learns to predict. Default: the first that can be.",
        autocompletion=complete_columns,
    ),
]
Clustering = Annotated[
    str | None,
    typer.Option(
        help="auto, greedy, refined, mdav, optimal (one column) or flow. Default: auto.",
        autocompletion=one_of(*CLUSTERINGS),
    ),
]
Report = Annotated[
    str | None, typer.Option(help="Where to write the report, an HTML page for the house (internal edition).")
]
PublicReport = Annotated[
    str | None, typer.Option(help="Where to write the public edition: no small groups, nothing about one person.")
]
Json = Annotated[
    str | None, typer.Option("--json", help="Where to write everything as JSON, for machines; - for standard output.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Cores to use. Default: every one. Results do not depend on it.")
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        help="csv, parquet, arrow, excel, stata, spss, por, sas or xport. Default: by the ending.",
        autocompletion=one_of("csv", "parquet", "arrow", "excel", "stata", "spss", "por", "sas", "xport"),
    ),
]
Separator = Annotated[str | None, typer.Option(help="Of CSV: one character, or 'tab'. Default: guessed, and said.")]
Encoding = Annotated[str | None, typer.Option(help="Of CSV: utf-8, cp1252, ... Default: guessed, and said.")]
Decimal = Annotated[str | None, typer.Option(help="Of CSV: . or a comma. Default: guessed, and said.")]
Sheet = Annotated[str | None, typer.Option(help="Of a workbook. Default: the first.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Instead of a file: postgresql://user@host/name, duckdb:///file or sqlite:///file. Leave the password to "
        "PGPASSWORD or ~/.pgpass.",
    ),
]
Query = Annotated[str | None, typer.Option(help="With --from: SQL that gives the table.")]
