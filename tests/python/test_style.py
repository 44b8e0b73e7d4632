"""The English of pages, help, messages and comments: patterns that make a sentence hard to read at once.

They are applied to one unit at a time: a paragraph, list item or table row of a page, an entry of a command's help with
its lines joined, a string literal of a message, a paragraph of a comment or docstring. The comment at each pattern shows
the alternative.
"""

import ast
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from command import ROOT


class Pattern(NamedTuple):
    """An expression, a text in which it is found, and a text that it lets pass."""

    expression: re.Pattern
    found: str
    passed: str


def pattern(expression: str, found: str, passed: str) -> Pattern:
    return Pattern(re.compile(expression, re.VERBOSE), found, passed)


# In these expressions a space is written as \s or [ ].
PATTERNS = {
    # Write `is not a Y`.
    "is_no": pattern(
        r"(?<!\b[Tt]here[ ]) \b(?:is|are|was|were)\s+no(?:ne)?\b (?!\s+(?:longer|more|less)\b)",
        "the file is no checkpoint",
        "there is no checkpoint, and the file is no longer read",
    ),
    # Name the thing: `the error`, not `what went wrong`.
    "clause_as_subject": pattern(
        r"""(?:^|[.;:|]\s+|\bso[ ]is[ ]) (?:[Ww]hat|[Ww]hatever|[Hh]ow|[Ww]hich)\s(?!if\b|to\b) (?:(?![.;:?|]|,[ ]).)*
            \s(?:is|are|was|were|becomes?|takes?|comes?|gives?|decides?|proves?|says?)\b(?!\?)""",
        "What is copied is not counted.",
        "How to read the table",
    ),
    # Write `dequantized` or `unquantized`.
    "dense": pattern(
        r"(?<![{.`])\bdense\b(?![}.]) (?!\s+(?:bit|packing|layer|MLP))",
        "the tensor becomes dense",
        "a dense bit stream",
    ),
    # Name the place.
    "dangling_there": pattern(
        r"""(?<!\bis[ ])(?<!\bare[ ])(?<!\bwas[ ])(?<!\bfrom[ ])\bthere(?=\s*(?:[;:,.)"']|$))""",
        "its scales have another type there",
        "the index is there",
    ),
    # Write `except`.
    "but_for_except": pattern(
        r"""\bbut[ ]for\b
            | \b(?:all|nothing|none|anything|everything|others?|any|every|refused|section[ ]\d+|\w+_FORCE`)\s+but\b
            | \bbut[ ](?:those|ones?|complex|`)""",
        "all types but `c64`",
        "the names differ, but the values are equal",
    ),
    # Write `is`, `represents`, `after`, `next to`, `compared with`.
    "lies_stands_beside": pattern(
        r"\b(?:lie|lies|lay|lying|stands?|stood)\b|\bbehind\b|\bbeside\b",
        "a file that lies beside it",
        "a file next to it",
    ),
    # Write `again`, `no longer`, `anyway`, `continues`, `similar`.
    "bookish": pattern(
        r"""\banew\b|\bany[ ]more\b|\ball[ ]the[ ]same\b|\bgo(?:es)?\s+on\b|\band[ ]the[ ]like\b|\bat[ ]hand\b
            | \bhowever[ ]odd\b|\bbegun\b|\bthat[ ]very\b|\ball[ ]alike\b""",
        "the run goes on",
        "the run continues",
    ),
    # Repeat the noun.
    "that_of": pattern(
        r"""\b(?:is|not|than|near|with|under|includes|takes?|has|have)\s+(?:that|those|the[ ]ones?)\s+(?:of|for)\b
            | \bthe[ ]ones?[ ](?:of|that|which)\b | ,\s(?:that|those)[ ]of\b""",
        "the type is that of the codes",
        "the type of the codes",
    ),
    # Write `known sizes are X`, `expected X`, `A, expected B`.
    "fronted_participle": pattern(
        r"""(?<!\bbe[ ])\b(?:expected|allowed|known|declared|written|right)\s+(?:is|are)\b(?!\s+(?:\w+ed|not)\b)
            | \bwhere\s+\S+(?:\s\S+){0,4}?\s+(?:is|are|was|were)\s+(?:right|due|expected|needed|allowed|announced)\b
            | \bwhere[ ]\S+(?:\s\S+){0,3}[ ](?:need|says?|has|have)\b(?=[^.;,]*$)""",
        "unknown size x; known are l2, llc",
        "unknown size x; known sizes are l2, llc",
    ),
    # Write `states`, `requested`, `detected`.
    "said_told_found": pattern(
        r"""\b(?:is|are|was|were|be)\s+(?:said|told|met|believed|asked[ ](?:for|of))\b | \bfound[ ]out\b
            | \b(?:header|model|file|configuration|it)\s+do(?:es)?[ ]not[ ](?:say|tell)\b | \btwo[ ]files[ ]do[ ]not[ ]tell\b
            | \bsays?[ ](?:no|yes)\b | \bsay[ ]it[ ]with\b""",
        "the header does not say the type",
        "the header does not state the type",
    ),
    # One name for one thing: `global scale`, `signaling`, `misspelled`, `a graph of conversion nodes`.
    "another_name": pattern(
        r"\bsecond[ ]scales?\b|\bsignalling\b|\bmisspelt\b|\bmodels?[ ]of[ ]conversions?\b",
        "no second scale",
        "no global scale",
    ),
}

