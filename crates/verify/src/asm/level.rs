//! Levels for which machine code is compiled.

use iced_x86::{EncodingKind, Instruction};

/// Level for which code is compiled. `truecast_kernel::Level` also proves that this CPU has the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The target's guaranteed features.
    Baseline,
    /// Has the features of `truecast_kernel::Level::Avx2`.
    Avx2,
    /// Has the features of `truecast_kernel::Level::Avx512`.
    Avx512,
}

impl Level {
    /// All levels, weakest first.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    pub const fn name(self) -> &'static str {
        ["baseline", "avx2", "avx512"][self as usize]
    }

    /// Width of the vector registers in bits.
    pub const fn vector_bits(self) -> u32 {
        [128, 256, 512][self as usize]
    }

    /// Level that code with AVX instructions needs.
    pub fn of_code(code: &[Instruction]) -> Level {
        let evex = |one: &Instruction| one.op_code().encoding() == EncodingKind::EVEX;
        if code.iter().any(evex) { Level::Avx512 } else { Level::Avx2 }
    }

    /// Path in the crate of the function that compiles tasks for the level.
    pub(super) const fn entry(self) -> &'static str {
        ["level::baseline", "level::x86::avx2", "level::x86::avx512"][self as usize]
    }
}
