"""Modules of one conversion, written with cuTile Python's own writer."""

import itertools
import struct

import cuda.tile._bytecode as bc
from cuda.tile._bytecode.type import SimpleType

VERSIONS = {f"13.{minor}": getattr(bc.BytecodeVersion, f"V_13_{minor}") for minor in range(1, 6)}

# Type, first file version, bytes of one element of a constant (None: the type has none).
NUMBERS = {
    "I1": ("13.1", 1), "I4": ("13.3", None), "I8": ("13.1", 1), "I16": ("13.1", 2), "I32": ("13.1", 4), "I64": ("13.1", 8),
    "F16": ("13.1", 2), "BF16": ("13.1", 2), "F32": ("13.1", 4), "TF32": ("13.1", 3), "F64": ("13.1", 8),
    "F8E4M3FN": ("13.1", 1), "F8E5M2": ("13.1", 1), "F8E8M0FNU": ("13.2", 1), "F4E2M1FN": ("13.3", 1),
    "FNV8E5M3FNU": ("13.4", 1),
}
POINTERS = {"ptr I8": "I8", "ptr F32": "F32"}
ELEMENTS = [*NUMBERS, *POINTERS]

SIGNS = list(bc.Signedness)
ROUNDINGS = list(bc.RoundingMode)
OVERFLOWS = list(bc.IntegerOverflow)


def exists(element, version):
    return NUMBERS[POINTERS.get(element, element)][0] <= version


def operations(version):
    """(label, encoder) of every operation with every set of attributes that the writer can write in a version."""
    flags = [False, True] if version >= "13.4" else [False]
    roundings = [r for r in ROUNDINGS if version >= "13.4" or r.name != "NEAREST_AWAY"]
    yield "bitcast", lambda b, t, v: bc.encode_BitcastOp(b, t, v)
    yield "int_to_ptr", lambda b, t, v: bc.encode_IntToPtrOp(b, t, v)
    yield "ptr_to_int", lambda b, t, v: bc.encode_PtrToIntOp(b, t, v)
    yield "ptr_to_ptr", lambda b, t, v: bc.encode_PtrToPtrOp(b, t, v)
    for sign in SIGNS:
        yield f"exti {sign.name}", lambda b, t, v, s=sign: bc.encode_ExtIOp(b, t, v, s)
    for overflow in OVERFLOWS:
        yield f"trunci {overflow.name}", lambda b, t, v, o=overflow: bc.encode_TruncIOp(b, t, v, o)
    for mode in roundings:
        yield f"ftof {mode.name}", lambda b, t, v, r=mode: bc.encode_FToFOp(b, t, v, r)
    for sign, mode in itertools.product(SIGNS, roundings):
        yield f"itof {sign.name} {mode.name}", lambda b, t, v, s=sign, r=mode: bc.encode_IToFOp(b, t, v, s, r)
        for flag in flags:
            yield (
                f"ftoi {sign.name} {mode.name} {flag}",
                lambda b, t, v, s=sign, r=mode, f=flag: bc.encode_FToIOp(b, t, v, s, r, f),
            )


def module(version, operand, result, encode, operand_shape=(4,), result_shape=(4,)):
    """The bytes of a module that makes a tile of `operand` and converts it."""
    buffer = bytearray()
    with bc.write_bytecode(1, buffer, version=VERSIONS[version]) as writer:
        types = writer.type_table

        def tile(element, shape):
            if element in POINTERS:
                return types.tile(types.pointer(types.simple(SimpleType[POINTERS[element]]), bc.PtrAttr.Missing), shape)
            return types.tile(types.simple(SimpleType[element]), shape)

        with writer.function(name="k", parameter_types=[], result_types=[], entry_point=True, hints={},
                             debug_attr=bc.MISSING_DEBUG_ATTR_ID) as (builder, _):
            if operand in POINTERS:
                address = bc.encode_ConstantOp(builder, tile("I64", operand_shape), struct.pack("<q", 4096))
                value = bc.encode_IntToPtrOp(builder, tile(operand, operand_shape), address)
            elif operand == "I4":  # has no constants
                byte = bc.encode_ConstantOp(builder, tile("I8", operand_shape), b"\1")
                value = bc.encode_TruncIOp(builder, tile("I4", operand_shape), byte, bc.IntegerOverflow.NONE)
            else:
                width = NUMBERS[operand][1]
                value = bc.encode_ConstantOp(builder, tile(operand, operand_shape), b"\1" + bytes(width - 1))
            encode(builder, tile(result, result_shape), value)
            bc.encode_ReturnOp(builder, [])
    return bytes(buffer)
