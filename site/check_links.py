"""Checks the links of a built site: site/check_links.py FOLDER. Files and anchors that do not exist are errors.

Links to other sites are not followed. Pages that other programs made (NOT_OURS) are targets only.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

NOT_OURS = ("crates", "explorer")


class Page(HTMLParser):
    def __init__(self, path: Path):
        super().__init__()
        self.links: list[tuple[int, str]] = []
        self.anchors = {"", "top"}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append((self.getpos()[0], value))


def main(folder: Path) -> int:
    pages = {path: Page(path) for path in sorted(folder.resolve().rglob("*.html"))
             if path.relative_to(folder.resolve()).parts[0] not in NOT_OURS}  # fmt: skip
    dead, count = [], 0
    for path, page in pages.items():
        for line, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.is_file() or (known and unquote(parts.fragment) not in known.anchors):
                dead.append(f"{path.relative_to(folder.resolve())}:{line}: {link}")
    print("\n".join([*dead, f"{len(pages)} pages, {count} links within the site, {len(dead)} dead"]))
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
