"""Rows of reports as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

MOST_ROWS = 40


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return "x".join(map(str, value))
    return "" if value is None else str(value)


def _used(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    """Columns that say something: counts of nothing are left out."""
    return [name for name in columns if any(row.get(name) not in (0, None, "") for row in rows)]


def text(rows: Sequence[dict[str, Any]], columns: Sequence[str], total: dict[str, Any] | None = None) -> str:
    """A table whose columns are as wide as they must be."""
    used = _used(rows, columns)
    shown = [*rows[:MOST_ROWS], *([total] if total else [])]
    cells = [[name.replace("_", " ") for name in used]] + [[_shown(row.get(name)) for name in used] for row in shown]
    widths = [max(len(line[i]) for line in cells) for i in range(len(used))]
    is_left = [all(isinstance(row.get(name), (str, type(None))) for row in shown) for name in used]
    lines = [
        "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(line, widths, is_left))
        for line in cells
    ]
    if len(rows) > MOST_ROWS:
        lines.insert(1 + MOST_ROWS, f".. {len(rows) - MOST_ROWS} more")
    return "\n".join(line.rstrip() for line in lines)


def as_html(rows: Sequence[dict[str, Any]], columns: Sequence[str], caption: str) -> str:
    """The same as a table of HTML."""
    used = _used(rows, columns)

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line([_shown(row.get(name)) for name in used], "td") for row in rows[:MOST_ROWS])
    head = line([name.replace("_", " ") for name in used], "th")
    return f"<table><caption>{html.escape(caption)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"
