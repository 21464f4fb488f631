"""Options from a TOML file and from the command line, brought into one form."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import FileError, InputError, suggest

_ALIASES = {"qi": "quasi_identifiers", "kind": "kinds", "from": "database"}
_KEYS = {own: alias for alias, own in _ALIASES.items()}
_LISTS = ("quasi_identifiers", "sensitive", "identifiers", "allow_leaks")
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_LISTS, (list,)),
    "k": (int,),
    "max_risk": (int, float),
    "response_weight": (int, float),
    "loading": (int, float),
    "escape_formulas": (bool,),
    "kinds": (dict,),
    "l_diversity": (int, float, list, dict),
    "t_closeness": (int, float, dict),
    "protect": (dict,),
    "n_releases": (int,),
    "jobs": (int,),
    "replace": (bool,),
}
# Where things go is of one run: saved, it would make the next one overwrite the files of this.
_PLACES = ("output", "bundle", "to", "into", "replace", "certificate", "report", "public_report", "json")
_WORDS = {list: "a list of column names", dict: "a table", bool: "true or false", int: "a number", str: "a text"}


def read_config(path: str) -> dict[str, Any]:
    """Return the options in a TOML file, by the names that `shoal.anonymize` uses."""
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"Cannot read {path!r}: {error.strerror or type(error).__name__}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InputError(f"{path!r} is not valid TOML.") from None
    named = {name.replace("-", "_"): value for name, value in found.items()}
    options = {_ALIASES.get(name, name): value for name, value in named.items()}
    if len(options) < len(found):
        raise InputError(f"{path!r} gives an option twice, under two names.")
    return options


def write_config(options: Mapping[str, Any]) -> str:
    """Return options as the TOML file that `read_config` reads: no password, no default, not where things went."""
    from shoal.io.databases.addresses import without_password  # loads polars, which --jobs must come before

    plain, tables = [], []
    for name, value in options.items():
        if value is None or value in ({}, []) or name in _PLACES:
            continue
        kept = without_password(value) if name == "database" else value
        if isinstance(kept, Mapping):
            tables += _table_lines([name], kept)
        else:
            plain.append(f"{_KEYS.get(name, name)} = {_toml(kept)}")
    return "\n".join(["# shoal anonymize TABLE -o FILE --config this-file", *plain, *tables, ""])


def _table_lines(path: list[str], table: Mapping[str, Any]) -> list[str]:
    """Return a table of TOML: its values first, then the tables in it."""
    name = ".".join([_KEYS.get(path[0], path[0]), *(_toml(part) for part in path[1:])])
    lines = [f"{_toml(key)} = {_toml(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    inner = [(key, value) for key, value in table.items() if isinstance(value, Mapping)]
    return [*(["", f"[{name}]", *lines] if lines else []),
            *(line for key, value in inner for line in _table_lines([*path, key], value))]  # fmt: skip


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(part) for part in value)}]"
    return repr(value)


def merge_options(given: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set, the command line before the file; lists split, kinds parsed."""
    known = [_ALIASES.get(name, name) for name in given]
    for name, value in config.items():
        if name not in known:
            names = [*(_KEYS.get(one, one) for one in known), *_KEYS]
            raise InputError(f"The configuration has {name!r}, which is not an option{suggest(name, names)}")
        types = _TYPES.get(name, (str,))
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise InputError(f"{name} in the configuration must be {_WORDS[types[0]]}.")
    options = {name: value for name, value in given.items() if value is not None}
    options["kinds"] = parse_kinds(options.pop("kind", None) or [])
    for name in ("l_diversity", "t_closeness"):
        if name in options:
            options[name] = _parse_levels(f"--{name.replace('_', '-')}", options[name])
    if "protect" in options:
        options["protect"] = _parse_steps(options["protect"])
    for name in _LISTS:
        if name in options:
            options[name] = split_list(options[name])
    merged = {"escape_formulas": True, **config, **options}
    merged["kinds"] = {**config.get("kinds", {}), **options["kinds"]}
    return merged


def _parse_levels(option: str, texts: list[str]) -> Any:
    """Return a level for all columns, or levels by column: 3, entropy:2.5, diagnosis=3."""
    levels: dict[str, Any] = {}
    for text in texts:
        name, _, level = text.rpartition("=")
        kind, colon, number = level.rpartition(":")
        if name in levels:
            raise InputError(f"{option} is given twice for {name or 'all columns'!r}.")
        levels[name] = (kind, _parse_number(option, text, number)) if colon else _parse_number(option, text, number)
    if "" in levels and len(levels) > 1:
        raise InputError(f"{option} is given for all columns and by column; say one of the two.")
    return levels.get("", levels)


def _parse_steps(texts: list[str]) -> dict[str, dict[str, float]]:
    """Return what to do to columns: cost=noise:0.1,round:100."""
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        name, _, steps = text.rpartition("=")
        pairs = [step.partition(":") for step in steps.split(",")]
        if not name:
            raise InputError(f"--protect {text!r} must be column=step:amount,step:amount.")
        if name in found or len({step for step, _, _ in pairs}) < len(pairs):
            raise InputError(f"--protect names {name!r} or a step twice; write column=step:amount,step:amount once.")
        found[name] = {step.strip(): _parse_number("--protect", text, amount) for step, _, amount in pairs}
    return found


def _parse_number(option: str, text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise InputError(f"{option} {text!r} needs a number.") from None


def split_list(text: str | None) -> list[str]:
    """Return the parts of a list separated by commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def split_numbers(option: str, text: str | None) -> list[float] | None:
    """Return numbers separated by commas; None if there are none."""
    return [_parse_number(option, part, part) for part in split_list(text)] or None


def whole_numbers(option: str, text: str | None) -> list[int] | None:
    """Return whole numbers separated by commas; None if there are none."""
    numbers = split_numbers(option, text)
    if numbers is not None and any(number != int(number) for number in numbers):
        raise InputError(f"{option} {text!r} must be whole numbers, such as 5,10,20.")
    return None if numbers is None else [int(number) for number in numbers]


def parse_kinds(texts: list[str]) -> dict[str, str | list[str]]:
    """Return kinds by column: zip=nominal, edu=none<school."""
    kinds: dict[str, str | list[str]] = {}
    for text in texts:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or not kind:
            raise InputError(f"--kind {text!r} must be column=kind or column=first<second<third.")
        kinds[name] = kind.split("<") if "<" in kind else kind
    return kinds
