//! Rules for the machine code of a kernel (`docs/kernels.md §12`).

use super::instructions::{
    compares_floats, flushes_subnormals, is_call, is_gather, is_packed, is_scalar_float, is_scalar_float_to_int, text,
    vector_bits,
};
use super::kernels::{Expected, FloatTests};
use super::level::Level;
use super::loops::{Loop, hot};
use iced_x86::{Instruction, Mnemonic};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The table has no row for the kernel.
    Unlisted,
    /// The kernel has no loop; its work is done elsewhere.
    NoLoop,
    /// No instruction of the hot loop uses vectors of the level.
    NotVector {
        /// Width of the level's registers in bits.
        bits: u32,
        /// Address of the loop's first instruction.
        head: u64,
    },
    /// The hot loop computes or converts single floats, but should process several at once.
    ScalarFloat(Instruction),
    /// The hot loop converts single floats to integers.
    ScalarFloatToInt(Instruction),
    /// A loop has a call.
    Call(Instruction),
    /// A loop has a gather or scatter.
    Gather(Instruction),
    /// Floats are compared, but should be tested as integers.
    FloatComparison(Instruction),
    /// The code has the conversion to bf16 that treats subnormals as zero.
    Flushes(Instruction),
    /// The hot loop has more instructions than recorded.
    Longer {
        /// Instructions per 1024 array bytes.
        per_kib: u32,
        /// Largest allowed number of instructions.
        allowed: u32,
    },
    /// The hot loop accesses no array, so its work per byte is unknown.
    MovesNothing {
        /// Address of the loop's first instruction.
        head: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unlisted => f.write_str("in no row of the table for this level (crates/verify/src/asm/kernels.txt)"),
            Fault::NoLoop => f.write_str("no loop"),
            Fault::NotVector { bits, head } => {
                let register = match bits {
                    512 => "zmm",
                    256 => "ymm",
                    _ => "xmm",
                };
                write!(f, "no packed operation on {register} registers in the hot loop at {head:#x}")
            }
            Fault::ScalarFloat(instruction) => {
                write!(f, "one float at a time in the hot loop: {}", text(instruction))
            }
            Fault::ScalarFloatToInt(instruction) => {
                write!(f, "one float at a time made an integer: {}", text(instruction))
            }
            Fault::Call(instruction) => write!(f, "a call in a loop: {}", text(instruction)),
            Fault::Gather(instruction) => write!(f, "a gather in a loop: {}", text(instruction)),
            Fault::FloatComparison(instruction) => {
                write!(f, "floats compared, which FTZ and DAZ change: {}", text(instruction))
            }
            Fault::Flushes(instruction) => write!(f, "takes subnormals for zero: {}", text(instruction)),
            Fault::Longer { per_kib, allowed } => {
                write!(f, "{per_kib} instructions for 1024 bytes, at most {allowed} allowed")
            }
            Fault::MovesNothing { head } => write!(f, "the hot loop at {head:#x} touches no array"),
        }
    }
}

/// Instructions per 1024 array bytes read or written, rounded up; does not depend on unrolling. `nop` is not counted.
/// `None` if the loop accesses no array.
pub fn per_kib(kernel_loop: &Loop) -> Option<u32> {
    let bytes = kernel_loop.moved();
    let n = kernel_loop.instructions.iter().filter(|instruction| instruction.mnemonic() != Mnemonic::Nop).count();
    (bytes > 0).then(|| (n * 1024).div_ceil(bytes) as u32)
}

/// Tolerance for a recorded number of instructions, in percent.
const TOLERANCE: u32 = 25;

/// Largest allowed number of instructions for a recorded number.
pub fn allowed(recorded: u32) -> u32 {
    recorded + recorded * TOLERANCE / 100
}

