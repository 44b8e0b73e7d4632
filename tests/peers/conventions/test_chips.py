"""Named specifications of chips against the instructions, as QEMU runs them: README.md."""

import pytest
from cli import assert_right, check
from inputs import TYPES, inputs
from programs import C_TYPES, Conversion, Machine, installed, newest, run, usable

LINK = ("-static", "-fuse-ld=lld", "-O1")
ARM_TARGET = ("--target=aarch64-linux-gnu", "-march=armv9-a+fp16+bf16")
ARM_FPCR = 'static void set_mode(long mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }'
RISCV_TARGET = ("--target=riscv64-linux-gnu", "-march=rv64gcv_zfh_zfa_zfbfmin_zvfh_zvfbfmin")
RISCV_FRM = 'static void set_mode(long mode) { __asm__ volatile("fsrm %0" ::"r"(mode)); }'
WORDS = ["i32", "u32", "i64", "u64"]


def arm() -> Machine:
    return usable(Machine((newest("clang"), *ARM_TARGET, *LINK), (installed("qemu-aarch64"), "-cpu", "max"), ARM_FPCR))


def riscv() -> Machine:
    types = C_TYPES | {"bf16": "_Float16"}  # moved as 16 bits only
    machine = (newest("clang"), *RISCV_TARGET, *LINK), (installed("qemu-riscv64"), "-cpu", "max"), RISCV_FRM
    return usable(Machine(*machine, tuple(types.items())))


def _arm() -> list[Conversion]:
    found = []
    rmode = {"nearest-even": 0, "up": 1 << 22, "down": 2 << 22, "toward-zero": 3 << 22}
    flush, fz = ("--subnormals", "flushsource"), 1 << 24
    flags = {"f16": "h", "bf16": "h", "f32": "s", "f64": "d", "i16": "h", "u16": "h"}
    flags |= {"i32": "w", "u32": "w", "i64": "x", "u64": "x"}

    def add(instruction: str, source: str, to: str, rounding: str | None, mode: int, *options: str) -> None:
        registers = ['"r"' if name in WORDS else '"w"' for name in (to, source)]
        text = f'"{instruction} %{flags[to]}0, %{flags[source]}1"'
        body = f'__asm__ volatile({text} : "="{registers[0]}(b) : {registers[1]}(a) : "cc");'
        options += ("--rounding", rounding) if rounding else ()
        found.append(Conversion(source, to, body, options, mode))

    for name, mode in rmode.items():
        for source in ("f32", "f64"):
            add("fcvt", source, "f16", name, mode)
            add("fcvt", source, "f16", name, mode | fz, *flush)
        add("fcvt", "f64", "f32", name, mode)
        add("bfcvt", "f32", "bf16", name, mode)
        for source in ["i16", "u16", *WORDS]:
            for to in ("f16", "f32", "f64") if source in WORDS else ("f16",):
                add("scvtf" if source[0] == "i" else "ucvtf", source, to, name, mode)
    add("fcvtxn", "f64", "f32", "odd", 0)
    for source, to in [("f16", "f32"), ("f16", "f64"), ("f32", "f64")]:
        add("fcvt", source, to, None, 0)
    add("fcvt", "f32", "f64", None, fz, *flush)
    letters = {"toward-zero": "z", "nearest-even": "n", "up": "p", "down": "m", "nearest-away": "a"}
    for name, letter in letters.items():
        for source in ("f16", "f32", "f64"):
            for to in ["i16", "u16", *WORDS] if source == "f16" else WORDS:
                instruction = f"fcvt{letter}{'s' if to[0] == 'i' else 'u'}"
                add(instruction, source, to, name, 1 << 22)
                if source != "f16":
                    add(instruction, source, to, name, fz, *flush)
    add("fjcvtzs", "f64", "i32", None, 0, "--int-overflow", "wrap")
    return found


