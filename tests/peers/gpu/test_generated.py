"""The generated kernels, by NVIDIA's assembler and without a GPU: each form assembles, and none is missing."""

import itertools
import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

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
        or (source == "mxint8" and "satfinite" in modifiers)
    )
    names_no_rounding = {source, to} == {"f16", "bf16"} and not roundings
    is_not_in_truecast = (source, to) == ("f32", "bf16") and "ftz" in modifiers
    return clamps_to_1 or to_integral_float or has_no_effect or names_no_rounding or is_not_in_truecast


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
    import truecast

    source = np.zeros(1, f"u{max(8, BITS[form.source]) // 8}")
    truecast.cast(source, form.to, from_=form.source, spec="ptx", layout="codes", **form.settings)
