"""The casts of MLIR's dialect `arith`: lowered by mlir-opt, compiled with Clang and run, or folded by mlir-opt."""

import re
import subprocess
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from inputs import TYPES
from programs import FOLDER, Conversion, Machine, newest, usable

FLOATS = {
    "f64": "f64",
    "f32": "f32",
    "f16": "f16",
    "bf16": "bf16",
    "f8e5m2": "f8E5M2",
    "f8e5m2fnuz": "f8E5M2FNUZ",
    "f8e4m3fn": "f8E4M3FN",
    "f8e4m3fnuz": "f8E4M3FNUZ",
    "f8e4m3b11fnuz": "f8E4M3B11FNUZ",
    "f8e4m3ieee": "f8E4M3",
    "f8e3m4": "f8E3M4",
    "f8e8m0": "f8E8M0FNU",
    "f6e2m3": "f6E2M3FN",
    "f6e3m2": "f6E3M2FN",
    "f4e2m1": "f4E2M1FN",
}
NATIVE = ["f64", "f32", "f16", "bf16"]
INTS = [f"{sign}{bits}" for bits in (2, 4, 8, 16, 32, 64) for sign in "iu"]


def operation(source: str, to: str) -> str | None:
    """The name of the cast of a pair, if there is one."""
    narrower, wider = TYPES[to].bits < TYPES[source].bits, TYPES[to].bits > TYPES[source].bits
    if source in FLOATS and to in FLOATS:
        if "f8e8m0" in (source, to) and min(TYPES[source].bits, TYPES[to].bits) < 8:
            return None  # docs/spec/mlir.md §1
        return "truncf" if narrower else "extf" if wider else None
    if source in FLOATS or to in FLOATS:
        if "f8e8m0" in (source, to):
            return None
        signed = source[0] == "i" or to[0] == "i"
        return ("fpto" if source in FLOATS else "") + ("si" if signed else "ui") + ("tofp" if to in FLOATS else "")
    return "trunci" if narrower else ("extsi" if source[0] == "i" else "extui") if wider else None


def _function(name: str, source: str, to: str) -> str:
    """From a code to a code, in i64."""
    bits = [TYPES[source].bits, TYPES[to].bits]
    types = [FLOATS.get(t, f"i{TYPES[t].bits}") for t in (source, to)]
    text, value = f"func.func @{name}(%x: i64) -> i64 {{\n", "%x"

    def step(line: str) -> None:
        nonlocal text, value
        text += f"  %{text.count(' = ')} = arith.{line.format(value)}\n"
        value = f"%{text.count(' = ') - 1}"

    if bits[0] < 64:
        step(f"trunci {{}} : i64 to i{bits[0]}")
    if source in FLOATS:
        step(f"bitcast {{}} : i{bits[0]} to {types[0]}")
    step(f"{operation(source, to)} {{}} : {types[0]} to {types[1]}")
    if to in FLOATS:
        step(f"bitcast {{}} : {types[1]} to i{bits[1]}")
    if bits[1] < 64:
        step(f"extui {{}} : i{bits[1]} to i64")
    return f"{text}  return {value} : i64\n}}\n"


def _conversions(pairs: list[tuple[str, str]]) -> tuple[Conversion, ...]:
    body = "uint64_t in = 0, out; memcpy(&in, &a, sizeof a); out = p_{}_{}(in); memcpy(&b, &out, sizeof b);"
    return tuple(Conversion(*pair, body.format(*pair)) for pair in pairs if operation(*pair))


# As LLVM and --arith-expand have it, which expands bf16, f8E8M0FNU and f4E2M1FN; and by software floats (APFloat).
COMPILED = _conversions(
    [*product([*NATIVE, *INTS], repeat=2), *product(["f32", "f16", "bf16"], ["f8e8m0"]), *product(["f8e8m0"], NATIVE)]
    + [("f4e2m1", to) for to in ("f16", "bf16", "f32")]
)
# mlir-opt 22.1.8 stops at 64 bits there ("extui" and "trunci" of i64 to i64).
SOFT = _conversions(
    [pair for pair in product([*FLOATS, *INTS], repeat=2) if not {*pair} <= {*INTS} and pair[1] != "f8e8m0"]
)
BY_APFLOAT = tuple(c for c in SOFT if 64 not in (TYPES[c.source].bits, TYPES[c.to].bits))
# Not as docs/spec/mlir.md §2 has it.
EXPANDED = _conversions([("f32", "f4e2m1")])
EXPAND = ["--arith-expand=include-bf16 include-f8e8m0 include-f4e2m1", "--convert-to-llvm"]
PASSES = {
    COMPILED: EXPAND,
    EXPANDED: EXPAND,
    BY_APFLOAT: ["--convert-arith-to-apfloat", "--convert-to-llvm"],
}


@cache
def release() -> int:
    text = subprocess.run([newest("mlir-opt"), "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"version (\d+)", text)[1])


def machine(conversions: tuple[Conversion, ...]) -> Machine:
    types = {t.name: f"uint{8 * t.numpy.itemsize}_t" for t in TYPES.values()}
    text = "#include <string.h>\nstatic void set_mode(long mode) { (void)mode; }\n"
    text += "".join(f"extern uint64_t p_{c.source}_{c.to}(uint64_t);\n" for c in conversions)
    compiler = (newest("clang"), "--rtlib=compiler-rt", "-O1")
    return usable(Machine(compiler, declarations=text, types=tuple(types.items())))


@cache
def lowered(conversions: tuple[Conversion, ...]) -> tuple[str, ...]:
    """What the program is linked with."""
    tool = newest("mlir-opt")
    text = "".join(_function(f"p_{c.source}_{c.to}", c.source, c.to) for c in conversions)
    done = subprocess.run([tool, *PASSES[conversions]], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    file = Path(mkdtemp(dir=FOLDER.name)) / "lowered.ll"
    command = [newest("mlir-translate"), "--mlir-to-llvmir", "-o", str(file)]
    subprocess.run(command, input=done.stdout, check=True, text=True)
    if conversions is not BY_APFLOAT:
        return (str(file),)
    folder = Path(tool).resolve().parent.parent / "lib"
    library = next(folder.glob("libmlir_apfloat_wrappers.so*"), None)
    if library is None:
        pytest.skip(f"no APFloat wrappers in {folder}")
    return (str(file), str(library), f"-Wl,-rpath,{folder}")


def folded(source: str, to: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which constants mlir-opt folds, and their results."""
    text = ""
    for i, code in enumerate(TYPES[source].codes(x).tolist()):
        one = _function(f"f{i}", source, to).replace("(%x: i64)", "()")
        signed = code - (1 << 64) if code >> 63 else code
        text += one.replace("{\n", f"{{\n  %x = arith.constant {signed} : i64\n", 1)
    command = [newest("mlir-opt"), "--canonicalize"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    found = re.findall(r"@f(\d+)\(\) -> i64 \{\s+%\S+ = arith.constant (-?\d+) : i64\s+return", done.stdout)
    codes = np.array([int(code) & (1 << 64) - 1 for _, code in found], np.uint64)
    return np.array([int(i) for i, _ in found], int), TYPES[to].from_codes(codes)
