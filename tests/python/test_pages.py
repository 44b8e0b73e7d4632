"""The pages of the project: links lead somewhere, lines are of a length that people read."""

import re
import subprocess

import pytest
from command import ROOT

LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
PAGES = LISTED.stdout.split()
LONGEST = 120
TABLE_OR_LISTING = re.compile(r"\s*\||    ")


def prose(text: str):
    """Numbered lines outside of listings and tables."""
    in_listing = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_listing = not in_listing
        elif not in_listing and not TABLE_OR_LISTING.match(line):
            yield number, line


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    of_titles = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return of_titles | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    text = path.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked.read_text()), target


@pytest.mark.parametrize("page", PAGES)
def test_lines_are_short(page):
    long = [(number, line) for number, line in prose((ROOT / page).read_text()) if len(line) > LONGEST and " " in line.strip()]
    assert not long, long
