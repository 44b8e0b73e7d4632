"""The conversion instructions of WebAssembly, run by Wasmtime on arrays."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from inputs import TYPES

OUTPUT = 1 << 26
"""Address of the results; the inputs begin at 0."""


@dataclass(frozen=True)
class Instruction:
    name: str
    source: str
    to: str
    text: str
    """From an address on the stack to a result on the stack."""
    store: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}-{self.source}-{self.to}"


def _instructions() -> list[Instruction]:
    saturate = ("--int-overflow", "saturate")
    found = [
        Instruction("demote", "f64", "f32", "f64.load f32.demote_f64", "f32.store"),
        Instruction("promote", "f32", "f64", "f32.load f64.promote_f32", "f64.store"),
    ]
    for f, bits, sign in [(f, bits, sign) for f in ("f32", "f64") for bits in (32, 64) for sign in "su"]:
        i, whole = f"i{bits}", f"{'i' if sign == 's' else 'u'}{bits}"
        found.append(Instruction("trunc", f, whole, f"{f}.load {i}.trunc_{f}_{sign}", f"{i}.store"))
        found.append(Instruction("trunc_sat", f, whole, f"{f}.load {i}.trunc_sat_{f}_{sign}", f"{i}.store", saturate))
        found.append(Instruction("convert", whole, f, f"{i}.load {f}.convert_{i}_{sign}", f"{f}.store"))
    for source, to in [(s, t) for s in "iu" for t in "iu"]:
        sign = "s" if source == "i" else "u"
        found.append(Instruction("wrap", f"{source}64", f"{to}32", "i64.load i32.wrap_i64", "i32.store"))
        extend = f"i32.load i64.extend_i32_{sign}"
        found.append(Instruction("extend", f"{source}32", f"{to}64", extend, "i64.store"))
        for wide, bits in [(32, 8), (32, 16), (64, 8), (64, 16), (64, 32)]:
            i = f"i{wide}"
            found.append(Instruction("store", f"{source}{wide}", f"{to}{bits}", f"{i}.load", f"{i}.store{bits}"))
            load = f"{i}.load{bits}_{sign}"
            found.append(Instruction("load", f"{source}{bits}", f"{to}{wide}", load, f"{i}.store"))
            if source == "i":
                text = f"{i}.load{bits}_u {i}.extend{bits}_s"
                found.append(Instruction("extend_in_place", f"i{bits}", f"{to}{wide}", text, f"{i}.store"))
        lanes = f"v128.load8_splat i16x8.extend_low_i8x16_{sign} i16x8.extract_lane_u 0"
        found.append(Instruction("extend_low", f"{source}8", f"{to}16", lanes, "i32.store16"))
    for to, sign in (("i", "s"), ("u", "u")):
        lanes = "v128.load16_splat local.tee $v local.get $v i8x16.narrow_i16x8_{} i8x16.extract_lane_u 0"
        found.append(Instruction("narrow", "i16", f"{to}8", lanes.format(sign), "i32.store8"))
        lanes = "v128.load32_splat local.tee $v local.get $v i16x8.narrow_i32x4_{} i16x8.extract_lane_u 0"
        found.append(Instruction("narrow", "i32", f"{to}16", lanes.format(sign), "i32.store16", saturate))
    return found


INSTRUCTIONS = _instructions()


@cache
def instance():
    wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed (README.md)")
    functions = ""
    for one in INSTRUCTIONS:
        sizes = [TYPES[name].numpy.itemsize for name in (one.source, one.to)]
        functions += f"""(func (export "{one}") (param $count i32) (local $v v128)
            (loop
                (i32.add (i32.const {OUTPUT}) (i32.mul (global.get $at) (i32.const {sizes[1]})))
                (i32.mul (global.get $at) (i32.const {sizes[0]}))
                {one.text}
                {one.store}
                (global.set $at (i32.add (global.get $at) (i32.const 1)))
                (br_if 0 (i32.lt_u (global.get $at) (local.get $count)))))\n"""
    state = f'(memory (export "memory") {OUTPUT * 2 >> 16}) (global $at (export "at") (mut i32) i32.const 0)'
    text = f"(module {state}\n{functions})"
    store = wasmtime.Store()
    return wasmtime, store, wasmtime.Instance(store, wasmtime.Module(store.engine, text), []).exports(store)


def run(one: Instruction, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The results, 0 where the instruction traps, and the indices where it does."""
    wasmtime, store, exports = instance()
    to, traps = TYPES[one.to].numpy, []
    exports["memory"].write(store, x.tobytes(), 0)
    exports["memory"].write(store, bytes(x.size * to.itemsize), OUTPUT)
    exports["at"].set_value(store, 0)
    while exports["at"].value(store) < x.size:
        try:
            exports[str(one)](store, x.size)
        except wasmtime.Trap:
            traps.append(exports["at"].value(store))
            exports["at"].set_value(store, traps[-1] + 1)
    return np.frombuffer(exports["memory"].read(store, OUTPUT, OUTPUT + x.size * to.itemsize), to), np.array(traps, int)
