"""Without a GPU: every generated kernel assembles (NVIDIA's `ptxas`), no form is missing, differences are found."""

import itertools
import re
import subprocess
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import inputs
import numpy as np
import pytest
import truecast
from compare import Comparison, Conversion, is_open, sweep
from forms import BITS, FLOATS, INTEGERS, NARROW, NEWEST, PTX, TARGETS, Form, forms
from kernels import entry, head, register

PTXAS = next(Path(folder) / "cu13/bin/ptxas" for folder in find_spec("nvidia").submodule_search_locations)
FORMS = forms()
TYPES = [*INTEGERS, *FLOATS, *NARROW, "tf32", "f8e8m0", "mxint8"]
MODIFIERS = [("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"), ("ftz",), ("relu",), ("satfinite",), ("sat",)]
targets = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


def assemble(source: str, target) -> subprocess.CompletedProcess:
    command = [PTXAS, "-arch", target.name, "-O0", "-o", "/dev/null", "/dev/stdin"]
    return subprocess.run(command, input=source, capture_output=True, text=True)


@targets
def test_every_form_assembles(target):
    """In the version of PTX that the table has, so that an older driver loads it too."""
    here = sorted((form for form in FORMS if form.exists_on(target)), key=lambda form: form.version)
    for version, some in itertools.groupby(here, key=lambda form: form.version):
        kernels = [entry(form, f"convert{number}") for number, form in enumerate(some)]
        done = assemble(head(target, version) + "".join(kernels), target)
        assert done.returncode == 0, done.stderr[:1000]


@cache
def candidates() -> list[Form]:
    """Every pair with every set of modifiers, scalar and packed."""
    choices = [[(), *((one,) for one in among)] for among in MODIFIERS]
    modifiers = [tuple(itertools.chain(*some)) for some in itertools.product(*choices)]
    pairs = [(source, to, lanes) for source, to in itertools.product(TYPES, TYPES) for lanes in (1, 2)]
    return [Form(source, to, some, lanes=lanes) for source, to, lanes in pairs if can_pack(source, to, lanes)
            for some in modifiers]  # fmt: skip


def can_pack(source: str, to: str, lanes: int) -> bool:
    only_scalar, only_packed = {*INTEGERS, "f64", "tf32"}, {*NARROW, "f8e8m0", "mxint8"}
    return to != "f32" and not {source, to} & only_scalar if lanes == 2 else not {source, to} & only_packed


def lines(some: list[Form]) -> tuple[list[str], list[str]]:
    """Registers, and the instructions in them."""
    registers = [
        f".reg {register(name, lanes)} %{side}{name}{lanes};"
        for name, lanes, side in itertools.product(TYPES, (1, 2), "adb")
    ]
    operands = {
        (form.source, form.to, form.lanes): f"%d{form.to}{form.lanes}, %a{form.source}{form.lanes}"
        + (f", %b{form.source}{form.lanes}" if form.source == "f32" and form.lanes == 2 else "")
        for form in some
    }
    return registers, [f"{form.instruction()} {operands[form.source, form.to, form.lanes]};" for form in some]


def accepted(target) -> set[tuple]:
    registers, instructions = lines(candidates())
    before = (head(target, NEWEST) + ".visible .entry all() {\n" + "\n".join(registers)).splitlines()
    done = assemble("\n".join([*before, *instructions, "ret;", "}", ""]), target)
    refused = {int(number) - len(before) - 1 for number in re.findall(r"line (\d+); error ", done.stderr)}
    assert min(refused) >= 0 and max(refused) < len(instructions), done.stderr[:1000]
    return {key(form) for number, form in enumerate(candidates()) if number not in refused}


def key(form: Form) -> tuple:
    return form.source, form.to, frozenset(form.modifiers), form.lanes


def is_left_out(source: str, to: str, modifiers: frozenset, lanes: int) -> bool:
    """What assembles and is not in the table."""
    roundings = modifiers & {"rn", "rz", "rm", "rp"}
    clamps_to_1 = "sat" in modifiers and to in FLOATS
    to_integral_float = source == to and to in FLOATS
    has_no_effect = (
        (source in FLOATS and to in INTEGERS and "sat" in modifiers)
        or (source in INTEGERS and "ftz" in modifiers)
        or (source == "bf16" and to in ("f32", "f64") and roundings)
    )
    names_no_rounding = {source, to} == {"f16", "bf16"} and not roundings
    return clamps_to_1 or to_integral_float or has_no_effect or names_no_rounding