/// All broken rules of a kernel.
pub fn faults(
    code: &[Instruction],
    loops: &[Loop],
    level: Level,
    expected: Expected,
    float_tests: FloatTests,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let in_loops = || loops.iter().flat_map(|kernel_loop| &kernel_loop.instructions);
    faults.extend(first_breaking(code, flushes_subnormals).map(Fault::Flushes));
    if float_tests == FloatTests::AsIntegers {
        faults.extend(first_breaking(code, compares_floats).map(Fault::FloatComparison));
    }
    let calls = |instruction: &Instruction| is_call(instruction) && !matches!(expected, Expected::Calls(_));
    faults.extend(first_breaking(in_loops(), calls).map(Fault::Call));
    faults.extend(first_breaking(in_loops(), is_gather).map(Fault::Gather));
    let Some(hot) = hot(loops) else {
        faults.push(Fault::NoLoop);
        return faults;
    };
    faults.extend(first_breaking(&hot.instructions, is_scalar_float_to_int).map(Fault::ScalarFloatToInt));
    if let Expected::Vector { recorded } = expected {
        let is_another =
            |instruction: &Instruction| is_scalar_float(instruction) && !is_scalar_float_to_int(instruction);
        faults.extend(first_breaking(&hot.instructions, is_another).map(Fault::ScalarFloat));
        let bits = level.vector_bits();
        let is_full_vector = |instruction: &Instruction| is_packed(instruction) && vector_bits(instruction) >= bits;
        if !hot.instructions.iter().any(is_full_vector) {
            faults.push(Fault::NotVector { bits, head: hot.head });
        }
        match (recorded.map(allowed), per_kib(hot)) {
            (_, None) => faults.push(Fault::MovesNothing { head: hot.head }),
            (Some(allowed), Some(per_kib)) if per_kib > allowed => faults.push(Fault::Longer { per_kib, allowed }),
            _ => {}
        }
    }
    faults
}

fn first_breaking<'a>(
    code: impl IntoIterator<Item = &'a Instruction>,
    breaks_rule: impl Fn(&Instruction) -> bool,
) -> Option<Instruction> {
    code.into_iter().find(|instruction| breaks_rule(instruction)).copied()
}

#[cfg(test)]
mod tests {
    use super::FloatTests::{Allowed, AsIntegers};
    use super::*;
    use crate::asm::instructions::decode;
    use crate::asm::loops::loops;
    use crate::asm::loops::tests::{SCALAR_COPY, VECTOR_COPY, assembled};
    use iced_x86::IcedError;
    use iced_x86::code_asm::*;

    const ANY: Expected = Expected::Vector { recorded: None };

    fn found(level: Level, expected: Expected, float_tests: FloatTests, code: Vec<u8>) -> Vec<Fault> {
        let code = decode(&code, 0x1000);
        faults(&code, &loops(&code), level, expected, float_tests)
    }

    /// A loop over 32-byte vectors at AVX2, with additional instructions.
    fn with(expected: Expected, more: fn(&mut CodeAssembler) -> Result<(), IcedError>) -> Vec<Fault> {
        let code = assembled(|a| {
            let mut head = a.create_label();
            a.set_label(&mut head)?;
            a.vpaddd(ymm0, ymm1, ymmword_ptr(rdi + rax * 4))?;
            more(a)?;
            a.vmovdqu(ymmword_ptr(rsi + rax * 4), ymm0)?;
            a.add(rax, 8)?;
            a.jne(head)?;
            a.ret()
        });
        found(Level::Avx2, expected, Allowed, code)
    }

    #[test]
    fn a_vector_loop_passes_at_its_level_and_below() {
        for level in Level::ALL {
            let code = assembled(|a| VECTOR_COPY(a, level));
            for below in Level::ALL.into_iter().filter(|below| *below <= level) {
                assert_eq!(found(below, ANY, AsIntegers, code.clone()), []);
            }
        }
    }

    #[test]
    fn vectors_of_a_lower_level_fail() {
        let code = assembled(|a| VECTOR_COPY(a, Level::Avx2));
        assert_eq!(found(Level::Avx512, ANY, Allowed, code), [Fault::NotVector { bits: 512, head: 0x1000 }]);
    }

    #[test]
    fn a_scalarized_loop_fails_where_vectors_are_expected() {
        for level in Level::ALL {
            let code = assembled(|a| SCALAR_COPY(a, level));
            let bits = level.vector_bits();
            assert_eq!(found(level, ANY, Allowed, code.clone()), [Fault::NotVector { bits, head: 0x1000 }]);
            assert_eq!(found(level, Expected::Scalar(""), Allowed, code), []);
        }
    }