# Comments have these too: a noun comes first, and names the thing.
COMMENT_PATTERNS = PATTERNS | {
    # Write `Keys of the file`, `Bits per block`.
    "withheld_noun": pattern(
        r"(?:^|[.:;]\s+)(?:Of|What|Whatever|Whoever|Whose|Those|That[ ]of)\b(?![^.]*\?)",
        "Of a block: the scale",
        "Scale of a block",
    ),
    # Name the thing: `the result`.
    "clause_as_object": pattern(
        r"\b[Ww]hat(?:ever)?\s+(?:\S+\s+){0,5}?(?:is|are|was|were|has|have|had|became|becomes?)\b(?!\?)",
        "Returns what became of the file",
        "Returns the state of the file",
    ),
    # Write `no other process`, `the caller`.
    "people_as_code": pattern(
        r"\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever)\b|\bwho\s+(?:asks?|counts?|needs?|reads?|wants?)\b",
        "memory that nobody reads",
        "memory that no thread reads",
    ),
    # Write `None if the type is unknown`, `this many`.
    "none_so_many": pattern(
        r"\b(?:is|are|was|were)\s+none\b|\bso\s+(?:many|few)\b",
        "a code that is none",
        "an invalid code",
    ),
    # Write `the file's header`, `row length in blocks`.
    "of_of_of": pattern(
        r"(?:\bof\s+(?:(?:an?|the|its?|each|every|all|one|two)\s+)?[\w`]+\s+){2}of\b",
        "the length of rows of blocks of a matrix",
        "the length of a block's rows in a matrix",
    ),
}


def hits(place: str, unit: str, patterns: dict[str, Pattern] = PATTERNS) -> list[str]:
    found = ((name, row.expression.search(unit)) for name, row in patterns.items())
    return [f"{place}: {name}: {unit[max(0, m.start() - 40) : m.end() + 30]!r}" for name, m in found if m]


@pytest.mark.parametrize("name", COMMENT_PATTERNS)
def test_patterns_find_what_they_are_for(name):
    row = COMMENT_PATTERNS[name]
    assert row.expression.search(row.found) and not row.expression.search(row.passed)


def units_of_a_page(text: str):
    """The number of the first line, and the text in one line, of each paragraph, list item and row of a table."""
    unit, first, in_listing = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.startswith("```"):
            in_listing = not in_listing
        begins = not line.strip() or re.match(r"\s*(?:[-*]|\d+\.) |\||#|```", line) or line.startswith("    ")
        if begins and unit:
            yield first, " ".join(unit)
            unit = []
        if in_listing or not line.strip() or line.startswith(("```", "    ", "#")):
            continue
        first = first if unit else number
        unit.append(re.sub(r"^(?:[-*]|\d+\.) ", "", line.strip()))


GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "site").rglob("*.md"))


@pytest.mark.parametrize("page", ["README.md", "docs/interfaces.md", *GUIDES])
def test_pages(page):
    units = units_of_a_page((ROOT / page).read_text())
    found = [hit for line, unit in units for hit in hits(f"{page}:{line}", unit)]
    assert not found, "\n".join(found)


def units_of_help(text: str):
    """Paragraphs and entries of a help. A wrapped line begins in the column of what it continues."""
    unit, column = "", -1
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        entry = re.match(r"\s*\S+(?: \S+)*?\s{2,}(?=\S)", line)
        if line.strip() and not entry and unit and indent == column:
            unit += " " + line.strip()
            continue
        yield unit
        column = entry.end() if entry else indent
        unit = line[column:].strip()
    yield unit


