"""Copies the pages of the repository to the places that they have on the site, and mends their links.

site/stage.py FOLDER [explorer] fills FOLDER for Sphinx. A link to a file that is not a page leads to a copy of it as
text; a link to the explorer leads to the page about it, unless the explorer is a part of the site.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
NOT_PAGES = ("site/README.md", "site/explorer/")
LINK = re.compile(r"(```.*?^\s*```|`[^`\n]*`)|\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)(\{[^}\n]*\})?", re.DOTALL | re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">([^<]+)</a>')
EXPLORER = "site/explorer/index.html"
CONSOLE = re.compile(r"^    \$ .*\n(?:^    .*\n|^\n(?=    ))*", re.MULTILINE)
BUILT_EXPLORER = "explorer/index.html"
UNLISTED = "---\norphan: true\n---\n\n"


def place(path: str) -> str:
    """Path on the site of a tracked page: docs/spec/onnx.md is spec/onnx.md, README.md is repository/README.md."""
    for folder in ("site/", "docs/"):
        if path.startswith(folder):
            return path.removeprefix(folder)
    return path.lower() if "/" not in path and path != "README.md" else f"repository/{path}"


def pages() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md", "site/*.rst"], cwd=ROOT,
                            capture_output=True, text=True, check=True)  # fmt: skip
    return {path: place(path) for path in listed.stdout.split() if not path.startswith(NOT_PAGES)}


def relative(target: str, page: str) -> str:
    return os.path.relpath(target, PurePosixPath(page).parent)


def mended(text: str, path: str, placed: dict[str, str], copy: Callable[[str], str]) -> str:
    """The page with links that lead to the places of the pages. `copy` gives the place of another file."""

    def link(found: re.Match) -> str:
        code, words, target, attributes = found.groups()
        name, sharp, anchor = (target or "").partition("#")
        if code or not name or re.match(r"[a-z]+:", target):
            return found[0]
        linked = os.path.normpath(PurePosixPath(path).parent / name)
        linked = "site/spec/index.md" if linked == "docs/spec" else linked
        if linked in placed:
            return f"[{words}]({relative(placed[linked], placed[path])}{sharp}{anchor}){attributes or ''}"
        if (ROOT / linked).is_dir():
            return words
        classes = " ".join(re.findall(r"\.([\w-]+)", attributes or "")) or "source"
        copied = copy(linked)
        view = sharp + anchor if copied == BUILT_EXPLORER else ""
        return f'<a class="{classes}" href="{relative(copied, placed[path])}{view}">{words}</a>'

    def console(found: re.Match) -> str:
        return f"```console\n{textwrap.dedent(found[0]).strip()}\n```\n"

    return ANCHOR.sub(r"[\2]{#\1}", CONSOLE.sub(console, LINK.sub(link, text)))


def main(folder: Path, *parts: str) -> None:
    placed = pages()

    def copy(path: str) -> str:
        if path == EXPLORER:
            return BUILT_EXPLORER if "explorer" in parts else "explorer.html"
        name = f"repository/{path}.txt"
        out = folder / "extra" / name
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, out)
        return name

    shutil.rmtree(folder, ignore_errors=True)
    for path, name in placed.items():
        out = folder / name
        out.parent.mkdir(parents=True, exist_ok=True)
        unlisted = UNLISTED if name.startswith("repository/") else ""
        out.write_text(unlisted + mended((ROOT / path).read_text(), path, placed, copy))
    for name in ("conf.py", "static"):
        source = ROOT / "site" / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