    #[test]
    fn floats_taken_out_of_vectors_one_by_one_fail() {
        let faults = with(ANY, |a| a.vcvttss2si(r9d, xmm0));
        assert!(matches!(faults[..], [Fault::ScalarFloatToInt(one)] if one.ip() == 0x1005), "{faults:?}");
        let faults = with(Expected::Scalar(""), |a| a.vcvttsd2si(r9, xmm0));
        assert!(matches!(faults[..], [Fault::ScalarFloatToInt(_)]), "{faults:?}");
        let faults = with(ANY, |a| a.vaddss(xmm0, xmm0, xmm1));
        assert!(matches!(faults[..], [Fault::ScalarFloat(_)]), "{faults:?}");
    }

    #[test]
    fn a_conversion_in_the_loop_over_the_rest_passes() {
        let code = assembled(|a| {
            let (mut vectors, mut rest) = (a.create_label(), a.create_label());
            a.set_label(&mut vectors)?;
            a.vcvttps2dq(ymm0, ymmword_ptr(rdi + rax * 4))?;
            a.vmovdqu(ymmword_ptr(rsi + rax * 4), ymm0)?;
            a.add(rax, 8)?;
            a.jne(vectors)?;
            a.set_label(&mut rest)?;
            a.vcvttss2si(ecx, dword_ptr(rdi + rax * 4))?;
            a.mov(dword_ptr(rsi + rax * 4), ecx)?;
            a.inc(rax)?;
            a.jne(rest)?;
            a.ret()
        });
        assert_eq!(found(Level::Avx2, ANY, Allowed, code), []);
    }

    #[test]
    fn a_call_in_any_loop_fails_unless_it_is_known() {
        let call = |a: &mut CodeAssembler| a.call(qword_ptr(rbx));
        for expected in [ANY, Expected::Scalar("")] {
            let faults = with(expected, call);
            assert!(matches!(faults[..], [Fault::Call(_)]), "{faults:?}");
        }
        assert_eq!(with(Expected::Calls(""), call), []);
        let before = assembled(|a| {
            a.call(rax)?;
            VECTOR_COPY(a, Level::Avx2)
        });
        assert_eq!(found(Level::Avx2, ANY, Allowed, before), [], "a call outside of loops");
    }

    #[test]
    fn a_gather_fails() {
        for expected in [ANY, Expected::Scalar("")] {
            let faults = with(expected, |a| a.vpgatherdd(zmm2.k1(), dword_ptr(r8 + zmm0 * 4)));
            assert!(matches!(faults[..], [Fault::Gather(_)]), "{faults:?}");
        }
    }

    #[test]
    fn the_flushing_conversion_fails_anywhere() {
        let code = assembled(|a| {
            a.vcvtneps2bf16(ymm0, zmm0)?;
            VECTOR_COPY(a, Level::Avx512)
        });
        let faults = found(Level::Avx512, ANY, Allowed, code);
        assert!(matches!(faults[..], [Fault::Flushes(_)]), "{faults:?}");
    }

    #[test]
    fn comparisons_of_floats_fail_where_floats_are_tested_as_integers() {
        let code = assembled(|a| {
            a.vcmpneqps(k1, zmm0, zmm1)?;
            VECTOR_COPY(a, Level::Avx512)
        });
        assert_eq!(found(Level::Avx512, ANY, Allowed, code.clone()), []);
        let faults = found(Level::Avx512, ANY, AsIntegers, code);
        assert!(matches!(faults[..], [Fault::FloatComparison(_)]), "{faults:?}");
    }

    #[test]
    fn a_loop_may_grow_by_a_quarter_of_what_was_recorded() {
        // Five instructions and a `nop` per 64 bytes: 80 per 1024.
        let growing = |recorded| {
            with(Expected::Vector { recorded: Some(recorded) }, |a| {
                a.lea(rcx, rdx + 64)?;
                a.nop()
            })
        };
        assert_eq!(growing(64), []);
        assert_eq!(growing(63), [Fault::Longer { per_kib: 80, allowed: 78 }]);
    }

    #[test]
    fn unrolling_does_not_make_a_loop_longer() {
        let code = decode(&assembled(|a| VECTOR_COPY(a, Level::Avx2)), 0x1000);
        let all = loops(&code);
        assert_eq!(per_kib(&all[0]), Some(7 * 1024 / 128));
    }

    #[test]
    fn no_loop_fails() {
        for expected in [ANY, Expected::Scalar("")] {
            assert_eq!(found(Level::Avx2, expected, Allowed, vec![0xc3]), [Fault::NoLoop]);
        }
    }
}
