"""Makes a notebook of every script of examples/python that has cells (`# %%`), without results.

    python make.py
"""

import ast
import json
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = re.compile(r"^# %%(?P<markdown> \[markdown\])?\n", re.MULTILINE)


def cells(text: str) -> list[tuple[str, str]]:
    """The kind and the text of each cell; the docstring is the first."""
    title = ast.get_docstring(ast.parse(text)) or ""
    found = [("markdown", "# " + title)]
    marks = list(MARK.finditer(text))
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)]):
        body = text[mark.end() : end].strip("\n")
        kind = "markdown" if mark["markdown"] else "code"
        found.append((kind, re.sub(r"^# ?", "", body, flags=re.MULTILINE) if kind == "markdown" else body))
    return found


def notebook(text: str) -> str:
    """The file, to the byte."""
    made = []
    for number, (kind, body) in enumerate(cells(text)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": body.splitlines(keepends=True)}
        made.append(cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def scripts() -> list[Path]:
    return [path for path in sorted(HERE.parent.glob("*.py")) if "\n# %%" in path.read_text()]


if __name__ == "__main__":
    for script in scripts():
        (HERE / script.with_suffix(".ipynb").name).write_text(notebook(script.read_text()))
