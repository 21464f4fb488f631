"""Options from a TOML file and from the command line, brought into one form."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import FileError, InputError, suggest

_LISTS = ("quasi_identifiers", "sensitive", "identifiers", "allow_leaks")
_DEFAULTS: dict[str, Any] = {"escape_formulas": True}


def read_config(path: str) -> dict[str, Any]:
    """Return the options in a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"Cannot read {path!r}: {error.strerror or type(error).__name__}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path!r} is not valid TOML: {error}.") from None


def merge_options(given: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set, the command line before the file; lists split, kinds parsed."""
    known = ["kinds" if name == "kind" else name for name in given]
    for name in config:
        if name not in known:
            raise InputError(f"The configuration has {name!r}, which is not an option{suggest(name, known)}")
    options = {name: value for name, value in given.items() if value is not None}
    options["kinds"] = _parse_kinds(options.pop("kind", None) or [])
    for name in _LISTS:
        if isinstance(options.get(name), str):
            options[name] = [part.strip() for part in options[name].split(",") if part.strip()]
    merged = _DEFAULTS | dict(config) | options
    merged["kinds"] = dict(config.get("kinds", {})) | options["kinds"]
    for name in _LISTS:
        if not isinstance(merged.get(name, []), list):
            raise InputError(f"{name} in the configuration must be a list of column names.")
    return merged


def _parse_kinds(texts: list[str]) -> dict[str, str | list[str]]:
    kinds: dict[str, str | list[str]] = {}
    for text in texts:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or not kind:
            raise InputError(f"--kind {text!r} must be column=kind or column=first<second<third.")
        kinds[name] = kind.split("<") if "<" in kind else kind
    return kinds
