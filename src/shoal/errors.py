"""The errors shoal raises. Their texts name arguments and columns, never a value of the data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShoalError(Exception):
    """Base of every error that shoal raises on purpose."""


class InputError(ShoalError, ValueError):
    """An argument, a column or a file is not what is needed; the text says what to do."""


class FileError(InputError):
    """A file cannot be read or written."""


class LeakError(InputError):
    """A released column gives a quasi-identifier away."""


class CheckError(ShoalError, RuntimeError):
    """A promise was checked and did not hold; nothing was released."""


def suggest(name: object, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" for a near miss, or a list of what is known."""
    options = [str(option) for option in known]
    near = difflib.get_close_matches(str(name), options, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    shown = ", ".join(repr(option) for option in options[:12])
    return f"; choose from {shown}{' ...' if len(options) > 12 else ''}."
