"""The commands: options in, one call."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from shoal.cli.completing import one_of
from shoal.cli.config import merge_options, parse_kinds, read_config, split_list, split_numbers, whole_numbers
from shoal.cli.options import (
    EPILOG,
    METHODS,
    QI,
    RECOVERIES,
    Clustering,
    Decimal,
    Encoding,
    From,
    Identifiers,
    InputFormat,
    Jobs,
    Json,
    Kind,
    PublicReport,
    Query,
    Quiet,
    Report,
    Sensitive,
    Separator,
    Sheet,
    Table,
    Target,
    Unit,
    Weight,
)
from shoal.errors import InputError

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Release a table about people: nobody can be picked out above 1/k, and the joint distribution is kept.",
    epilog=EPILOG,
)
_MOST_JOBS = 1024
_POOLS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _show_version(value: bool) -> None:
    if value:
        from shoal import __version__

        typer.echo(f"shoal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def _use_cores(jobs: int | None) -> None:
    """Let everything use so many cores; libraries that are not loaded yet are told by the environment."""
    if jobs is None:
        return
    if not 1 <= jobs <= _MOST_JOBS:
        raise InputError(f"--jobs must be a whole number from 1 to {_MOST_JOBS}, but it is {jobs}.")
    for name in _POOLS:
        os.environ.setdefault(name, str(jobs))
    from shoal.compilation import limit_threads

    limit_threads(jobs)


@app.command(epilog=EPILOG)
def anonymize(
    table: Table = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the release: .csv (also .gz, .zst), .parquet, .arrow, .xlsx, .dta; - for standard output.",
        ),
    ] = None,
    bundle: Annotated[
        str | None,
        typer.Option(
            help="Instead of -o: a folder to hand over, with data, certificate, public report, dictionary, checksums."
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Instead of -o: a database, as for --from; with --into. One transaction.")
    ] = None,
    into: Annotated[str | None, typer.Option(help="With --to: the new table, or schema.table.")] = None,
    replace: Annotated[
        bool | None, typer.Option("--replace", help="With --to: replace the table if it is there.")
    ] = None,
    quasi_identifiers: QI = None,
    sensitive: Sensitive = None,
    identifiers: Identifiers = None,
    weight: Weight = None,
    unit: Unit = None,
    others: Annotated[
        str | None,
        typer.Option(
            help="What to do with the remaining columns: drop or keep.", autocompletion=one_of("drop", "keep")
        ),
    ] = None,
    kind: Kind = None,
    k: Annotated[int | None, typer.Option("-k", help="Nobody is picked out above 1/k. Default: 10.")] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(help="Instead of -k: the highest chance allowed, such as 0.05; finds k, method and loading."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="With --max-risk: the sensitive column whose prediction is to be kept.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="gaussian, permute, resample or centroid. Default: gaussian.", autocompletion=one_of(*METHODS)
        ),
    ] = None,
    recovery: Annotated[
        str | None,
        typer.Option(
            help="With gaussian: transport, rank or cdf. Default: transport.", autocompletion=one_of(*RECOVERIES)
        ),
    ] = None,
    clustering: Clustering = None,
    response_weight: Annotated[
        float | None, typer.Option(help="Weight of the sensitive columns in the clustering. Default: 0.")
    ] = None,
    loading: Annotated[float | None, typer.Option(help="Added variance of the Gaussian dither. Default: 1/3.")] = None,
    release_values: Annotated[
        str | None,
        typer.Option(
            help="observed or smoothed, for continuous columns. Default: observed.",
            autocompletion=one_of("observed", "smoothed"),
        ),
    ] = None,
    l_diversity: Annotated[
        list[str] | None,
        typer.Option(
            help="Different sensitive values in every cluster: 3, entropy:2.5, or by column, diagnosis=3. Repeatable."
        ),
    ] = None,
    t_closeness: Annotated[
        list[str] | None,
        typer.Option(help="Largest distance of a cluster's sensitive values to all: 0.2, or cost=0.2. Repeatable."),
    ] = None,
    protect: Annotated[
        list[str] | None,
        typer.Option(help="Change a sensitive column: cost=noise:0.1,top:0.01,bottom:0.01,round:100. Repeatable."),
    ] = None,
    vault: Annotated[
        str | None,
        typer.Option(help="A private file that keeps the clusters, for later releases of the same people."),
    ] = None,
    n_releases: Annotated[
        int | None, typer.Option(help="Releases drawn to measure the attackers; 0 measures none. Default: by size.")
    ] = None,
    allow_leaks: Annotated[
        str | None, typer.Option(help="Released columns that may give a quasi-identifier away.")
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(help="Where to write the certificate. Default: the output with .certificate.json added."),
    ] = None,
    report: Report = None,
    public_report: PublicReport = None,
    json: Json = None,
    input_format: InputFormat = None,
    output_format: Annotated[
        str | None,
        typer.Option(
            help="csv, parquet, arrow, excel or stata. Default: by the ending; csv in a bundle.",
            autocompletion=one_of("csv", "parquet", "arrow", "excel", "stata"),
        ),
    ] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    database: From = None,
    query: Query = None,
    output_separator: Annotated[
        str | None, typer.Option(help="Of CSV that is written: one character, or 'tab'. Default: a comma.")
    ] = None,
    output_decimal: Annotated[
        str | None, typer.Option(help="Of CSV that is written: . or a comma. Default: a point.")
    ] = None,
    escape_formulas: Annotated[
        bool | None,
        typer.Option(
            "--escape-formulas/--no-escape-formulas",
            help="In CSV, disarm text that a spreadsheet would run. Default: yes.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="A TOML file with options about the release, named as here; the command line wins."),
    ] = None,
    save_config: Annotated[
        str | None, typer.Option(help="Where to write all options of this run, for --config; passwords are left out.")
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Release a table: re-assign its quasi-identifiers inside groups of at least k people.

    Example: shoal anonymize people.xlsx -o release.xlsx --qi age,sex,zip --sensitive cost --identifiers name -k 10

    Every column needs a role (--qi, --sensitive, --identifiers, --weight, --unit) unless --others says what to do; lists of columns are separated by commas.
    """
    given = {name: value for name, value in locals().items() if name not in ("table", "config", "save_config", "quiet")}
    options = merge_options(given, read_config(config) if config else {})
    _use_cores(options.pop("jobs", None))
    from shoal.cli.run import run_anonymize

    run_anonymize(table, options, config=config, save_config=save_config, quiet=quiet)


