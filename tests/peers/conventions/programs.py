"""Conversions in C, compiled into one program for a machine, and run on arrays."""

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pytest
from inputs import TYPES

FOLDER = TemporaryDirectory(prefix="truecast-peers-")
C_TYPES = {
    "bool": "_Bool",
    **{f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for bits in (8, 16, 32, 64) for sign in "iu"},
    "f16": "_Float16",
    "bf16": "__bf16",
    "f32": "float",
    "f64": "double",
}


@dataclass(frozen=True)
class Conversion:
    source: str
    to: str
    body: str
    """C that makes `b`, of the type `to`, of `a`."""
    options: tuple[str, ...] = ()
    """Of truecast."""
    mode: int = 0
    """Given to `set_mode` before the conversions."""

    def __str__(self) -> str:
        return "-".join([self.source, self.to, *(option for option in self.options if option[:2] != "--")])


@dataclass(frozen=True)
class Machine:
    compiler: tuple[str, ...]
    runner: tuple[str, ...] = ()
    declarations: str = "static void set_mode(long mode) { (void)mode; }"
    types: tuple[tuple[str, str], ...] = tuple(C_TYPES.items())


def newest(tool: str) -> str:
    """The path of a tool, such as clang-22 or clang. Skips the test if there is none."""
    folders = [Path("/usr/bin"), *Path("/usr/lib").glob("llvm-*/bin")]
    found = [p for folder in folders for p in folder.glob(f"{tool}-*") if re.fullmatch(rf"{tool}-\d+", p.name)]
    found += [p for p in Path("/usr/lib").glob(f"llvm-*/bin/{tool}")]
    path = max(found, key=lambda path: int(re.search(r"-(\d+)", str(path))[1])) if found else shutil.which(tool)
    return str(path or pytest.skip(f"{tool} is not installed (README.md)"))


def installed(tool: str) -> str:
    return shutil.which(tool) or pytest.skip(f"{tool} is not installed (README.md)")


@cache
def compiles(machine: Machine, text: str) -> bool:
    command = [*machine.compiler, "-x", "c", "-", "-o", "/dev/null"]
    return subprocess.run(command, input=text, text=True, capture_output=True).returncode == 0


def usable(machine: Machine) -> Machine:
    if not compiles(machine, '#include <stdio.h>\nint main(void) { return puts("") < 0; }'):
        pytest.skip(f"{' '.join(machine.compiler)} makes no program: a library is not installed (README.md)")
    return machine


MAIN = r"""
int main(int argc, char **argv) {
    long which = atol(argv[1]), count = atol(argv[2]);
    void *x = malloc(8 * count + 8), *y = malloc(8 * count + 8);
    if (argc != 4 || !x || !y || fread(x, sizes[which][0], count, stdin) != (size_t)count) return 1;
    set_mode(atol(argv[3]));
    functions[which](x, y, count);
    set_mode(0);
    return fwrite(y, sizes[which][1], count, stdout) != (size_t)count;
}
"""


@cache
def build(machine: Machine, conversions: tuple[Conversion, ...], *others: str) -> Path:
    types, functions = dict(machine.types), {(c.source, c.to, c.body): None for c in conversions}
    text = f"#include <fenv.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n{machine.declarations}\n"
    for i, (source, to, body) in enumerate(functions):
        text += f"static void f{i}(const void *x, void *y, long n) {{ for (long i = 0; i < n; i++) {{\n"
        text += f"    {types[source]} a = ((const {types[source]} *)x)[i]; {types[to]} b;\n    {body}\n"
        text += f"    (({types[to]} *)y)[i] = b; }} }}\n"
    names = ", ".join(f"f{i}" for i in range(len(functions)))
    sizes = ", ".join(f"{{sizeof({types[source]}), sizeof({types[to]})}}" for source, to, _ in functions)
    text += f"static void (*const functions[])(const void *, void *, long) = {{{names}}};\n"
    text += f"static const int sizes[][2] = {{{sizes}}};\n{MAIN}"
    folder = Path(mkdtemp(dir=FOLDER.name))
    (folder / "program.c").write_text(text)
    command = [*machine.compiler, "-w", folder / "program.c", *others, "-lm", "-o", folder / "program"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "program"


def run(machine: Machine, conversions: tuple[Conversion, ...], one: Conversion, x: np.ndarray, *others: str):
    """The results for `x`; the conversions are one program, built once, also with the files and options `others`."""
    program = build(machine, conversions, *others)
    which = list({(c.source, c.to, c.body): None for c in conversions}).index((one.source, one.to, one.body))
    command = [*machine.runner, program, str(which), str(x.size), str(one.mode)]
    done = subprocess.run(command, input=x.tobytes(), capture_output=True)
    if machine.runner and done.returncode == -signal.SIGILL:
        pytest.skip(f"{machine.runner[0]} does not have the instruction (README.md)")
    assert done.returncode == 0, (done.returncode, done.stderr)
    return np.frombuffer(done.stdout, TYPES[one.to].numpy)
