"""The command: whatever happens ends in one line and an exit code."""

from __future__ import annotations

import contextlib
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from shoal.cli.commands import app
from shoal.cli.wording import in_shell_words
from shoal.errors import CheckError, FileError, InputError, LeakError, ShoalError

_CODES: list[tuple[type[ShoalError], int]] = [(CheckError, 3), (LeakError, 3), (FileError, 4), (InputError, 2)]
_INTERNAL, _INTERRUPTED = 70, 130


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
        hint = " A list has no blanks: --qi age,sex." if "unexpected extra argument" in error.format_message() else ""
        return _fail(error.format_message() + hint, 2)
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
