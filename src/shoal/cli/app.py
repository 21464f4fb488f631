"""The command: arguments in, one call, files out, errors in one line."""

from __future__ import annotations

import contextlib
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from shoal.cli.config import merge_options, parse_kinds, read_config, split_list, split_numbers, whole_numbers
from shoal.cli.wording import in_shell_words
from shoal.errors import CheckError, FileError, InputError, LeakError, ShoalError

_CODES: list[tuple[type[ShoalError], int]] = [(CheckError, 3), (LeakError, 3), (FileError, 4), (InputError, 2)]
_INTERNAL, _INTERRUPTED = 70, 130

_EPILOG = (
    "Exit codes: 0 done; 2 wrong usage or input; 3 refused to protect people; 4 a file cannot be read or written; "
    "70 internal error; 130 interrupted. Unless it is 0, no output file was written."
)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Release a table about people: nobody can be picked out above 1/k, and the joint distribution is kept.",
    epilog=_EPILOG,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, _stop)
    try:
        result = app(args=arguments or ["--help"], standalone_mode=False)
    except ShoalError as error:
        return _fail(in_shell_words(str(error)), next(code for kind, code in _CODES if isinstance(error, kind)))
    except OSError:
        return _fail("cannot write to standard output.", 4)
    except TyperException as error:
        return _fail(error.format_message(), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; nothing was written.", _INTERRUPTED)
    except Exception as error:  # noqa: BLE001, the last line of defence: a traceback could show somebody's values
        where = _place_of(error)
        return _fail(
            f"internal error ({type(error).__name__} {where}); nothing was written. Please report it.", _INTERNAL
        )
    if result == _INTERRUPTED:  # typer has caught the interruption
        return _fail("interrupted; nothing was written.", _INTERRUPTED)
    return result if isinstance(result, int) else 0


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _fail(text: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the exit code says it even if nobody can read
        sys.stderr.write(f"shoal: {' '.join(text.split())}\n")
        sys.stderr.flush()
    return code


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"at {Path(frames[-1].filename).name}:{frames[-1].lineno}"


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


@app.command(epilog=_EPILOG)
def anonymize(
    table: Annotated[str, typer.Argument(help="CSV, Parquet or Arrow file, or - for standard input.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write the release; - for standard output.")
    ] = None,
    quasi_identifiers: Annotated[
        str | None, typer.Option("--qi", help="Columns by which a person could be recognised, separated by commas.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="Columns released as they are, with their record.")] = None,
    identifiers: Annotated[str | None, typer.Option(help="Columns that never leave.")] = None,
    weight: Annotated[str | None, typer.Option(help="Survey weight; it travels with the quasi-identifiers.")] = None,
    unit: Annotated[str | None, typer.Option(help="Person column, when a person has several rows.")] = None,
    others: Annotated[str | None, typer.Option(help="What to do with the remaining columns: drop or keep.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Override a kind: zip=nominal, or levels in order, quoted: 'edu=none<school'. Repeatable."),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", help="Nobody is picked out above 1/k. Default: 10.")] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(help="Instead of -k: the highest chance allowed, such as 0.05; finds k, method and loading."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="With --max-risk: the sensitive column whose prediction is to be kept.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="gaussian, permute, resample or centroid. Default: gaussian.")
    ] = None,
    recovery: Annotated[
        str | None, typer.Option(help="With gaussian: transport, rank or cdf. Default: transport.")
    ] = None,
    clustering: Annotated[
        str | None, typer.Option(help="auto, greedy, refined, mdav, optimal (one column) or flow. Default: auto.")
    ] = None,
    response_weight: Annotated[
        float | None, typer.Option(help="Weight of the sensitive columns in the clustering. Default: 0.")
    ] = None,
    loading: Annotated[float | None, typer.Option(help="Added variance of the Gaussian dither. Default: 1/3.")] = None,
    release_values: Annotated[
        str | None, typer.Option(help="observed or smoothed, for continuous columns. Default: observed.")
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
    report: Annotated[
        str | None, typer.Option(help="Where to write the report, an HTML page for the house (internal edition).")
    ] = None,
    public_report: Annotated[
        str | None, typer.Option(help="Where to write the public edition: no small groups, nothing about one person.")
    ] = None,
    input_format: Annotated[str | None, typer.Option(help="csv, parquet or arrow. Default: by the ending.")] = None,
    output_format: Annotated[str | None, typer.Option(help="csv, parquet or arrow. Default: by the ending.")] = None,
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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Release a table: re-assign its quasi-identifiers inside groups of at least k people.

    Example: shoal anonymize people.csv -o release.csv --qi age,sex,zip --sensitive cost --identifiers name -k 10

    TABLE is a CSV, Parquet or Arrow file, or - for standard input; lists of columns are separated by commas.

    Every column needs a role (--qi, --sensitive, --identifiers, --weight, --unit) unless --others says what to do.
    """
    given = {name: value for name, value in locals().items() if name not in ("table", "config", "quiet")}
    options = merge_options(given, read_config(config) if config else {})
    from shoal.cli.run import run_anonymize

    run_anonymize(table, options, config=config, quiet=quiet)


QI = Annotated[str | None, typer.Option("--qi", help="The quasi-identifiers, separated by commas.")]
Sensitive = Annotated[str | None, typer.Option(help="Columns that are released as they are.")]
Kind = Annotated[
    list[str] | None, typer.Option(help="Override a kind: zip=nominal, or levels in order: 'edu=none<school'.")
]
Target = Annotated[
    str | None, typer.Option(help="Sensitive column that a model learns to predict. Default: the first that can be.")
]
Json = Annotated[str | None, typer.Option("--json", help="Where to write all numbers as JSON; - for standard output.")]
Report = Annotated[str | None, typer.Option(help="Where to write the HTML page for the house (internal edition).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
InputFormat = Annotated[str | None, typer.Option(help="csv, parquet or arrow. Default: by the ending.")]


@app.command(epilog=_EPILOG)
def assess(
    original: Annotated[str, typer.Argument(help="The table before: CSV, Parquet or Arrow.")],
    released: Annotated[str, typer.Argument(help="The table after.")],
    quasi_identifiers: QI = None,
    sensitive: Sensitive = None,
    kind: Kind = None,
    unit: Annotated[
        str | None, typer.Option(help="Person column of the original, when a person has several rows.")
    ] = None,
    target: Target = None,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Row i of both is the same person: needed to link people to records.")
    ] = False,
    certificate: Annotated[
        str | None,
        typer.Option(help="Of the release. Default: its file with .certificate.json added, if there is one."),
    ] = None,
    report: Report = None,
    public_report: Annotated[str | None, typer.Option(help="Where to write the public edition of the page.")] = None,
    json: Json = None,
    charts: Annotated[str | None, typer.Option(help="An existing folder for the charts as files.")] = None,
    chart_format: Annotated[str, typer.Option(help="svg, png or pdf.")] = "svg",
    input_format: InputFormat = None,
    quiet: Quiet = False,
) -> None:
    """Assess a release: what it risks and what it keeps, beside what an independent sample would score.

    Example: shoal assess people.csv release.csv --qi age,sex,zip --sensitive cost --report report.html

    Two files are taken as not aligned, so attacks that link people to records are refused; all else is measured.
    """
    from shoal.cli.seeing import run_assess

    run_assess(
        original,
        released,
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
        input_format=input_format,
        quiet=quiet,
    )


@app.command(epilog=_EPILOG)
def frontier(
    table: Annotated[str, typer.Argument(help="CSV, Parquet or Arrow file, or - for standard input.")],
    quasi_identifiers: QI = None,
    sensitive: Sensitive = None,
    identifiers: Annotated[str | None, typer.Option(help="Columns that never leave.")] = None,
    weight: Annotated[str | None, typer.Option(help="Survey weight.")] = None,
    unit: Annotated[str | None, typer.Option(help="Person column, when a person has several rows.")] = None,
    kind: Kind = None,
    ks: Annotated[str | None, typer.Option(help="Values of k to try. Default: 5,10,20,50.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Of gaussian, permute, resample, centroid, rank, cdf. Default: the first four.")
    ] = None,
    loadings: Annotated[str | None, typer.Option(help="Of the Gaussian dither. Default: 0.333,0.1,0.03.")] = None,
    clustering: Annotated[str, typer.Option(help="As for anonymize.")] = "auto",
    limit: Annotated[float | None, typer.Option(help="Highest chance 1/k allowed. Default: 0.05.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Utilities so little below the best count as equal. Default: 0.02.")
    ] = None,
    target: Target = None,
    report: Report = None,
    json: Json = None,
    chart: Annotated[str | None, typer.Option(help="Where to draw it: a file ending in .svg, .png or .pdf.")] = None,
    input_format: InputFormat = None,
    quiet: Quiet = False,
) -> None:
    """Show risk against utility over k and methods, and what to take under a limit on the risk.

    Example: shoal frontier people.csv --qi age,sex,zip --sensitive cost --limit 0.05 --report frontier.html

    Other columns than those named are left out.
    """
    from shoal.cli.seeing import run_frontier

    options = {
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
    run_frontier(table, options, page=report, json=json, chart=chart, input_format=input_format, quiet=quiet)


@app.command(epilog=_EPILOG)
def inspect(
    table: Annotated[str, typer.Argument(help="CSV, Parquet or Arrow file, or - for standard input.")],
    quasi_identifiers: Annotated[
        str | None,
        typer.Option("--qi", help="Columns whose combinations are counted. Default: those that look like it."),
    ] = None,
    kind: Kind = None,
    json: Json = None,
    input_format: InputFormat = None,
) -> None:
    """Show what a table has and what singles people out in it, and suggest roles, which it never applies.

    Example: shoal inspect people.csv
    """
    from shoal.cli.seeing import run_inspect

    run_inspect(
        table, split_list(quasi_identifiers) or None, parse_kinds(kind or []), json=json, input_format=input_format
    )


@app.command(epilog=_EPILOG)
def demo(
    out: Annotated[str, typer.Option(help="Folder for the release, its certificate and its reports.")] = "demo",
    rows: Annotated[int, typer.Option(help="Size of the cohort.")] = 15_000,
    k: Annotated[int, typer.Option("-k", help="Nobody is picked out above 1/k.")] = 10,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Make the built-in cohort, release it, and show what was kept and what is risked.

    Example: shoal demo --out demo
    """
    from shoal.cli.run import run_demo

    run_demo(out, rows, k, quiet=quiet)


studies = typer.Typer(help="Run an experiment that was published, on data of yours or built in.")
app.add_typer(studies, name="study")


@studies.command("market-risk", epilog=_EPILOG)
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
    jobs: Annotated[int | None, typer.Option(help="Processes at once. Default: one for every core.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Run the study of "Distribution-Preserving k-Anonymity": every figure, table and claim, beside the paper's numbers.

    Example: shoal study market-risk --out study/ --splits 10

    What is finished is kept in the folder: after an interruption the same command goes on from there.
    """
    from shoal.cli.studying import run_market_risk

    run_market_risk(data, out, splits=splits, seed=seed, jobs=jobs, quiet=quiet)