def _riscv() -> list[Conversion]:
    found = []
    modes = {"nearest-even": "rne", "toward-zero": "rtz", "down": "rdn", "up": "rup", "nearest-away": "rmm"}
    floats = {"f16": "h", "f32": "s", "f64": "d", "bf16": "bf16"}
    suffixes = floats | {"i32": "w", "u32": "wu", "i64": "l", "u64": "lu"}

    def scalar(source: str, to: str, rounding: str | None, name: str = "fcvt", *options: str) -> None:
        registers = ["r" if t in WORDS else "f" for t in (to, source)]
        text = f"{name}.{suffixes[to]}.{suffixes[source]} %0, %1{', ' + modes[rounding] if rounding else ''}"
        options += ("--rounding", rounding) if rounding and not options else ()
        body = f'__asm__ volatile("{text}" : "={registers[0]}"(b) : "{registers[1]}"(a));'
        found.append(Conversion(source, to, body, options))

    def vector(source: str, to: str, instruction: str, rounding: str | None) -> None:
        """One element; the width that is set is that of the narrower type."""
        bits = [TYPES[name].bits for name in (source, to)]
        text = f"vsetivli zero, 1, e{min(bits)}, m1, ta, ma\\n vle{bits[0]}.v v8, (%0)\\n"
        text += f"{instruction} v16, v8\\n vse{bits[1]}.v v16, (%1)"
        body = f'__asm__ volatile("{text}" ::"r"(&a), "r"(&b) : "v8", "v16", "memory");'
        options, mode = (), 0
        if rounding:
            options = ("--rounding", rounding)
            mode = list(modes).index(rounding) if rounding in modes else 0
        found.append(Conversion(source, to, body, options, mode))

    for rounding in modes:
        for f in ("f16", "f32", "f64"):
            for i in WORDS:
                scalar(f, i, rounding)
                if (f, i) not in [("f64", "i32"), ("f64", "u32")]:
                    scalar(i, f, rounding)
        for source, to in [("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("f32", "bf16")]:
            scalar(source, to, rounding)
        for sign in "iu":
            x = "x" if sign == "i" else "xu"
            vector("f16", f"{sign}8", f"vfncvt.{x}.f.w", rounding)
            for f, bits in [("f16", 16), ("f32", 32), ("f64", 64)]:
                vector(f, f"{sign}{bits}", f"vfcvt.{x}.f.v", rounding)
                vector(f"{sign}{bits}", f, f"vfcvt.f.{x}.v", rounding)
            for f, bits in [("f32", 16), ("f64", 32)]:
                vector(f, f"{sign}{bits}", f"vfncvt.{x}.f.w", rounding)
            for f, bits in [("f16", 32), ("f32", 64)]:
                vector(f, f"{sign}{bits}", f"vfwcvt.{x}.f.v", rounding)
                vector(f"{sign}{bits}", f, f"vfncvt.f.{x}.w", rounding)
        for source, to in [("f64", "f32"), ("f32", "f16")]:
            vector(source, to, "vfncvt.f.f.w", rounding)
        vector("f32", "bf16", "vfncvtbf16.f.f.w", rounding)
    for sign in "iu":
        x = "x" if sign == "i" else "xu"
        for f, bits in [("f16", 8), ("f32", 16), ("f64", 32)]:
            vector(f"{sign}{bits}", f, f"vfwcvt.f.{x}.v", None)
        scalar(f"{sign}32", "f64", None)
        for f, bits in [("f16", 16), ("f32", 32), ("f64", 64)]:
            vector(f, f"{sign}{bits}", f"vfcvt.rtz.{x}.f.v", "toward-zero")
    for source, to in [("f64", "f32"), ("f32", "f16")]:
        vector(source, to, "vfncvt.rod.f.f.w", "odd")
        vector(to, source, "vfwcvt.f.f.v", None)
    for source, to in [("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32")]:
        scalar(source, to, None)
    vector("bf16", "f32", "vfwcvtbf16.f.f.v", None)
    scalar("f64", "i32", "toward-zero", "fcvtmod", "--int-overflow", "wrap")
    return found


ARM, RISCV = tuple(_arm()), tuple(_riscv())


def compare(spec: str, machine: Machine, conversions: tuple[Conversion, ...], one: Conversion) -> None:
    source, to = TYPES[one.source], TYPES[one.to]
    x = inputs("ieee", source, to, 200_000)
    report = check(spec, source, to, x, run(machine, conversions, one, x), *one.options)
    assert_right(report)
    assert not report["undefined"]


@pytest.mark.parametrize("one", ARM, ids=str)
def test_arm(one):
    compare("arm", arm(), ARM, one)


@pytest.mark.parametrize("one", RISCV, ids=str)
def test_riscv(one):
    compare("riscv", riscv(), RISCV, one)
