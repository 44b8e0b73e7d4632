//! Properties of single instructions, for the rules.

use iced_x86::{EncodingKind, FlowControl, Instruction, MemorySize, Mnemonic, OpKind};

pub fn decode(code: &[u8], address: u64) -> Vec<Instruction> {
    iced_x86::Decoder::with_ip(64, code, address, iced_x86::DecoderOptions::NONE).into_iter().collect()
}

/// Address and assembly of an instruction.
pub fn text(one: &Instruction) -> String {
    let mut text = format!("{:#x}  ", one.ip());
    iced_x86::FastFormatter::new().format(one, &mut text);
    text
}

/// True for a call, direct or indirect.
pub fn is_call(one: &Instruction) -> bool {
    matches!(one.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// Width in bits of the widest vector operand, register or memory; 0 without a vector register.
pub fn vector_bits(one: &Instruction) -> u32 {
    let registers = (0..one.op_count()).filter(|i| one.op_kind(*i) == OpKind::Register).map(|i| one.op_register(i));
    let bits = |r: iced_x86::Register| match r {
        r if r.is_zmm() => 512,
        r if r.is_ymm() => 256,
        r if r.is_xmm() => 128,
        _ => 0,
    };
    match registers.map(bits).max().unwrap_or(0) {
        0 => 0,
        widest => widest.max(8 * one.memory_size().size() as u32),
    }
}

fn name(one: &Instruction) -> String {
    let name = format!("{:?}", one.mnemonic()).to_lowercase();
    name.strip_prefix('v').map(str::to_owned).unwrap_or(name)
}

fn starts_with_any(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

/// True for an instruction that moves data unchanged.
fn is_move(name: &str) -> bool {
    let moves = ["mova", "movu", "movdq", "movd", "movq", "movnt", "movss", "movsd", "lddqu", "maskmov"];
    let lanes = ["pinsr", "pextr", "insert", "extract", "broadcast", "pbroadcast"];
    (starts_with_any(name, &moves) && !name.starts_with("movddup")) || starts_with_any(name, &lanes)
}

/// True for float arithmetic or a float conversion on one element.
pub fn is_scalar_float(one: &Instruction) -> bool {
    let name = name(one);
    let one_float = matches!(one.op_code().memory_size(), MemorySize::Float32 | MemorySize::Float64);
    let from_integer = starts_with_any(&name, &["cvtsi2s", "cvtusi2s"]);
    from_integer || is_scalar_float_to_int(one) || (one_float && vector_bits(one) > 0 && !is_move(&name))
}

/// True for an instruction that zeroes a register.
fn makes_zero(name: &str, one: &Instruction) -> bool {
    let last = one.op_count().saturating_sub(1);
    let register = |i| (one.op_kind(i) == OpKind::Register).then(|| one.op_register(i));
    starts_with_any(name, &["pxor", "xorp"]) && register(last).is_some() && register(last) == register(last - 1)
}

/// True for an operation on several elements at once.
pub fn is_packed(one: &Instruction) -> bool {
    let name = name(one);
    vector_bits(one) > 0 && !is_scalar_float(one) && !is_move(&name) && !makes_zero(&name, one)
}

/// True for a conversion of one float to an integer.
pub fn is_scalar_float_to_int(one: &Instruction) -> bool {
    let name = name(one);
    name.starts_with("cvt") && (name.ends_with("2si") || name.ends_with("2usi"))
}

/// True if each element is loaded or stored at its own address.
pub fn is_gather(one: &Instruction) -> bool {
    starts_with_any(&name(one), &["gather", "pgather", "scatter", "pscatter"])
}

/// True for a comparison of floats.
pub fn compares_floats(one: &Instruction) -> bool {
    let name = name(one);
    let floats = ["ps", "pd", "ss", "sd"].iter().any(|end| name.ends_with(end));
    floats && vector_bits(one) > 0 && starts_with_any(&name, &["cmp", "comi", "ucomi"])
}

/// True for the conversion to bf16 that treats subnormals as zero.
pub fn flushes_subnormals(one: &Instruction) -> bool {
    matches!(one.mnemonic(), Mnemonic::Vcvtneps2bf16 | Mnemonic::Vcvtne2ps2bf16)
}

/// True for an AVX encoding with a vector register. BMI instructions share the encoding.
pub fn needs_avx(one: &Instruction) -> bool {
    matches!(one.op_code().encoding(), EncodingKind::VEX | EncodingKind::EVEX) && vector_bits(one) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::*;

    fn only(write: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Instruction {
        let mut assembler = CodeAssembler::new(64).unwrap();
        write(&mut assembler).unwrap();
        let code = assembler.assemble(0x1000).unwrap();
        decode(&code, 0x1000)[0]
    }

    use iced_x86::IcedError;

    #[test]
    fn packed_or_not() {
        let packed = [
            only(|a| a.paddd(xmm0, xmm1)),
            only(|a| a.mulps(xmm0, xmmword_ptr(rdi))),
            only(|a| a.vpsrld(ymm0, ymm1, 3)),
            only(|a| a.vpmovdb(xmmword_ptr(rsi), zmm1)),
            only(|a| a.vpaddd(zmm0, zmm1, dword_bcst(rdi))),
            only(|a| a.vcvtph2ps(zmm0, ymmword_ptr(rdi))),
            only(|a| a.vcvttps2dq(ymm0, ymm1)),
            only(|a| a.vpermi2b(zmm0, zmm1, zmm2)),
            only(|a| a.vcvtqq2ps(ymm0, zmmword_ptr(rdi))),
        ];
        assert_eq!(packed.map(|one| vector_bits(&one)), [128, 128, 256, 512, 512, 512, 256, 512, 512]);
        for one in packed {
            assert!(is_packed(&one) && !is_scalar_float(&one), "{}", text(&one));
        }
        for one in [
            only(|a| a.movd(xmm0, eax)),
            only(|a| a.movss(xmm0, dword_ptr(rdi))),
            only(|a| a.vmovups(zmm0, zmmword_ptr(rdi))),
            only(|a| a.vmovdqu64(zmm0, zmmword_ptr(rdi))),
            only(|a| a.pinsrw(xmm0, eax, 1)),
            only(|a| a.vpbroadcastd(zmm0, eax)),
            only(|a| a.vextractf128(xmm0, ymm1, 1)),
            only(|a| a.xorps(xmm3, xmm3)),
            only(|a| a.vpxor(xmm3, xmm3, xmm3)),
            only(|a| a.add(eax, ecx)),
        ] {
            assert!(!is_packed(&one) && !is_scalar_float(&one), "{}", text(&one));
        }
    }

    #[test]
    fn one_float_at_a_time() {
        let converts = [only(|a| a.cvttss2si(eax, xmm0)), only(|a| a.vcvttsd2si(rax, qword_ptr(rdi)))];
        let converts =
            converts.into_iter().chain([only(|a| a.vcvttss2usi(eax, xmm0)), only(|a| a.cvtsd2si(rax, xmm0))]);
        for one in converts {
            assert!(is_scalar_float_to_int(&one) && is_scalar_float(&one) && !is_packed(&one), "{}", text(&one));
        }
        for one in [
            only(|a| a.addss(xmm0, xmm1)),
            only(|a| a.vmulsd(xmm0, xmm1, qword_ptr(rdi))),
            only(|a| a.cvtsi2ss(xmm0, eax)),
            only(|a| a.vcvtsi2sd(xmm0, xmm1, qword_ptr(rdi))),
            only(|a| a.vcvtusi2ss(xmm0, xmm1, rax)),
            only(|a| a.cvtss2sd(xmm0, xmm1)),
        ] {
            assert!(is_scalar_float(&one) && !is_scalar_float_to_int(&one) && !is_packed(&one), "{}", text(&one));
        }
    }

    #[test]
    fn comparisons_gathers_and_flushing() {
        for one in [
            only(|a| a.vcmpneqps(k1, zmm0, zmm1)),
            only(|a| a.cmpneqps(xmm0, xmm1)),
            only(|a| a.ucomiss(xmm0, xmm1)),
            only(|a| a.vcmpeqsd(xmm0, xmm1, xmm2)),
        ] {
            assert!(compares_floats(&one), "{}", text(&one));
        }
        for one in [only(|a| a.vpcmpeqd(k1, zmm0, zmm1)), only(|a| a.pcmpeqd(xmm0, xmm1)), only(|a| a.cmp(eax, 0))] {
            assert!(!compares_floats(&one), "{}", text(&one));
        }
        assert!(is_gather(&only(|a| a.vpgatherdd(zmm0.k1(), dword_ptr(rdi + zmm1 * 4)))));
        assert!(is_gather(&only(|a| a.vscatterdps(dword_ptr(rdi + zmm1 * 4).k1(), zmm2))));
        assert!(flushes_subnormals(&only(|a| a.vcvtneps2bf16(ymm0, zmm1))));
        assert!(!flushes_subnormals(&only(|a| a.vcvtps2ph(ymmword_ptr(rdi), zmm1, 0))));
    }

    #[test]
    fn avx_by_its_encoding() {
        for one in [only(|a| a.vpaddd(xmm0, xmm1, xmm2)), only(|a| a.vpxord(zmm0, zmm0, zmm0))] {
            assert!(needs_avx(&one), "{}", text(&one));
        }
        for one in [only(|a| a.paddd(xmm0, xmm1)), only(|a| a.andn(eax, ecx, edx)), only(|a| a.nop())] {
            assert!(!needs_avx(&one), "{}", text(&one));
        }
    }
}
