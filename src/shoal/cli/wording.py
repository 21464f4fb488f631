"""Errors speak of Python arguments; on the command line they should speak of options."""

from __future__ import annotations

import re
from collections.abc import Callable

_WORDS: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"kinds=\{'([^']+)': \[\.\.\.\]\}", r"--kind '\1=first<second'"),
    (r"kinds\['([^']+)'\]", r"--kind \1"),
    (r"\ballow_leaks=\['([^']+)'\]", r"--allow-leaks \1"),
    (r"\b(others|unit|weight|method|recovery|clustering)='([^']+)'", r"--\1 \2"),
    (r"\bn_releases=", "--n-releases "),
    (r"\b(l_diversity|t_closeness) (names|of|needs)\b", lambda m: f"--{m[1].replace('_', '-')} {m[2]}"),
    (r"\bprotect\['([^']+)'\]", r"--protect \1"),
    (r"\bprotect (names|needs|cannot)\b", r"--protect \1"),
    (r"\brelease_values='([^']+)'", r"--release-values \1"),
    (r"\bresponse_weight\b=?", "--response-weight "),
    (r"\bloading=", "--loading "),
    (r"\b(limit|tolerance|target)=", r"--\1 "),
    (r"\bmax_risk=", "--max-risk "),
    (r"\bk=(\d+) and --max", r"-k \1 and --max"),
    (r"\baligned=True", "--aligned"),
    (r"\breplace=True", "--replace"),
    (r"\bsay replace\b", "say --replace"),
    (r"\b(separator|encoding|decimal|sheet)=", r"--\1 "),
    (r"\bsay its encoding\b", "say its --encoding"),
    (r"\b(methods|loadings|ks) (names|must)\b", r"--\1 \2"),
    (r"\bin quasi_identifiers, sensitive or identifiers\b", "in --qi, --sensitive or --identifiers"),
    (r"(?<!')\bquasi_identifiers\b", "--qi"),
    (r"(?<!')\ballow_leaks\b", "--allow-leaks"),
    (r"\b(sensitive|identifiers|unit|weight|kinds) names\b", r"--\1 names"),
    (r"--kinds\b", "--kind"),
    (r"\bor say the format\b", "or say --input-format or --output-format"),
]


def in_shell_words(text: str) -> str:
    """Return an error's text with Python arguments written as options.

    Examples
    --------
    >>> in_shell_words("say others='drop', or accept this with allow_leaks=['cost'].")
    'say --others drop, or accept this with --allow-leaks cost.'
    """
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    return " ".join(text.split())
