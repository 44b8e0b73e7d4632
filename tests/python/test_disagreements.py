"""docs/disagreements.md is what its command writes, the right result of each fault there is truecast's, and what a row
says of a value is what `explain` says, for each source of the row.
"""

import os
import re
import subprocess
import sys
from typing import NamedTuple

import pytest
from command import ROOT, binary

PAGE = (ROOT / "docs/disagreements.md").read_text()


def test_the_page_is_up_to_date():
    command = [sys.executable, ROOT / "tests/peers/matrix", "--check"]
    environment = os.environ | {"TRUECAST_BIN": str(binary())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Class(NamedTuple):
    """Results by input, and the sources of each label; without results those of names that fit several classes."""

    results: dict[str, str]
    labels: dict[str, list[str]]


class Row(NamedTuple):
    """One source of a row. `codes` are those of inputs that are not given as numbers, if the row has them for it."""

    source: str
    to: str
    codes: dict[str, str]
    classes: list[Class]


def classes(cell: str, sources: list[str]) -> list[Class]:
    found = []
    for one in cell.split("<br>"):
        given, _, labels = one.lstrip("*").partition("* " if one.startswith("*open") else ":** ")
        results = dict(pair.split(" → ") for pair in given.split("; ") if given != "open:")
        converted = {}
        for label in labels.split(", "):
            label, _, mark = label.rstrip(")").partition(" (")
            types = mark.removeprefix("not ").split() or sources
            assert set(types) <= set(sources), label
            converted[label] = [source for source in sources if (source in types) != mark.startswith("not ")]
        found.append(Class(results, converted))
    return found


def rows() -> list[Row]:
    found = []
    for line in PAGE.partition("## Programs")[0].splitlines():
        anchors = re.findall(r'<a id="(\w+)-to-(\w+)">(\w+)</a>', line)
        if anchors:
            _, inputs, cell = line.strip("| ").split(" | ")
            count, *codes = inputs.split("<br>")
            assert all(anchor == shown for anchor, _, shown in anchors), line
            sources = [source for source, _, _ in anchors]
            for source, to, _ in anchors:
                known = codes if count.startswith(f"{source}: ") else []
                by_value = dict(code.rstrip(")").split(" (") for code in known)
                found.append(Row(source, to, by_value, classes(cell, sources)))
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


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.source}-to-{row.to}")
def test_a_row_is_what_explain_says(truecast, row):
    asked, seen = {}, 0
    for x in {x: None for one in row.classes for x in one.results}:
        given = row.codes.get(x) or (x if x == "-0" else repr(value(x)))
        answer = truecast.json("explain", given, "--from", row.source, "--to", row.to)
        assert are_equal(answer["source"]["exact"], x) and not answer["source"]["rounded"], x
        asked[x] = answer["results"]
    for one in row.classes:
        for label, sources in one.labels.items():
            for x, results in asked.items():
                of_name = [a for a in results if a["spec"] == re.split("[@:]", label)[0]]
                assert bool(of_name) == (row.source in sources), label
                # `explain` does not show a version or setting of which the result is one of those that it shows.
                named = [a for a in of_name if is_of(label, a)]
                answers = [a for a in named or of_name if a["undefined"] is None]
                # A label without attributes is about the defaults, of every version that has no label of its own.
                of_label = [a for a in named and answers if ":" in label or not a["attributes"]]
                expected = one.results.get(x, "open")
                if expected != "open" and answers:
                    is_equal = [are_equal(a["value"], expected) for a in of_label or answers]
                    assert all(is_equal) if of_label else any(is_equal), (label, x, answers)
                    seen += 1
    assert seen > 0


def test_every_anchor_is_of_one_row():
    anchors = re.findall(r'<a id="([^"]+)"', PAGE)
    lines = [line for line in PAGE.splitlines() if re.match(r"\| (?!from|program)", line)]
    assert all("<a id=" in line for line in lines)
    assert len(anchors) == len(set(anchors)) >= len(lines) > 0
