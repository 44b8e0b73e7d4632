//! The levels that machine code is compiled for.

use iced_x86::{EncodingKind, Instruction};

/// Level that code is compiled for. Unlike `truecast_kernel::Level`, it needs no proof that this CPU has the level,
/// because the code is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The target's guaranteed features.
    Baseline,
    /// As `truecast_kernel::Level::Avx2`.
    Avx2,
    /// As `truecast_kernel::Level::Avx512`.
    Avx512,
}

impl Level {
    /// All levels, weakest first.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        ["baseline", "avx2", "avx512"][self as usize]
    }

    /// Returns the bits of the level's vector registers.
    pub const fn vector_bits(self) -> u32 {
        [128, 256, 512][self as usize]
    }

    /// Returns the level that code with AVX instructions needs.
    pub fn of_code(code: &[Instruction]) -> Level {
        let evex = |one: &Instruction| one.op_code().encoding() == EncodingKind::EVEX;
        if code.iter().any(evex) { Level::Avx512 } else { Level::Avx2 }
    }

    /// Returns the function that compiles a task for the level, as a path in the crate.
    pub(super) const fn entry(self) -> &'static str {
        ["level::baseline", "level::x86::avx2", "level::x86::avx512"][self as usize]
    }
}