@app.command(epilog=EPILOG)
def assess(
    original: Annotated[str, typer.Argument(help="The table before: a file of any format that anonymize reads.")],
    released: Annotated[str, typer.Argument(help="The table after, or a folder that anonymize --bundle made.")],
    quasi_identifiers: QI = None,
    sensitive: Sensitive = None,
    kind: Kind = None,
    unit: Unit = None,
    target: Target = None,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Row i of both is the same person: needed to link people to records.")
    ] = False,
    certificate: Annotated[
        str | None,
        typer.Option(help="Of the release. Default: its file with .certificate.json added, if there is one."),
    ] = None,
    report: Report = None,
    public_report: PublicReport = None,
    json: Json = None,
    charts: Annotated[str | None, typer.Option(help="An existing folder for the charts as files.")] = None,
    chart_format: Annotated[
        str, typer.Option(help="svg, png or pdf.", autocompletion=one_of("svg", "png", "pdf"))
    ] = "svg",
    input_format: InputFormat = None,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Assess a release: what it risks and what it keeps, beside what an independent sample would score.

    Example: shoal assess people.csv release.csv --qi age,sex,zip --sensitive cost --report report.html

    Two files are taken as not aligned, so attacks that link people to records are refused; all else is measured. Options about CSV and sheets are those of the original; the release is read as shoal writes it, or as its file says.
    """
    _use_cores(jobs)
    from shoal.cli.seeing import run_assess
    from shoal.cli.sources import Input

    if os.path.isdir(released):
        from shoal.bundle import data_of

        released, found = data_of(released)
        certificate = certificate or found
    run_assess(
        Input.of(original, input_format, separator, encoding, decimal, sheet),
        Input.of(released, input_format),
        {
            "quasi_identifiers": split_list(quasi_identifiers),
            "sensitive": split_list(sensitive),
            "kinds": parse_kinds(kind or []),
            "unit": unit,
            "target": target,
            "aligned": aligned,
        },
        certificate=certificate,
        pages={"internal": report, "public": public_report},
        json=json,
        charts=(charts, chart_format),
        quiet=quiet,
    )


@app.command(epilog=EPILOG)
def frontier(
    table: Table = None,
    quasi_identifiers: QI = None,
    sensitive: Sensitive = None,
    identifiers: Identifiers = None,
    weight: Weight = None,
    unit: Unit = None,
    kind: Kind = None,
    ks: Annotated[str | None, typer.Option(help="Values of k to try. Default: 5,10,20,50.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Of gaussian, permute, resample, centroid, rank, cdf. Default: the first four.",
            autocompletion=one_of(*METHODS, "rank", "cdf"),
        ),
    ] = None,
    loadings: Annotated[str | None, typer.Option(help="Of the Gaussian dither. Default: 0.333,0.1,0.03.")] = None,
    clustering: Clustering = None,
    limit: Annotated[float | None, typer.Option(help="Highest chance 1/k allowed. Default: 0.05.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Utilities so little below the best count as equal. Default: 0.02.")
    ] = None,
    target: Target = None,
    report: Report = None,
    json: Json = None,
    chart: Annotated[str | None, typer.Option(help="Where to draw it: a file ending in .svg, .png or .pdf.")] = None,
    input_format: InputFormat = None,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    database: From = None,
    query: Query = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Show risk against utility over k and methods, and what to take under a limit on the risk.

    Example: shoal frontier people.csv --qi age,sex,zip --sensitive cost --limit 0.05 --report frontier.html

    Other columns than those named are left out.
    """
    _use_cores(jobs)
    from shoal.cli.seeing import run_frontier
    from shoal.cli.sources import Input

    options: dict[str, Any] = {
        "quasi_identifiers": split_list(quasi_identifiers),
        "sensitive": split_list(sensitive),
        "identifiers": split_list(identifiers),
        "weight": weight,
        "unit": unit,
        "kinds": parse_kinds(kind or []),
        "ks": whole_numbers("--ks", ks),
        "methods": split_list(methods) or None,
        "loadings": split_numbers("--loadings", loadings),
        "clustering": clustering,
        "limit": limit,
        "tolerance": tolerance,
        "target": target,
    }
    source = Input.of(table, input_format, separator, encoding, decimal, sheet, database, query)
    run_frontier(source, options, page=report, json=json, chart=chart, quiet=quiet)


