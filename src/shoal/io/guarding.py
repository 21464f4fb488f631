"""Turn whatever other people's readers raise into one line of ours: their words may quote cells, or be no words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from shoal.errors import FileError, ShoalError


@contextlib.contextmanager
def in_our_words(text: str | Callable[[BaseException], str]) -> Iterator[None]:
    """Raise FileError with this text, or what a function makes of the error, for anything that is raised inside.

    Errors of ours pass, as do interruptions; a panic of a library written in Rust, which Python takes for no ordinary
    error, does not.
    """
    try:
        yield
    except ShoalError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FileError(text if isinstance(text, str) else text(error)) from None
