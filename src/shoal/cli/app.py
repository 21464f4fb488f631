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

from shoal.cli.config import merge_options, read_config
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


@app.command(epilog=_EPILOG)
def demo(
    out: Annotated[str, typer.Option(help="Folder for release.csv and certificate.json.")] = "demo",
    rows: Annotated[int, typer.Option(help="Size of the cohort.")] = 15_000,
    k: Annotated[int, typer.Option("-k", help="Nobody is picked out above 1/k.")] = 10,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Make the built-in cohort, release it, and show what was kept and what is risked.

    Example: shoal demo --out demo
    """
    from shoal.cli.run import run_demo

    run_demo(out, rows, k, quiet=quiet)