@app.command(epilog=EPILOG)
def inspect(
    table: Table = None,
    quasi_identifiers: Annotated[
        str | None,
        typer.Option("--qi", help="Columns whose combinations are counted. Default: those that look like it."),
    ] = None,
    kind: Kind = None,
    json: Json = None,
    input_format: InputFormat = None,
    separator: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    database: From = None,
    query: Query = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Show what a table has and what singles people out in it, and suggest roles, which it never applies.

    Example: shoal inspect people.csv
    """
    _use_cores(jobs)
    from shoal.cli.seeing import run_inspect
    from shoal.cli.sources import Input

    source = Input.of(table, input_format, separator, encoding, decimal, sheet, database, query)
    run_inspect(source, split_list(quasi_identifiers) or None, parse_kinds(kind or []), json=json, quiet=quiet)


@app.command(epilog=EPILOG)
def verify(
    folder: Annotated[str, typer.Argument(help="A folder that anonymize --bundle made.")],
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Check that a bundle is complete, unchanged, and what its certificate says.

    Example: shoal verify out/

    Exit code 3 if it is not. The guarantee itself cannot be checked from released data: see the certificate.
    """
    from shoal.cli.run import run_verify

    run_verify(folder, json=json, quiet=quiet)


@app.command(epilog=EPILOG)
def demo(
    out: Annotated[str, typer.Option(help="Folder for the release, its certificate and its reports.")] = "demo",
    rows: Annotated[int, typer.Option(help="Size of the cohort.")] = 15_000,
    k: Annotated[int, typer.Option("-k", help="Nobody is picked out above 1/k.")] = 10,
    json: Json = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Make the built-in cohort, release it, and show what was kept and what is risked.

    Example: shoal demo --out demo
    """
    _use_cores(jobs)
    from shoal.cli.demo import run_demo

    run_demo(out, rows, k, json=json, quiet=quiet)


studies = typer.Typer(help="Run an experiment that was published, on data of yours or built in.")
app.add_typer(studies, name="study")


@studies.command("market-risk", epilog=EPILOG)
def market_risk(
    out: Annotated[str, typer.Option(help="Folder for the page and its tables.")] = "study",
    data: Annotated[
        str | None,
        typer.Option(
            help="A full-year consolidated file of MEPS (.ssp, .xpt, .dta, .csv). Default: the built-in cohort."
        ),
    ] = None,
    splits: Annotated[int, typer.Option(help="Random splits of the survey.")] = 200,
    seed: Annotated[int, typer.Option(help="Of all randomness.")] = 0,
    json: Json = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes at once. Default: one for every core.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run the study of "Distribution-Preserving k-Anonymity": every figure, table and claim, beside the paper's.

    Example: shoal study market-risk --out study/ --splits 10

    What is finished is kept in the folder: after an interruption the same command goes on from there.
    """
    from shoal.cli.studying import run_market_risk

    run_market_risk(data, out, splits=splits, seed=seed, jobs=jobs, json=json, quiet=quiet)
