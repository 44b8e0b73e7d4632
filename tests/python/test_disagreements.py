"""docs/disagreements.md is what its command writes, the right result of each fault there is truecast's, and what a row
says of a value is what `explain` says.
"""

import os
import re
import subprocess
import sys

import pytest
from command import ROOT, binary

PAGE = (ROOT / "docs/disagreements.md").read_text()


def test_the_page_is_up_to_date():
    command = [sys.executable, ROOT / "tests/peers/matrix", "--check"]
    environment = os.environ | {"TRUECAST_BIN": str(binary())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def rows() -> list[tuple[str, str, str]]:
    """Destination, first source, results and names."""
    found, to = [], ""
    for line in PAGE.partition("## Programs")[0].splitlines():
        to = line.removeprefix("### To ") if line.startswith("### To ") else to
        if line.startswith("| ") and not line.startswith("| from"):
            sources, _, cell = line.strip("| ").split(" | ")
            found.append((to, sources.split()[0], cell))
    return found


def value(text: str) -> float | int:
    """`1.5 * 2^127`, `-1`, `NaN`: as a Python number."""
    power = re.fullmatch(r"(?:(\S+) \* )?(-?)2\^(-?\d+)", text)
    if power:
        return float(power[2] + (power[1] or "1")) * 2.0 ** int(power[3])
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def is_of(label: str, result: dict) -> bool:
    name, _, chosen = label.partition(":")
    spec, _, version = name.partition("@")
    attributes = result["attributes"].split(", ")
    if spec != result["spec"] or version not in ("", result["version"]):
        return False
    has_own_rounding = any(a.startswith("rounding=") for a in attributes) and "rounding=" not in label
    return not has_own_rounding and all(one in attributes for one in chosen.split(",") if one)


def are_equal(a: str, b: str) -> bool:
    return a == b or (a != "refused" != b and (value(a) == value(b) or value(a) != value(a) and value(b) != value(b)))


@pytest.mark.parametrize(("to", "source", "cell"), rows())
def test_a_row_is_what_explain_says(truecast, to, source, cell):
    asked, seen = {}, 0
    for one in cell.split("<br>"):
        given, _, names = one.strip("*").partition(":** ")
        for pair in given.split("; ") if names else []:
            x, result = pair.split(" → ")
            if x not in asked:
                number = repr(value(x)) if x != "-0" else x
                asked[x] = truecast.json("explain", number, "--from", source, "--to", to)["results"]
            for label in names.split(", "):
                answers = [a for a in asked[x] if is_of(label, a) and a["undefined"] is None]
                # A label without attributes is about the defaults, of every version that has no label of its own.
                defaults = [a for a in answers if not a["attributes"]]
                if result != "open" and answers:
                    every = answers if ":" in label else defaults
                    is_equal = [are_equal(a["value"], result) for a in every or answers]
                    assert all(is_equal) if every else any(is_equal), (label, x, answers)
                    seen += 1
    assert seen > 0
