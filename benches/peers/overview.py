"""Writes BENCHMARKS.md from the pages of results/. compare.py calls it after a run; started alone it measures nothing.

Figures are read from the tables of these pages, so a page is all that a run leaves and all that another machine sends.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
OUTPUT = HERE.parents[1] / "BENCHMARKS.md"

GOOD = 0.9
# The pairs that people use, by which docs/kernels.md §7 decides whether a kernel stays.
USED = [
    *[("f32", dst) for dst in ("bf16", "f16", "f8e4m3fn", "f8e5m2", "f4e2m1", "f64", "i8")],
    *[("bf16", dst) for dst in ("f32", "f16", "f8e4m3fn", "f8e5m2")],
    *[("f16", dst) for dst in ("f32", "bf16", "f8e4m3fn")],
    ("f64", "f32"),
    *[("f8e4m3fn", dst) for dst in ("f32", "bf16", "f16")],
    ("f8e5m2", "bf16"),
    ("f4e2m1", "bf16"),
]
# Names that people know, by vendor, family and model.
CODE_NAMES = {
    ("amd", "25", "1"): "Zen 3",
    ("amd", "25", "17"): "Zen 4",
    ("intel", "6", "173"): "Granite Rapids",
}
LEVELS = {"baseline": "baseline", "avx2": "AVX2", "avx512": "AVX-512", "neon": "NEON"}
TITLE = re.compile(
    r"(?P<name>(?:\d+th Gen )?(?P<vendor>\w+).*), family (?P<family>\w+), model (?P<model>\w+), level (?P<level>\w+)"
)

Pair = tuple[str, str]


@dataclass
class Run:
    """One page: for each pair the ratio to the limit out of cache, and how many times as fast as each library truecast
    is."""

    title: re.Match
    date: str
    of_limit: dict[Pair, float]
    speedups: dict[Pair, dict[str, float]]

    @property
    def label(self) -> str:
        return f"{code_name(self.title)}, {LEVELS[self.title['level']]}"

    def faster(self) -> dict[Pair, tuple[float, str]]:
        """The pairs for which a library is faster, with truecast's time divided by its time; the fastest library."""
        fastest = {pair: min((s, name) for name, s in found.items()) for pair, found in self.speedups.items() if found}
        return {pair: (1 / speedup, library) for pair, (speedup, library) in fastest.items() if speedup < 1}


def code_name(title: re.Match) -> str:
    vendor, family, model = title["vendor"].lower(), title["family"], title["model"]
    return CODE_NAMES.get((vendor, family, model), f"{title['vendor']} family {family} model {model}")


def file_name(title: str) -> str:
    """The page of a CPU and level: `amd-family-25-model-17-avx512.md`."""
    parts = TITLE.match(title)
    return f"{parts['vendor'].lower()}-family-{parts['family']}-model-{parts['model']}-{parts['level']}.md"


def read(page: str) -> Run:
    blocks = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    cells = [[[c.strip() for c in line[1:-1].split("|")] for line in block.splitlines()] for block in blocks]
    (_, _, *facts), (columns, _, *one), _, (names, _, *peers) = cells
    ratio = columns.index("DRAM") + 1
    return Run(
        TITLE.match(page.removeprefix("# ")),
        dict(facts)["date"],
        {(row[0], row[1]): float(row[ratio]) for row in one},
        {(row[0], row[1]): speedups(names, row) for row in peers},
    )


def speedups(columns: list[str], row: list[str]) -> dict[str, float]:
    """By library, whose column comes before its speed-up."""
    at = [i for i, column in enumerate(columns) if column == "speed-up" and row[i] != "-"]
    return {columns[i - 1]: float(row[i]) for i in at}


def contents(runs: list[Run]) -> str:
    head = [
        "The speed of truecast's conversions of arrays on one thread, out of cache, compared with what memory allows "
        "and with NumPy and ml_dtypes, PyTorch, onnxruntime and OpenVINO. `benches/peers/run` writes this page and the "
        "long tables: every pair in and out of cache, by level and number of threads, and next to each library.",
        "**Limit**: the fastest plain pass that reads and writes as many bytes in the same buffers, in the same run "
        "([docs/kernels.md](docs/kernels.md) §13). At 1.00 memory alone sets the speed; a little more is noise, or "
        "another order of reads and writes.",
        "**Faster library**: it takes less time than truecast on the same arrays in the same run; 1.10 means that "
        "truecast takes 1.10 times as long ([how each library is called](benches/peers/README.md)). Libraries follow "
        "different rules, so some do less work than others.",
        "The machines may have been shared, so a difference of a few percent means nothing. Ratios of two CPUs can be "
        "compared, GB/s cannot.",
    ]
    return (
        "# Benchmarks\n\n"
        + "".join(map(report.paragraph, head))
        + "## CPUs\n\n"
        + report.paragraph("The name of a CPU links to its long tables.")
        + cpus(runs)
        + "\n## The 20 pairs that people use\n\n"
        + report.paragraph(
            "The ratio to the limit. These pairs decide whether a kernel stays ([docs/kernels.md](docs/kernels.md) "
            "§7); `-`: not measured yet."
        )
        + by_pair(runs, USED, lambda run, pair: f"{run.of_limit[pair]:.2f}" if pair in run.of_limit else "-")
        + "\n## Pairs for which a library is faster\n\n"
        + report.paragraph("The fastest library, and truecast's time divided by its time.")
        + by_pair(
            runs,
            list(dict.fromkeys(pair for run in runs for pair in run.faster())),
            lambda run, pair: "{1} {0:.2f}".format(*run.faster()[pair]) if pair in run.faster() else "-",
        )
    )


def cpus(runs: list[Run]) -> str:
    columns = ["CPU", "model", "level", "date", f"{GOOD} of the limit or more", "least", "library faster", "at most"]
    rows = []
    for run in runs:
        title, faster, total = run.title, run.faster(), len(run.of_limit)
        least, worst = min((ratio, pair) for pair, ratio in run.of_limit.items())
        slowest = max(((*found, pair) for pair, found in faster.items()), default=None)
        rows.append([
            f"[{title['name']} ({code_name(title)})](benches/peers/results/{file_name(title[0])})",
            f"family {title['family']}, model {title['model']}",
            LEVELS[title["level"]],
            run.date,
            f"{sum(ratio >= GOOD for ratio in run.of_limit.values())} of {total} pairs",
            f"{least:.2f}: {' to '.join(worst)}",
            f"{len(faster)} of {total} pairs",
            f"{slowest[0]:.2f} times: {' to '.join(slowest[2])}, {slowest[1]}" if slowest else "-",
        ])
    return report.table(columns, rows, len(columns))


def by_pair(runs: list[Run], pairs: list[Pair], cell) -> str:
    rows = [[*pair, *(cell(run, pair) for run in runs)] for pair in pairs]
    return report.table(["from", "to", *(run.label for run in runs)], rows, 2)


def written() -> str:
    """The text of BENCHMARKS.md."""
    return contents([read(path.read_text()) for path in sorted(RESULTS.glob("*.md"))])


if __name__ == "__main__":
    OUTPUT.write_text(written())
