"""BENCHMARKS.md is what the pages of benches/peers/results give, and each CPU at each level has a page of its own."""

import re
from pathlib import Path
from types import SimpleNamespace

import overview
import pytest
import report
from command import ROOT

PAGES = sorted(overview.RESULTS.glob("*.md"))
LIBRARIES = {"torch": SimpleNamespace(title="PyTorch"), "numpy": SimpleNamespace(title="NumPy")}


def cpuinfo(model: int, flags: str = "fpu") -> str:
    fields = {"vendor_id": "AuthenticAMD", "cpu family": 25, "model": model, "model name": "AMD EPYC", "flags": flags}
    return "".join(f"{name}\t: {value}\n" for name, value in fields.items())


def test_benchmarks_are_those_of_the_pages():
    assert overview.OUTPUT.read_text() == overview.written(), "run benches/peers/overview.py"


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_name_of_a_page_has_family_model_and_level(path):
    title = overview.read(path.read_text()).title
    assert path.name == overview.file_name(title[0])
    for part in (f"-family-{title['family']}-", f"-model-{title['model']}-", f"-{title['level']}.md"):
        assert part in path.name


@pytest.mark.parametrize("label", ["Zen 4, AVX-512", "Zen 3, AVX2"])
def test_readme_quotes_both_levels(label):
    """PyTorch's range of times for three casts, and the pairs for which a library is faster."""
    (run,) = [run for run in map(overview.read, map(Path.read_text, PAGES)) if run.label == label]
    cpu, level = label.split(", ")
    casts = [run.speedups[pair]["PyTorch"] for pair in [("f32", "bf16"), ("f32", "f8e4m3fn"), ("bf16", "f8e4m3fn")]]
    factor, library, pair = max((*found, pair) for pair, found in run.faster().items())
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert re.search(rf"\b{min(casts):.1f} to {max(casts):.1f} (times as long )?with {level} \({cpu}\)", readme)
    most = rf"(at most )?{factor:.2f}( times)?: {library.split()[0]}, {' to '.join(pair)}"
    assert re.search(rf"\b{len(run.faster())} with {level} \({most}\)", readme)
    assert f"Of [{len(run.of_limit)} pairs](BENCHMARKS.md)" in readme


def test_the_20_pairs_are_those_of_kernels():
    page = " ".join((ROOT / "docs" / "kernels.md").read_text().split())
    (listed,) = re.findall(r"The pairs that people use: (.*?)\. ", page)
    sides = [[re.split(", | and ", side) for side in part.split(" to ")] for part in listed.split("; ")]
    stated = [(src, dst) for sources, destinations in sides for src in sources for dst in destinations]
    assert sorted(overview.USED) == sorted(stated) and len(stated) == 20


def test_another_model_or_level_does_not_replace_a_page():
    runs = [(17, "avx512"), (17, "avx2"), (1, "avx2"), (97, "avx512")]
    names = [overview.file_name(report.title(cpuinfo(model), level)) for model, level in runs]
    assert names[0] == "amd-family-25-model-17-avx512.md" and len(set(names)) == len(runs)


def test_title_of_other_cpus():
    assert report.title(cpuinfo(1, "fpu hypervisor"), "avx2").endswith("model 1, level avx2 (virtual machine)")
    desktop = "12th Gen Intel(R) Core(TM) i7-12700K, family 6, model 151, level avx2"
    assert overview.file_name(desktop) == "intel-family-6-model-151-avx2.md"
    assert ", family unknown, model unknown, level neon" in report.title("CPU part\t: 0xd0c\n", "neon")


def measured(dst: str, of_limit: float, size: str) -> dict:
    row = {"src": "f32", "dst": dst, "size": size, "route": "fused", "gbps": 1.5, "of_limit": of_limit, "ratio": 1.25}
    return row | {"counts_gbps": 0.5, "counts_ratio": 0.25}


def test_a_page_is_read_as_it_was_written():
    """Three pairs: one with the fastest of two faster libraries, one with none, one that no library converts."""
    ratios = {"f16": 0.95, "bf16": 0.55, "i8": 1.05}
    dram = [measured(dst, ratio, "dram") for dst, ratio in ratios.items()]
    other = lambda size: [measured(dst, 0.1, size) for dst in ratios]
    tables = {"one": other("l2") + dram, "llc": other("llc"), "levels": {"avx2": dram, "baseline": other("dram")}}
    seconds = [{"truecast": 2, "torch": 1.6, "numpy": 1.0}, {"truecast": 2, "torch": 3, "numpy": 2.5}, {"truecast": 2}]
    race = [
        {"src": "f32", "dst": dst, "elements": 4, "bytes": 8, "seconds": {"memcpy": 1} | taken}
        for dst, taken in zip(ratios, seconds)
    ]
    title = report.title(cpuinfo(1), "avx2")
    tables = report.own_tables(tables, 2), report.peers_table(race, LIBRARIES, 1)
    run = overview.read(report.page(title, {"date": "2026-11-27", "CPU": "2 cores"}, *tables))
    assert run.title[0] == title and run.label == "Zen 3, AVX2" and run.date == "2026-11-27"
    assert run.of_limit == {("f32", dst): ratio for dst, ratio in ratios.items()}
    assert run.faster() == {("f32", "f16"): (2.0, "NumPy")}
    (row,) = [line for line in overview.cpus([run]).splitlines() if "EPYC" in line]
    cells = [cell.strip() for cell in row[1:-1].split("|")]
    assert cells[4:] == ["2 of 3 pairs", "0.55: f32 to bf16", "1 of 3 pairs", "2.00 times: f32 to f16, NumPy"]
