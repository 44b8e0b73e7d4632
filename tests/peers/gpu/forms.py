"""The forms of PTX's `cvt` that truecast's `ptx@9` has, as a table.

A form is a pair of types with its modifiers. `test_generated.py` holds the table against NVIDIA's assembler. Truecast
is asked for the results of a form with `Form.settings`.
"""

import itertools
from dataclasses import dataclass, field

INTEGERS = {f"{sign}{bits}": f"{ptx}{bits}" for bits in (8, 16, 32, 64) for sign, ptx in (("i", "s"), ("u", "u"))}
FLOATS = {name: name for name in ("f16", "bf16", "f32", "f64")}
NARROW = {"f8e4m3fn": "e4m3", "f8e5m2": "e5m2", "f6e2m3": "e2m3", "f6e3m2": "e3m2", "f4e2m1": "e2m1"}
PTX = INTEGERS | FLOATS | NARROW | {"tf32": "tf32", "f8e8m0": "ue8m0", "mxint8": "s2f6"}
"""Name in PTX by name in truecast."""
BITS = {name: int(ptx[1:]) for name, ptx in INTEGERS.items()} | {
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "tf32": 32, "f8e4m3fn": 8, "f8e5m2": 8, "f6e2m3": 6, "f6e3m2": 6,
    "f4e2m1": 4, "f8e8m0": 8, "mxint8": 8,
}  # fmt: skip

ROUNDINGS = {"rn": "nearest-even", "rz": "toward-zero", "rm": "down", "rp": "up", "rna": "nearest-away"}
SETTINGS = (
    {name: {"rounding": rounding} for name, rounding in ROUNDINGS.items()}
    | {name + "i": {"rounding": ROUNDINGS[name]} for name in ("rn", "rz", "rm", "rp")}
    | {"sat": {"int_overflow": "saturate"}, "relu": {"relu": True}}
)
DIRECTED = [["rn"], ["rz"], ["rm"], ["rp"]]
TO_INTEGER = [["rni"], ["rzi"], ["rmi"], ["rpi"]]
NEAREST_OR_ZERO = [["rn"], ["rz"]]

# What a form needs beyond the oldest chip: a level, and the version of PTX.
ANY, AMPERE, ADA, HOPPER, BLACKWELL, FAMILY, SPECIFIC = range(7)
"""sm_75, 80, 89, 90, 100, then the features of sm_100f and its like, and those of sm_100a and its like."""
OLDEST, SATFINITE, NARROWEST, S2F6, NEWEST = (7, 8), (8, 1), (8, 6), (9, 1), (9, 2)


@dataclass(frozen=True)
class Target:
    """A chip as `.target` names it: `number` is 10 times the compute capability."""

    number: int
    version: tuple[int, int]
    """The first version of PTX that knows it, not below that of the oldest form."""

    @property
    def name(self) -> str:
        return f"sm_{self.number}" + ("a" if self.number >= 100 else "")

    @property
    def level(self) -> int:
        return SPECIFIC if self.number >= 100 else sum(self.number >= first for first in (80, 89, 90))


TARGETS = [Target(number, OLDEST) for number in (75, 80, 86, 87, 89, 90)] + [
    Target(100, (8, 6)), Target(103, (8, 8)), Target(110, (9, 0)), Target(120, (8, 7)), Target(121, (8, 8)),
]  # fmt: skip


def target_of(number: int) -> Target:
    """Of a chip that the list lacks: what is known to hold for older ones, in the newest version of PTX used here."""
    known = [target for target in TARGETS if target.number == number]
    return known[0] if known else Target(number, NEWEST if number >= 100 else OLDEST)


@dataclass(frozen=True)
class Form:
    source: str
    to: str
    modifiers: tuple[str, ...] = ()
    level: int = ANY
    version: tuple[int, int] = OLDEST
    lanes: int = 1
    settings: dict = field(default_factory=dict, hash=False)
    """What truecast is asked beside `spec="ptx"`."""

    def instruction(self) -> str:
        packed = [f"x{self.lanes}" if self.lanes > 1 and name != "f32" else "" for name in (self.to, self.source)]
        modifiers = "".join(f".{modifier}" for modifier in self.modifiers)
        return f"cvt{modifiers}.{PTX[self.to]}{packed[0]}.{PTX[self.source]}{packed[1]}"

    def exists_on(self, target: Target) -> bool:
        return self.level <= target.level


def forms() -> list[Form]:
    return list(itertools.chain(integers(), floats(), packed()))


def form(source, to, modifiers, level=ANY, version=OLDEST, lanes=1, **settings) -> Form:
    """Settings that are given replace those of a modifier; None is no setting."""
    of_modifiers = {name: value for modifier in modifiers for name, value in SETTINGS.get(modifier, {}).items()}
    said = {name: value for name, value in (of_modifiers | settings).items() if value is not None}
    return Form(source, to, tuple(modifiers), level, version, lanes, said)


def bounds(integer) -> tuple[int, int]:
    bits, is_signed = BITS[integer], integer[0] == "i"
    return -(1 << bits - 1) if is_signed else 0, (1 << bits - is_signed) - 1