def test_help(truecast):
    commands = re.findall(r"^  (\w+) ", truecast("-h").partition("Commands:\n")[2].partition("\n\n")[0], re.MULTILINE)
    commands = [command for command in commands if command != "help"]
    lines = [[*command.split(), option] for command in ["", *commands] for option in ("-h", "--help")]
    found = {}
    for line in [["help", "specs"], *lines]:
        ran = subprocess.run([truecast.binary, *line], capture_output=True, text=True)
        # `help specs` may not exist.
        assert ran.returncode == 0 or line[0] == "help", ran.stderr
        for hit in [hit for unit in units_of_help(ran.stdout) for hit in hits("", unit)]:
            found.setdefault(hit, " ".join(line))
    assert not found, "\n".join(f"truecast {line}{hit}" for hit, line in found.items())


# Crates whose strings a user reads; the others are tools and tests of this repository.
CRATES = ["c", "cli", "core", "io", "kernel", "models", "python", "schemes", "truecast"]
TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | b?r(?P<hashes>\#*)".*?"(?P=hashes) | b?'(?:\\.|[^\\'\n])' | (?P<string>"(?:\\.|[^"\\])*")
        | (?P<call>\b(?:expect|panic!|unreachable!|(?:debug_)?assert(?:_eq|_ne)?!)\() | (?P<open>\() | (?P<close>\))""",
    re.VERBOSE | re.DOTALL,
)


def messages(text: str):
    """The line and the text of each string literal. Tests, and what is said of a broken invariant, are left out."""
    text = re.split(r"^#\[cfg\(test\)\]\nmod \w+ \{", text, maxsplit=1, flags=re.MULTILINE)[0]
    depth, call = 0, None
    for token in TOKEN.finditer(text):
        match token.lastgroup:
            case "string" if call is None and not text[: token.start()].endswith("reason = "):
                joined = re.sub(r"\\\n\s*", "", token["string"][1:-1]).replace('\\"', '"').replace("\\n", "\n")
                for line in filter(lambda line: " " in line, joined.splitlines()):
                    yield text.count("\n", 0, token.start()) + 1, line.strip()
            case "call" | "open":
                call = depth if token["call"] and call is None else call
                depth += 1
            case "close":
                depth -= 1
                call = None if call == depth else call


def sources() -> list[Path]:
    found = [path for crate in CRATES for path in (ROOT / "crates" / crate / "src").rglob("*.rs")]
    return sorted(path for path in found if path.name != "tests.rs" and "tests" not in path.parts)


def test_messages():
    found = []
    for path in sources():
        for line, unit in messages(path.read_text()):
            found += hits(f"{path.relative_to(ROOT)}:{line}", unit)
    assert not found, f"{len(found)} hits\n" + "\n".join(found)


# Every crate.
COMMENTED = ["c", "cli", "core", "fuzz", "io", "kernel", "models", "python", "schemes", "testkit", "truecast", "verify"]


def comments(text: str):
    """The first line and the text of each paragraph in the comments of a Rust file, without the code of examples."""
    mark, unit, in_example = None, "", False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = re.match(r"\s*(//[/!]?)(?!/) ?(.*)", line)
        if found and found[2].startswith("```"):
            in_example = not in_example
        ends = not found or found[1] != mark or in_example or not found[2].strip() or re.match(r"[-*|#`]|\s", found[2])
        if unit and ends:
            yield first, unit
            unit = ""
        mark = found and found[1]
        if not found or in_example or not found[2].strip() or found[2].startswith("```"):
            in_example = in_example and bool(found)
            continue
        first = first if unit else number
        unit = f"{unit} {found[2].strip()}".strip()


def docstrings(text: str):
    """The line and the text of each paragraph in the docstrings of a Python file, without examples."""
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            for paragraph in re.split(r"\n\s*\n", value.value):
                if not paragraph.lstrip().startswith(">>>"):
                    yield value.lineno, " ".join(paragraph.split())


@pytest.mark.parametrize("crate", COMMENTED)
def test_comments(crate):
    folder = ROOT / "crates" / crate
    found = []
    for path in sorted([*folder.rglob("*.rs"), *folder.glob("package/**/*.py*")]):
        units = comments if path.suffix == ".rs" else docstrings
        for line, unit in units(path.read_text()):
            found += hits(f"{path.relative_to(ROOT)}:{line}", unit, COMMENT_PATTERNS)
    assert not found, f"{len(found)} hits\n" + "\n".join(found)
