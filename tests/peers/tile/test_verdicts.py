"""Legal or not: truecast and NVIDIA's disassembler say the same of every module (docs/spec/tile-ir.md §11.5)."""

import concurrent.futures
import os
import pathlib
import subprocess
import sysconfig

import pytest

import modules

TRUECAST = os.environ["TRUECAST_BIN"]
DISASSEMBLER = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin" / "tileirdisasm"
SAMPLE = int(os.environ.get("TILE_SAMPLE", "1"))
LEGAL, ILLEGAL = "legal", "illegal"


def status(command, verdicts):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in verdicts:
        raise AssertionError(f"{command}: status {done.returncode}: {done.stderr[:300]}")
    return verdicts[done.returncode]


def truecast(path):
    """An illegal conversion is 1, a file whose version lacks something is 3."""
    return status([TRUECAST, "check", path, "--spec", "tile@latest"], {0: LEGAL, 1: ILLEGAL, 3: ILLEGAL})


def disassembler(path):
    return status([DISASSEMBLER, path], {0: LEGAL, 3: ILLEGAL})


def disagreements(folder, probes):
    """Labels of the modules of which the verdicts differ, with both."""

    def judge(numbered):
        number, (label, data) = numbered
        path = folder / f"{number}.tilebc"
        path.write_bytes(data)
        verdicts = truecast(path), disassembler(path)
        path.unlink()
        return (label, *verdicts)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(judge, enumerate(probes)))
    assert judged
    legal = sum(verdict == LEGAL for _, verdict, _ in judged)
    print(f"{len(judged)} modules, {legal} legal")
    return [row for row in judged if row[1] != row[2]]


@pytest.mark.parametrize("version", modules.VERSIONS)
def test_pairs(version, tmp_path):
    elements = [e for e in modules.ELEMENTS if modules.exists(e, version)]
    probes = [
        (f"{label}: {operand} to {result}", modules.module(version, operand, result, encode))
        for label, encode in modules.operations(version)
        for operand in elements
        for result in elements
    ]
    assert disagreements(tmp_path, probes[::SAMPLE]) == []


def test_shapes(tmp_path):
    """Dimensions, ranks, counts of 4-bit elements (§3.7), and shapes that differ (§4.2)."""
    operations = dict(modules.operations("13.5"))
    ftof, exti = operations["ftof NEAREST_EVEN"], operations["exti Signed"]
    shapes = [(), (1,), (2,), (3,), (0,), (1, 1), (1, 2), (2, 2), (2**24,), (2**25,), (2**12, 2**12), (2**12, 2**13)]
    probes = []
    for shape in shapes:
        for operand, result in [("F32", "F16"), ("F32", "F4E2M1FN"), ("F4E2M1FN", "F32")]:
            probes.append((f"{operand} to {result} {shape}", modules.module("13.5", operand, result, ftof, shape, shape)))
        probes.append((f"I4 to I8 {shape}", modules.module("13.5", "I4", "I8", exti, shape, shape)))
    for a, b in [((4,), (2,)), ((4,), (2, 2)), ((), (1,)), ((1, 4), (4,))]:
        probes.append((f"{a} to {b}", modules.module("13.5", "F32", "F16", ftof, a, b)))
    assert disagreements(tmp_path, probes) == []
