"""Legal or not: truecast and NVIDIA's disassembler say the same of every module (docs/spec/tile-ir.md §11.5)."""

import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sysconfig

import pytest

import modules

TRUECAST = os.path.abspath(os.environ["TRUECAST_BIN"])
DISASSEMBLER = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin" / "tileirdisasm"
SAMPLE = int(os.environ.get("TILE_SAMPLE", "1"))
BATCH = 200
LEGAL, ILLEGAL = "legal", "illegal"


def verdicts(command, meanings, folder, names):
    """What a command says of every file, by its exit status. One shell runs it on all of them: starting a process from
    Python costs more than either command takes."""
    loop = f'for name; do {shlex.join(command)} "$name" >/dev/null 2>&1; echo $?; done'
    done = subprocess.run(["sh", "-c", loop, "sh", *names], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    said = [int(line) for line in done.stdout.splitlines()]
    for name, status in zip(names, said, strict=True):
        if status not in meanings:  # the file stays
            raise AssertionError(f"{shlex.join(command)} {folder / name}: status {status}")
    return [meanings[status] for status in said]


def truecast(folder, names):
    """Status 3, a file that cannot be read, is no verdict: the writer writes only what its version has."""
    return verdicts([TRUECAST, "check", "--spec", "tile@latest"], {0: LEGAL, 1: ILLEGAL}, folder, names)


def disassembler(folder, names):
    return verdicts([str(DISASSEMBLER)], {0: LEGAL, 3: ILLEGAL}, folder, names)


def disagreements(folder, probes):
    """Labels of the modules of which the verdicts differ, with both."""

    def judge(first):
        labels, contents = zip(*probes[first : first + BATCH])
        names = [f"{first + n}.tilebc" for n in range(len(labels))]
        for name, content in zip(names, contents):
            (folder / name).write_bytes(content)
        judged = list(zip(labels, truecast(folder, names), disassembler(folder, names)))
        for name in names:
            (folder / name).unlink()
        return judged

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = [row for batch in pool.map(judge, range(0, len(probes), BATCH)) for row in batch]
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
