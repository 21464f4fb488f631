"""What a notebook shows of an object: a small table that needs no script and no style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:.25em .9em .25em 0"
_NUMBER = "text-align:right;vertical-align:top;padding:.25em .9em .25em 0;font-variant-numeric:tabular-nums"


def html_table(rows: Iterable[Sequence[object]], heads: Sequence[str] = (), numbers: Sequence[int] = ()) -> str:
    """Return rows as an HTML table, every cell escaped; numbers: the columns that stand to the right.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table([("<b>", 1)], heads=("name", "value"), numbers=(1,))
    True
    """

    def line(cells: Sequence[object], tag: str) -> str:
        styled = (
            f'<{tag} style="{_NUMBER if i in numbers else _CELL}">{escape(str(c))}</{tag}>' for i, c in enumerate(cells)
        )
        return f"<tr>{''.join(styled)}</tr>"

    head = f"<thead>{line(heads, 'th')}</thead>" if heads else ""
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"
