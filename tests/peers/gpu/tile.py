"""Every conversion of Tile IR as a kernel over pointers, compiled for the GPU, beside truecast's profile `hw`."""

import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import inputs
import numpy as np
import truecast
from driver import DriverError
from forms import BITS

try:
    import cuda.tile._bytecode as bc
    from cuda.tile._bytecode.type import SimpleType
except ImportError:
    bc = None

LENGTH = 1024
"""Elements of a tile."""
MOST = 1 << 22
"""Codes of a source of 32 bits or more, spread over all."""
MOST_BY_RUN = 1 << 16
"""Of those that `truecast run` evaluates, from text."""
FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "tf32": "tf32",
          "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2"}  # fmt: skip
INTEGERS = ["i1", "i8", "i16", "i32", "i64"]
ROUNDINGS = {"nearest_even": None, "zero": "zero", "negative_inf": "down", "positive_inf": "up",
             "nearest_away": "nearest-away"}  # fmt: skip


@dataclass(frozen=True)
class Operation:
    name: str
    source: str
    to: str
    is_signed: bool = True
    rounding: str = "nearest_even"
    is_saturating: bool = False

    def attributes(self) -> str:
        """As Tile IR writes them."""
        sign = {True: " signed", False: " unsigned"}[self.is_signed] if self.name in ("itof", "ftoi", "exti") else ""
        rounding = f" rounding<{self.rounding}>" if self.rounding != "nearest_even" else ""
        return sign + rounding + (" saturating" if self.is_saturating else "")

    def label(self) -> str:
        return f"tile {self.name}{self.attributes()} {self.source} to {self.to}"

    def truecast_names(self) -> tuple[str, str]:
        return tuple(self.truecast_name(name) for name in (self.source, self.to))

    def truecast_name(self, name: str) -> str:
        if name in FLOATS:
            return FLOATS[name]
        return "bool" if name == "i1" else name if self.is_signed else "u" + name[1:]

    def settings(self) -> dict:
        rounding = {"rounding": ROUNDINGS[self.rounding]} if self.rounding != "nearest_even" else {}
        return rounding | ({"saturating": True} if self.is_saturating else {})


def operations() -> list[Operation]:
    """All that can be written; the compiler refuses many."""
    signs = (True, False)
    some = [Operation("ftof", *pair, rounding=r) for pair in itertools.permutations(FLOATS, 2) for r in ROUNDINGS]
    for number, integer, sign in itertools.product(FLOATS, INTEGERS, signs):
        some += [Operation("ftoi", number, integer, sign, is_saturating=saturating) for saturating in signs]
        some += [Operation("itof", integer, number, sign, rounding) for rounding in ROUNDINGS]
    for narrow, wide in itertools.combinations(INTEGERS, 2):
        some += [Operation("exti", narrow, wide, sign) for sign in signs] + [Operation("trunci", wide, narrow)]
    return some


