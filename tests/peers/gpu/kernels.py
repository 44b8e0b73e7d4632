"""A kernel for each form, as PTX text: `convert(source, result, count)` converts `count` groups of `lanes` elements.

In memory every element has its code to itself, in the smallest of 1, 2, 4 and 8 bytes; the first of two lanes is the
lower half of a packed register, and of two operands the second.
"""

from forms import BITS, INTEGERS, Form, Target

HEAD = """\
.version {version}
.target {target}
.address_size 64
"""
ENTRY = """
.visible .entry {name}(.param .u64 source, .param .u64 result, .param .u32 count)
{{
    .reg .pred %past;
    .reg .b32 %block, %size, %thread, %index, %count;
    .reg .b64 %source, %result, %offset;
{registers}
    ld.param.u64 %source, [source];
    ld.param.u64 %result, [result];
    ld.param.u32 %count, [count];
    cvta.to.global.u64 %source, %source;
    cvta.to.global.u64 %result, %result;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %index, %block, %size, %thread;
    setp.ge.u32 %past, %index, %count;
    @%past bra DONE;
    mul.wide.u32 %offset, %index, {read};
    add.u64 %source, %source, %offset;
    mul.wide.u32 %offset, %index, {written};
    add.u64 %result, %result, %offset;
{body}
DONE:
    ret;
}}
"""


def storage(name: str) -> int:
    """Bytes of a code in memory."""
    return max(8, BITS[name]) // 8


def register(name: str, lanes: int) -> str:
    """The class of a register for one operand: an integer of 8 bits has to have one of its own size beside bf16."""
    if name in INTEGERS or name in ("f16", "bf16", "tf32") and lanes == 1:
        return f".b{BITS[name]}"
    if name in ("f32", "f64"):
        return f".{name}"
    return f".b{8 if BITS[name] == 4 else lanes * max(8, BITS[name])}"


def load(name: str, lanes: int) -> tuple[list[str], str]:
    """Instructions, and the operands of `cvt` after them."""
    if name == "f32" and lanes == 2:
        return ["ld.global.v2.f32 {%a, %b}, [%source];"], "%b, %a"
    if BITS[name] == 4:
        nibbles = ["ld.global.b16 %t, [%source];", "shr.u16 %u, %t, 4;", "or.b16 %t, %t, %u;", "cvt.u8.u16 %a, %t;"]
        return nibbles, "%a"
    return [f"ld.global.b{8 * lanes * storage(name)} %a, [%source];"], "%a"


def store(name: str, lanes: int) -> list[str]:
    if BITS[name] == 4:
        nibbles = ["cvt.u16.u8 %t, %d;", "shl.b16 %u, %t, 4;", "or.b16 %t, %t, %u;", "and.b16 %t, %t, 0x0f0f;"]
        return [*nibbles, "st.global.b16 [%result], %t;"]
    return [f"st.global.b{8 * lanes * storage(name)} [%result], %d;"]


def head(target: Target, version: tuple[int, int]) -> str:
    major, minor = max(version, target.version)
    return HEAD.format(version=f"{major}.{minor}", target=target.name)


def entry(form: Form, name: str = "convert") -> str:
    loads, operands = load(form.source, form.lanes)
    body = [*loads, f"{form.instruction()} %d, {operands};", *store(form.to, form.lanes)]
    registers = [
        f".reg {register(form.source, form.lanes)} %a, %b;",
        f".reg {register(form.to, form.lanes)} %d;",
        ".reg .b16 %t, %u;",
    ]
    return ENTRY.format(
        name=name,
        registers="\n".join(f"    {line}" for line in registers),
        read=form.lanes * storage(form.source),
        written=form.lanes * storage(form.to),
        body="\n".join(f"    {line}" for line in body),
    )


def text(form: Form, target: Target) -> str:
    return head(target, form.version) + entry(form)
