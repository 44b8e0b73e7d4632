"""Rows of reports as text and as HTML. Text from files is escaped as in the command."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from ._truecast import shown

MOST_ROWS = 40


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return shown("x".join(map(str, value)))
    return "" if value is None else shown(str(value))


def _table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> tuple[list[list[str]], list[bool]]:
    """Head and rows of the columns that are not empty, and which of them are words."""
    used = [name for name in columns if any(row.get(name) not in (0, None, "") for row in rows)]
    head = [name.replace("_", " ") for name in used]
    few = rows[:MOST_ROWS]
    are_words = [all(isinstance(row.get(name), (str, type(None))) for row in few) for name in used]
    return [head, *([_shown(row.get(name)) for name in used] for row in few)], are_words


def _more(rows: Sequence[dict[str, Any]]) -> str:
    return f".. {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""


def text(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """A table with columns of minimal width."""
    cells, are_words = _table(rows, columns)
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [
        "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(line, widths, are_words))
        for line in cells
    ]
    return "\n".join(line.rstrip() for line in [*lines, _more(rows)] if line)


def as_html(rows: Sequence[dict[str, Any]], columns: Sequence[str], caption: str) -> str:
    """The table as HTML: words to the left, numbers to the right."""
    (head, *body), are_words = _table(rows, columns)
    sides = ["left" if left else "right" for left in are_words]

    def line(cells: Sequence[str], tag: str) -> str:
        made = (f'<{tag} style="text-align: {side}">{html.escape(cell)}</{tag}>' for cell, side in zip(cells, sides))
        return f"<tr>{''.join(made)}</tr>"

    said = f'<caption style="text-align: left">{html.escape(caption)}</caption>'
    lines = "".join(line(cells, "td") for cells in body)
    more = f'<tr><td colspan="{len(head)}">{_more(rows)}</td></tr>' if _more(rows) else ""
    return f"<table>{said}<thead>{line(head, 'th')}</thead><tbody>{lines}{more}</tbody></table>"


def pre(lines: str) -> str:
    """Text with fixed columns, and a scroll bar if it is too wide."""
    return f'<pre style="overflow-x: auto; white-space: pre">{html.escape(lines)}</pre>'