@targets
def test_no_form_is_missing(target):
    """What assembles is in the table or left out above; what the table does not have for a chip is refused."""
    there = accepted(target)
    table = {key(form) for form in FORMS if form.exists_on(target)}
    assert {one for one in there if not is_left_out(*one)} == table


def test_forms_are_distinct():
    assert len({key(form) for form in FORMS}) == len(FORMS)
    assert {form.source for form in FORMS} | {form.to for form in FORMS} == set(PTX) == set(BITS)


@pytest.mark.parametrize("form", FORMS, ids=Form.instruction)
def test_truecast_has_every_form(form):
    source = np.zeros(1, inputs.codes_of(form.source))
    truecast.cast(source, form.to, from_=form.source, spec="ptx", layout="codes", **form.settings)


class NoGpu:
    """Memory alone, so that a sweep runs here."""

    def use(self):
        pass

    @contextmanager
    def memory(self, size):
        yield np.zeros(size, np.uint8)

    def upload(self, memory, array):
        memory[:] = array.view(np.uint8)

    def fill(self, memory, size):
        memory[:size] = 0xA5

    def download(self, memory, array):
        array.view(np.uint8)[:] = memory[: array.nbytes]


def found(source: str, to: str, spoil) -> Comparison:
    def expected(codes, out):
        truecast.cast(codes, to, from_=source, layout="codes", out=out, spec="ieee")

    def launch(sources, results, count):
        codes, out = sources.view(inputs.codes_of(source)), np.empty(count, inputs.codes_of(to))
        expected(codes, out)
        spoil(codes, out)
        results[: out.nbytes] = out.view(np.uint8)

    return sweep(NoGpu(), source, [Conversion("", source, to, expected, launch)])[0]


def test_a_sweep_finds_one_wrong_result():
    def spoil(codes, out):
        out[codes == 0x3C00] ^= 1

    spoiled = found("f16", "f8e4m3fn", spoil)
    assert (spoiled.inputs, spoiled.differ, spoiled.nan_bits) == (2 << 16, 2, 0)
    assert spoiled.witness == {"differ": "0x3c00: GPU 0x39, truecast 0x38"}
    right = found("f16", "f8e4m3fn", lambda codes, out: None)
    assert (right.differ, right.open, right.nan_bits, right.witness) == (0, 0, 0, {})


def test_a_sweep_counts_bits_of_nan_apart():
    def spoil(codes, out):
        out[codes == 0x7E00] ^= 0x80

    spoiled = found("f16", "f8e4m3fn", spoil)
    assert (spoiled.differ, spoiled.nan_bits) == (0, 2)


def test_nan_for_a_number_differs():
    def spoil(codes, out):
        out[codes == 0x3C00] = 0x7F

    assert found("f16", "f8e4m3fn", spoil).differ == 2


def test_a_missing_result_differs():
    def spoil(codes, out):
        out[-1] = 0xA5A5

    assert found("i8", "f16", spoil).differ == 1


def test_what_is_open_to_e8m0():
    codes = np.array([0, 1 << 22, (1 << 22) - 1, 0x80000000, 0xBF800000, 0x3F800000, 0x7FC00000, 0xFFC00000], np.uint32)
    assert is_open("f32", "f8e8m0", codes).tolist() == [True, False, True, True, True, False, False, False]
    assert not is_open("f32", "f16", codes).any()


@pytest.mark.parametrize("name", ["u32", "f32"])
def test_blocks_are_all_codes(name):
    begins = inputs.blocks(name)
    assert [begins[0], len(begins) * inputs.BLOCK] == [0, 1 << 32]
    last = inputs.block(name, begins[-1])
    assert (last[-1], len(last)) == ((1 << 32) - 1, inputs.BLOCK)


@pytest.mark.parametrize("name", ["i8", "f6e2m3", "bf16"])
def test_both_lanes_have_each_code(name):
    codes = inputs.block(name, 0)
    for lane in (0, 1):
        assert sorted(codes[lane::2].tolist()) == list(range(1 << BITS[name]))


@pytest.mark.parametrize("name", ["i64", "u64", "f64"])
def test_wide_codes_are_in_pairs(name):
    codes = inputs.wide(name)
    assert codes.dtype == np.uint64 and len(codes) % 2 == 0