def integers():
    """To and from integers."""
    for source, to in itertools.product(INTEGERS, INTEGERS):
        yield form(source, to, [])
        (low, high), (lowest, highest) = bounds(source), bounds(to)
        if low < lowest or high > highest:  # elsewhere PTX refuses it
            yield form(source, to, ["sat"])
    for integer, number in itertools.product(INTEGERS, FLOATS):
        level = HOPPER if number == "bf16" else ANY
        yield from (form(integer, number, rounding, level) for rounding in DIRECTED)
        yield from (form(number, integer, rounding, level) for rounding in TO_INTEGER)
        if number == "f32":
            yield from (form(number, integer, [*r, "ftz"], subnormals="flushsource") for r in TO_INTEGER)


def floats():
    """Between floats of 16 bits and more, and to tf32."""
    for to, level in (("f16", ANY), ("bf16", AMPERE)):
        yield from (form("f32", to, rounding, level) for rounding in DIRECTED)
        yield from saturating("f32", to, level, AMPERE, SATFINITE)
        yield from (form("f64", to, rounding, HOPPER if to == "bf16" else ANY) for rounding in DIRECTED)
    yield from (form("f32", "f16", [*rounding, "ftz"], subnormals="flushsource") for rounding in DIRECTED)
    yield from (form("f32", "bf16", [*r, "ftz"], AMPERE, subnormals="flushsource") for r in DIRECTED)
    yield form("f32", "tf32", ["rna"], AMPERE)
    yield form("f32", "tf32", ["rna", "satfinite"], AMPERE, SATFINITE, overflow="saturate")
    yield from (form("f32", "tf32", rounding, HOPPER) for rounding in NEAREST_OR_ZERO)
    yield from saturating("f32", "tf32", BLACKWELL, HOPPER, NARROWEST)
    for rounding in DIRECTED:
        yield form("f64", "f32", rounding)
        yield form("f64", "f32", [*rounding, "ftz"], subnormals="flushresult")
        yield form("f16", "bf16", rounding, HOPPER)
        yield form("bf16", "f16", rounding, HOPPER)
    for source, to, level, flushes in [
        ("f16", "f32", ANY, "flushresult"), ("bf16", "f32", AMPERE, "flushresult"), ("f32", "f64", ANY, "flushsource"),
    ]:  # fmt: skip
        yield form(source, to, [], level)
        yield form(source, to, ["ftz"], HOPPER if source == "bf16" else level, subnormals=flushes)
    yield form("f16", "f64", [])
    yield form("bf16", "f64", [], HOPPER)


def saturating(source, to, level, relu_level, version, lanes=1):
    """`.satfinite`, `.relu` and both: with two of the roundings only."""
    for rounding in NEAREST_OR_ZERO:
        yield form(source, to, [*rounding, "satfinite"], level, version, lanes, overflow="saturate")
        yield form(source, to, [*rounding, "relu"], relu_level, OLDEST, lanes)
        both = [*rounding, "relu", "satfinite"]
        yield form(source, to, both, max(level, relu_level), version, lanes, overflow="saturate")


def packed():
    """Two elements an instruction: also to f16 and bf16, and every narrow type."""
    for to in ("f16", "bf16"):
        yield from (form("f32", to, rounding, AMPERE, lanes=2) for rounding in NEAREST_OR_ZERO)
        yield from saturating("f32", to, AMPERE, AMPERE, SATFINITE, lanes=2)
    only_rn = {"rounding": None}
    """Where `.rn` is all there is, truecast has no setting for it."""
    for narrow, relu in itertools.product(NARROW, ([], ["relu"])):
        later = (FAMILY, S2F6)
        since, from_f16 = ((ADA, SATFINITE),) * 2 if BITS[narrow] == 8 else ((FAMILY, NARROWEST), later)
        yield form("f32", narrow, ["rn", "satfinite", *relu], *since, 2, **only_rn)
        yield form("f16", narrow, ["rn", "satfinite", *relu], *from_f16, 2, **only_rn)
        yield form("bf16", narrow, ["rn", "satfinite", *relu], *later, 2, **only_rn)
        yield form(narrow, "f16", ["rn", *relu], *since, 2, **only_rn)
        yield form(narrow, "bf16", ["rn", *relu], FAMILY, NEWEST, 2, **only_rn)
        yield form(narrow, "bf16", ["rn", "satfinite", *relu], FAMILY, NEWEST, 2, **only_rn, overflow="saturate")
    for source, rounding in itertools.product(("f32", "bf16"), ("rz", "rp")):
        yield form(source, "f8e8m0", [rounding], FAMILY, NARROWEST, 2, overflow="nonfinite")
        yield form(source, "f8e8m0", [rounding, "satfinite"], FAMILY, NARROWEST, 2, overflow="saturate")
    yield form("f8e8m0", "bf16", ["rn"], FAMILY, NARROWEST, 2, **only_rn)
    for relu in ([], ["relu"]):
        for source in ("f32", "bf16"):
            yield form(source, "mxint8", ["rn", "satfinite", *relu], SPECIFIC, S2F6, 2, **only_rn)
        yield form("mxint8", "bf16", ["rn", *relu], SPECIFIC, S2F6, 2, **only_rn)
        yield form("mxint8", "bf16", ["rn", "satfinite", *relu], SPECIFIC, S2F6, 2, **only_rn, overflow="saturate")