def kernel(one: Operation) -> bytes:
    """Bytecode of `convert(source, result)`: a block converts a tile. i1 is in memory as i8."""
    buffer = bytearray()
    stored = ["i8" if name == "i1" else name for name in (one.source, one.to)]
    with bc.write_bytecode(1, buffer, version=bc.BytecodeVersion.V_13_5) as writer:
        types = writer.type_table

        def tile(name, shape=(LENGTH,)):
            return types.tile(types.simple(SimpleType[name.upper()]), shape)

        def pointer(name, shape):
            return types.tile(types.pointer(types.simple(SimpleType[name.upper()]), bc.PtrAttr.Missing), shape)

        parameters = [pointer(name, ()) for name in stored]
        with writer.function(
            name="convert", parameter_types=parameters, result_types=[], entry_point=True, hints={},
            debug_attr=bc.MISSING_DEBUG_ATTR_ID,
        ) as (b, arguments):  # fmt: skip
            none, weak = bc.IntegerOverflow.NONE, bc.MemoryOrderingSemantics.WEAK
            scalar = tile("i32", ())
            block, _, _ = bc.encode_GetTileBlockIdOp(b, scalar, scalar, scalar)
            length = bc.encode_ConstantOp(b, scalar, LENGTH.to_bytes(4, "little"))
            first = bc.encode_MulIOp(b, scalar, block, length, none)
            first = bc.encode_ReshapeOp(b, tile("i32", (1,)), first)
            first = bc.encode_BroadcastOp(b, tile("i32"), first)
            index = bc.encode_AddIOp(b, tile("i32"), first, bc.encode_IotaOp(b, tile("i32")), none)

            def pointers(argument, name):
                wide = bc.encode_ReshapeOp(b, pointer(name, (1,)), argument)
                wide = bc.encode_BroadcastOp(b, pointer(name, (LENGTH,)), wide)
                return bc.encode_OffsetOp(b, pointer(name, (LENGTH,)), wide, index)

            where = [pointers(*pair) for pair in zip(arguments, stored, strict=True)]
            x, _ = bc.encode_LoadPtrTkoOp(b, tile(stored[0]), types.Token, where[0], None, None, None, weak, None, None)
            if one.source == "i1":
                x = bc.encode_TruncIOp(b, tile("i1"), x, none)
            y = converted(b, tile(one.to), x, one)
            if one.to == "i1":
                y = bc.encode_ExtIOp(b, tile("i8"), y, bc.Signedness.Unsigned)
            bc.encode_StorePtrTkoOp(b, types.Token, where[1], y, None, None, weak, None, None)
            bc.encode_ReturnOp(b, [])
    return bytes(buffer)


def converted(b, to, x, one: Operation):
    sign = bc.Signedness.Signed if one.is_signed else bc.Signedness.Unsigned
    rounding = bc.RoundingMode[one.rounding.upper()]
    match one.name:
        case "ftof":
            return bc.encode_FToFOp(b, to, x, rounding)
        case "itof":
            return bc.encode_IToFOp(b, to, x, sign, rounding)
        case "ftoi":
            return bc.encode_FToIOp(b, to, x, sign, bc.RoundingMode.NEAREST_INT_TO_ZERO, one.is_saturating)
        case "exti":
            return bc.encode_ExtIOp(b, to, x, sign)
        case "trunci":
            return bc.encode_TruncIOp(b, to, x, bc.IntegerOverflow.NONE)


def compiler() -> Path | None:
    folders = find_spec("nvidia").submodule_search_locations if find_spec("nvidia") else []
    found = [path for folder in folders for path in Path(folder).glob("*/bin/tileiras")]
    return found[0] if bc and found else None


def compiled(compiler: Path, one: Operation, chip: str, folder: Path) -> bytes | None:
    """A cubin; None if the compiler refuses the operation."""
    bytecode, cubin = (folder / f"{abs(hash(one))}.{ending}" for ending in ("tile", "cubin"))
    bytecode.write_bytes(kernel(one))
    done = subprocess.run([compiler, "--gpu-name", chip, bytecode, "-o", cubin], capture_output=True)
    return cubin.read_bytes() if done.returncode == 0 else None


def codes_of(name: str) -> np.ndarray:
    """In full tiles."""
    if name == "i1":
        return np.tile(np.array([0, 1], np.uint8), LENGTH // 2)
    name = FLOATS.get(name, name)
    if BITS[name] <= 16:
        return np.tile(inputs.block(name, 0), max(1, LENGTH >> BITS[name] + 1))
    if BITS[name] == 64:
        codes = inputs.wide(name)
        return codes[:: max(1, len(codes) // MOST)][:MOST]
    # An odd step visits every residue of the low bits as well.
    codes = np.arange(MOST, dtype=np.uint32) * np.uint32((1 << 32) // MOST + 1)
    return codes & np.uint32(0xFFFFE000) if name == "tf32" else codes


def by_run(one: Operation, codes: np.ndarray, folder: Path) -> np.ndarray:
    """What is several casts on the chip, evaluated as a module of text."""
    stored = f"i{8 * codes.itemsize}"
    values = ", ".join(map(str, codes.view(f"i{codes.itemsize}").tolist()))
    of = {name: f"tile<{len(codes)}x{name}>" for name in {stored, one.source, one.to, "f32"}}
    lines = [f"%c = constant <{stored}: [{values}]> : {of[stored]}"]
    if one.source == "tf32":
        lines.append(f"%f = bitcast %c : {of[stored]} -> {of['f32']}")
        lines.append(f"%x = ftof %f : {of['f32']} -> {of['tf32']}")
    else:
        lines.append(f"%x = bitcast %c : {of[stored]} -> {of[one.source]}")
    lines.append(f"%y = {one.name} %x{one.attributes()} : {of[one.source]} -> {of[one.to]}")
    text = "\n".join(["cuda_tile.module @m {", "entry @k() {", *lines, "return", "}", "}", ""])
    (folder / "m.mlir").write_text(text)
    command = [sys.executable, "-m", "truecast", "run", folder / "m.mlir", "--output-dir", folder / "out"]
    subprocess.run([*command, "--force", "--profile", "hw", "--quiet"], check=True)
    return np.load(folder / "out" / "y.npy")


def expected_of(one: Operation, codes: np.ndarray, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Results, and the codes that they are of."""
    source, to = one.truecast_names()
    x, asked = (codes.view(np.bool_), None) if source == "bool" else (codes, source)
    settings = {"spec": "tile", "profile": "hw", "layout": "codes", **one.settings()}
    try:
        return np.asarray(truecast.cast(x, to, from_=asked, **settings)), codes
    except truecast.SpecError as error:
        if "not a single cast" not in str(error):
            raise
    # Of the codes of 16 bits that is each one: they are there twice, the second time with neighbors swapped.
    fewer = codes[:: max(1, len(codes) // MOST_BY_RUN)][:MOST_BY_RUN]
    return by_run(one, fewer, folder), fewer


def compare(gpu, conversion, comparison, notes: list[str]):
    """Label and findings of each operation that the compiler accepts."""
    tool = compiler()
    if tool is None:
        notes.append("Tile IR was not compared: its writer (cuda-tile) or its compiler (tileiras) is not installed")
        return
    with TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder, chip = Path(name), f"sm_{gpu.number}"
        some = operations()
        for one, cubin in zip(some, pool.map(lambda one: compiled(tool, one, chip, folder), some), strict=True):
            if cubin is None:
                continue
            codes = codes_of(one.source)
            source, to = one.truecast_names()
            try:
                actual = converted_on(gpu, cubin, codes, BITS.get(FLOATS.get(one.to, one.to), 8) // 8)
                expected, asked = expected_of(one, codes, folder)
            except (DriverError, truecast.TruecastError, subprocess.CalledProcessError) as error:
                notes.append(f"not compared: {one.label()}: {' '.join(str(error).split())[:200]}")
                continue
            if len(asked) < len(codes):
                actual = actual[:: max(1, len(codes) // MOST_BY_RUN)][:MOST_BY_RUN]
            found = comparison()
            found.add(conversion(one.label(), source, to, None, None), asked, actual, expected.view(actual.dtype))
            yield one.label(), found


def converted_on(gpu, cubin: bytes, codes: np.ndarray, size: int) -> np.ndarray:
    actual = np.empty(len(codes), f"u{size}")
    run = gpu.kernel(cubin, "convert")
    with gpu.memory(codes.nbytes) as source, gpu.memory(actual.nbytes) as result:
        gpu.upload(source, codes)
        gpu.fill(result, actual.nbytes)
        run.launch(len(codes) // LENGTH, 1, source, result)
        gpu.download(result, actual)
    return actual
