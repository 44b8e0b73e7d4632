//! Which kernels there are, and what is expected of their code at each level: the one table of the assembly guard.
//!
//! A kernel that is in the executable and in no row, or in two, fails the guard; so does a row, or one of its levels,
//! that names no kernel in the executable. To add a kernel, run `verify asm`: the failure names it, its line shows the
//! number to record (per KiB), and `verify asm --show NAME` prints its loop.

use super::functions::Function;
use super::instructions::{decode, needs_avx};
use super::level::Level;
use globset::{Glob, GlobMatcher};

/// Crate whose functions are looked at.
pub const CRATE: &str = "truecast_kernel";

/// What is expected of a kernel's code at one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A loop over vectors of the level, with no more instructions for each 1024 bytes read and written than were
    /// recorded and a tolerance, if a number was recorded.
    Vector {
        /// The number that the table of `verify asm` shows.
        recorded: Option<u32>,
    },
    /// One element at a time, for this reason.
    Scalar(&'static str),
    /// Calls a function for some elements, for this reason.
    Calls(&'static str),
    /// No loop over elements, or one that is never run, for this reason: nothing is checked.
    Aside(&'static str),
    /// Not compiled for this level.
    Absent,
}

/// Kernels that share what is expected of them.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// A glob over [`Kernel::name`].
    pub kernels: &'static str,
    /// In the order of [`Level::ALL`].
    pub expected: [Expected; 3],
    /// They test floats as integers, since FTZ and DAZ change what a comparison of floats says (`docs/kernels.md §5.3`).
    pub compares_no_floats: bool,
}

impl Row {
    /// What is expected at a level.
    pub fn at(&self, level: Level) -> Expected {
        self.expected[level as usize]
    }

    /// The levels that its kernels are compiled for.
    pub fn levels(&self) -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| self.at(*level) != Expected::Absent)
    }

    /// A matcher of its kernels.
    ///
    /// # Panics
    /// If the pattern is no glob.
    pub fn matcher(&self) -> GlobMatcher {
        Glob::new(self.kernels).expect("patterns in the table are globs").compile_matcher()
    }
}

/// A function that may be a kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Path with generic arguments, without the crate. Of tasks, the task's type: the level is not part of it.
    pub name: String,
    /// The level, if its name says.
    pub level: Option<Level>,
    /// It is compiled for a level by `Level::run`, or has vector instructions that only a level allows: it must be in
    /// the table.
    pub certain: bool,
}

impl Kernel {
    /// What a function is by its name and code; `None` if it cannot be a kernel.
    pub fn of(function: &Function) -> Option<Kernel> {
        let path = function.name.replace(&format!("{CRATE}::"), "");
        for level in Level::ALL {
            let task = path.strip_prefix(level.entry()).and_then(|rest| rest.strip_prefix("::<")?.strip_suffix('>'));
            if let Some(task) = task {
                return Some(Kernel { name: task.to_owned(), level: Some(level), certain: true });
            }
        }
        let ours = function.name.trim_start_matches('<').starts_with(CRATE);
        let certain = decode(&function.code, function.address).iter().any(needs_avx);
        (ours || certain).then_some(Kernel { name: path, level: None, certain })
    }
}

/// Whether a function is where `Level::run` compiles tasks, but its name does not say which task.
pub fn lost_its_arguments(function: &Function) -> bool {
    Level::ALL.iter().any(|level| function.name == format!("{CRATE}::{}", level.entry()))
}

pub(super) const fn row(kernels: &'static str, expected: [Expected; 3]) -> Row {
    Row { kernels, expected, compares_no_floats: false }
}

const fn nonzero_test(kernels: &'static str, expected: [Expected; 3]) -> Row {
    Row { kernels, expected, compares_no_floats: true }
}

pub(super) const fn avx2(kernels: &'static str, expected: Expected) -> Row {
    row(kernels, [Expected::Absent, expected, Expected::Absent])
}

pub(super) const fn avx512(kernels: &'static str, expected: Expected) -> Row {
    row(kernels, [Expected::Absent, Expected::Absent, expected])
}

pub(super) const fn vector(recorded: u32) -> Expected {
    Expected::Vector { recorded: Some(recorded) }
}

/// A vector loop of any length.
const ANY: Expected = Expected::Vector { recorded: None };

const SSE2_64: Expected = Expected::Scalar("SSE2 has no comparison of 64-bit integers and no shift by lane");
const SSE2_SHIFTS: Expected = Expected::Scalar("SSE2 has no shift by lane (docs/kernels.md §6.3)");
const CONVERT_64: Expected = Expected::Scalar("no conversion of 64-bit integers to floats below AVX-512");
const RAISED: Expected = Expected::Calls("a row that may hold a new largest relative error is looked at apart");
const RAISES: Expected = Expected::Scalar("for the few rows that may hold a new largest relative error");
const LOAD: Expected = Expected::Scalar("a load for each element: gathers are slower (docs/kernels.md §2.3)");
const SPREAD: Expected = Expected::Scalar("spreading the bytes takes SSE2 longer than loading them one by one");
const PLANNING: Expected = Expected::Aside("256 values of one scale, when many rows are planned");
const LINES: Expected =
    Expected::Aside("what is expected of the lane is expected of `Loop`; this one gathers whole lines");
const COPY: Expected = Expected::Aside("loads and streaming stores, with nothing between them");
const TRUNC: Expected = Expected::Calls("SSE2 has no truncation: trunc, where fractions are left open");
const RARE_F64: Expected = Expected::Calls("16 elements with an f32 subnormal are converted apart");
const REGISTERS: Expected = Expected::Aside("fills registers before a loop");
const TINY_F64: Expected = Expected::Calls("8 elements with an f32 subnormal are converted apart");
const TIES: Expected = Expected::Calls("8 integers of which a nearest f32 is a midpoint of bf16 are converted apart");
const BEYOND: Expected = Expected::Calls("8 elements with a magnitude of 2^31 or more are converted apart");
const LEFT: Expected = Expected::Aside("8 elements that the loop leaves");
const CHOOSES: Expected = Expected::Aside("before a loop, which is a function of its own");
const ANY_F64: Expected = Expected::Aside("16 elements that the loop leaves");

/// The table.
#[rustfmt::skip]
pub const KERNELS: &[Row] = &[
    //                                                     baseline      AVX2          AVX-512
    row("lane::stage::streaming::Lines<*>", [LINES, LINES, LINES]),
    row("lane::stage::Loop<lane::encode::EncodeNearest<u8, *>>",  [vector(2509), Expected::Absent, Expected::Absent]),
    row("lane::stage::Loop<lane::encode::EncodeNearest<u16, *>>", [vector(2091), vector(555), vector(214)]),
    row("lane::stage::Loop<lane::encode::EncodeNearest<u32, *>>", [vector(1216), vector(416), vector(176)]),
    row("lane::stage::Loop<lane::encode::EncodeAny<u8, *>>",      [SSE2_SHIFTS, vector(2253), vector(948)]),
    row("lane::stage::Loop<lane::encode::EncodeAny<u16, *>>",     [SSE2_SHIFTS, vector(1622), vector(683)]),
    row("lane::stage::Loop<lane::encode::EncodeAny<u32, *>>",     [SSE2_SHIFTS, vector(1168), vector(512)]),
    row("lane::stage::Loop<numbers::e8m0::EncodeE8m0>",            [vector(3533), vector(948), vector(372)]),

    row("lane::stage::Loop<lane::decode::Bf16ToF32>",              [vector(619), vector(187), Expected::Absent]),
    row("lane::stage::Loop<lane::decode::F16ToF32>",               [vector(1622), Expected::Absent, Expected::Absent]),
    row("lane::stage::Loop<numbers::wide::F32ToF32>",               [vector(784), vector(184), vector(90)]),
    row("lane::stage::Loop<lane::decode::F64ToF32Odd<false>>",     [SSE2_64, vector(960), Expected::Absent]),
    row("lane::stage::Loop<lane::decode::F64ToF32Odd<true>>",      [SSE2_64, vector(640), Expected::Absent]),
    row("lane::stage::Loop<lane::decode::ClampToF32<u32, *>>",     [vector(464), vector(76), vector(38)]),
    row("lane::stage::Loop<lane::decode::ClampToF32<u64, false>>", [CONVERT_64, CONVERT_64, vector(40)]),
    row("lane::stage::Loop<lane::decode::ClampToF32<u64, true>>",  [vector(1302), vector(208), vector(51)]),
    row("lane::stage::Loop<lane::decode::IntToF32<u8, *>>",        [vector(384), vector(96), Expected::Absent]),
    row("lane::stage::Loop<lane::decode::IntToF32<u16, *>>",       [vector(278), vector(80), vector(40)]),
    row("lane::stage::Loop<lane::decode::IntToF32<u32, false>>",   [vector(336), vector(124), Expected::Absent]),
    row("lane::stage::Loop<lane::decode::IntToF32<u32, true>>",    [vector(144), vector(44), Expected::Absent]),
    row("lane::stage::Loop<lane::decode::IntToF32<u64, *>>",       [CONVERT_64, CONVERT_64, Expected::Absent]),
    row("lane::stage::Loop<lane::decode::Int32ToF32Odd<*>>",       [vector(800), vector(272), vector(94)]),
    row("lane::stage::Loop<lane::decode::Int64ToF32Odd<*>>",       [SSE2_64, vector(832), Expected::Absent]),

    row("lane::stage::Loop<numbers::wide::F32ToF64>",                    [vector(1835), vector(662), vector(256)]),
    row("lane::stage::Loop<lane::wide::F32Value>",                    [vector(150), vector(59), vector(30)]),
    row("lane::stage::Loop<lane::wide::F64ToF32Nearest>",             [vector(3158), vector(1003), vector(310)]),
    row("lane::stage::Loop<numbers::wide::F64ToF32>",                    [SSE2_64, vector(1664), vector(576)]),
    row("lane::stage::Loop<lane::wide::IntToF64<u16, *, false>>",     [vector(333), vector(96), vector(48)]),
    row("lane::stage::Loop<lane::wide::IntToF64<u16, *, true>>",      [vector(973), vector(308), vector(74)]),
    row("lane::stage::Loop<lane::wide::IntToF64<u32, false, false>>", [vector(278), vector(102), Expected::Absent]),
    row("lane::stage::Loop<lane::wide::IntToF64<u32, true, false>>",  [vector(150), vector(59), Expected::Absent]),
    row("lane::stage::Loop<lane::wide::IntToF64<u32, *, true>>",      [CONVERT_64, CONVERT_64, vector(62)]),
    row("lane::stage::Loop<lane::wide::IntToF64<u64, false, false>>", [vector(336), vector(140), Expected::Absent]),
    row("lane::stage::Loop<lane::wide::IntToF64<u64, true, false>>",  [CONVERT_64, CONVERT_64, Expected::Absent]),
    row("lane::stage::Loop<lane::wide::IntToF64<u64, *, true>>",      [SSE2_64, vector(368), vector(90)]),
    row("lane::stage::Loop<lane::wide::IntResidual<false>>",          [vector(1344), vector(400), vector(110)]),
    row("lane::stage::Loop<lane::wide::IntResidual<true>>",           [CONVERT_64, CONVERT_64, vector(134)]),

    row("lane::stage::Loop<lane::to_int::F32ToInt32<u8>>",       [vector(8039), vector(1844), vector(820)]),
    row("lane::stage::Loop<lane::to_int::F32ToInt32<u16>>",      [vector(6699), vector(1472), vector(683)]),
    row("lane::stage::Loop<lane::to_int::F32ToInt32<u32>>",      [vector(4896), vector(1056), vector(512)]),
    row("lane::stage::Loop<lane::to_int::F32ToIntTrunc<u8>>",    [vector(3226), vector(615), Expected::Absent]),
    row("lane::stage::Loop<lane::to_int::F32ToIntTrunc<u16>>",   [vector(2688), vector(470), Expected::Absent]),
    row("lane::stage::Loop<lane::to_int::F32ToIntTrunc<u32>>",   [vector(1920), vector(320), Expected::Absent]),
    row("lane::stage::Loop<lane::to_int::F32ToIntTrunc<u64>>",   [vector(2219), vector(683), Expected::Absent]),
    row("lane::stage::Loop<lane::to_int::F32ToInt64>",           [SSE2_64, vector(1984), vector(672)]),
    row("lane::stage::Loop<lane::to_int::F64ToInt<u8>>",         [SSE2_64, vector(2760), vector(840)]),
    row("lane::stage::Loop<lane::to_int::F64ToInt<u16>>",        [SSE2_64, vector(2458), vector(756)]),
    row("lane::stage::Loop<lane::to_int::F64ToInt<u32>>",        [SSE2_64, vector(2006), vector(630)]),
    row("lane::stage::Loop<lane::to_int::F64ToInt<u64>>",        [SSE2_64, vector(1472), vector(472)]),

    row("lane::stage::Loop<lane::int::IntToInt<u16, u8, *>>",  [SSE2_64, vector(960), vector(331)]),
    row("lane::stage::Loop<lane::int::IntToInt<u16, u16, *>>", [SSE2_64, vector(752), vector(248)]),
    row("lane::stage::Loop<lane::int::IntToInt<u16, u32, *>>", [SSE2_64, vector(470), vector(163)]),
    row("lane::stage::Loop<lane::int::IntToInt<u16, u64, *>>", [SSE2_64, vector(250), vector(87)]),
    row("lane::stage::Loop<lane::int::IntToInt<u32, u8, *>>",  [SSE2_64, Expected::Absent, Expected::Absent]),
    row("lane::stage::Loop<lane::int::IntToInt<u32, u16, *>>", [SSE2_64, vector(555), Expected::Absent]),
    row("lane::stage::Loop<lane::int::IntToInt<u32, u32, *>>", [SSE2_64, vector(316), vector(122)]),
    row("lane::stage::Loop<lane::int::IntToInt<u32, u64, *>>", [SSE2_64, vector(208), vector(72)]),
    row("lane::stage::Loop<lane::int::IntToInt<u64, u8, *>>",  [SSE2_64, vector(406), Expected::Absent]),
    row("lane::stage::Loop<lane::int::IntToInt<u64, u16, *>>", [SSE2_64, vector(308), Expected::Absent]),
    row("lane::stage::Loop<lane::int::IntToInt<u64, u32, *>>", [SSE2_64, vector(251), Expected::Absent]),
    row("lane::stage::Loop<lane::int::IntToInt<u64, u64, *>>", [SSE2_64, vector(156), vector(54)]),

    nonzero_test("lane::stage::Loop<lane::int::NonZero<u16>>", [vector(1067), vector(534), vector(171)]),
    nonzero_test("lane::stage::Loop<lane::int::NonZero<u32>>", [vector(1562), vector(295), Expected::Absent]),
    nonzero_test("lane::stage::Loop<lane::int::NonZero<u64>>", [vector(768), vector(242), Expected::Absent]),

    row("pack::PackBytes<1, 8>",   [vector(2916), vector(1224), vector(207)]),
    row("pack::PackBytes<2, 4>",   [vector(2637), vector(436), Expected::Absent]),
    row("pack::PackBytes<4, 2>",   [vector(2219), vector(187), Expected::Absent]),
    row("pack::UnpackBytes<1, 8>", [SPREAD, vector(626), vector(230)]),
    row("pack::UnpackBytes<2, 4>", [SPREAD, vector(173), Expected::Absent]),
    row("pack::UnpackBytes<4, 2>", [vector(320), vector(123), Expected::Absent]),

    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F32, *>, 1, 0>", vector(317)),
    avx512("x86::avx512::blocks::packed_blocks::<*, true>", ANY),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::F32, *>, 1, *, false>", vector(367)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F32, *>, 2, 0>", vector(115)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::Bf16, *>, 1, 0>", vector(539)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::Bf16, *>, 1, *, false>", vector(672)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::Bf16, *>, 2, 0>", vector(164)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F16, *>, 1, 0>", vector(539)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::F16, *>, 1, *, false>", vector(672)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F16, *>, 2, 0>", vector(180)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I16, *>, 1, 0>", vector(326)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::I16, *>, 1, *, false>", vector(394)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I16, *>, 2, 0>", vector(132)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U16, *>, 1, 0>", vector(299)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::U16, *>, 1, *, false>", vector(368)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U16, *>, 2, 0>", vector(132)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F64, *>, 2, 0>", RARE_F64),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F64Reduced, *>, 1, 0>", vector(255)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::F64Reduced, *>, 1, *, false>", vector(279)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F64Reduced, *>, 2, 0>", vector(120)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I32Clamped, *>, 1, 0>", vector(215)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::I32Clamped, *>, 1, *, false>", vector(246)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I32Clamped, *>, 2, 0>", vector(62)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U32Clamped, *>, 1, 0>", vector(189)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::U32Clamped, *>, 1, *, false>", vector(216)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U32Clamped, *>, 2, 0>", vector(51)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I32Odd, *>, 2, 0>", vector(147)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U32Odd, *>, 2, 0>", vector(147)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I64Clamped, *>, 1, 0>", vector(148)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::I64Clamped, *>, 1, *, false>", vector(163)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I64Clamped, *>, 2, 0>", vector(56)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U64Clamped, *>, 1, 0>", vector(127)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::fused::Converts<x86::source::U64Clamped, *>, 1, *, false>", vector(141)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U64Clamped, *>, 2, 0>", vector(44)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::I64Odd, *>, 2, 0>", vector(140)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::U64Odd, *>, 2, 0>", vector(140)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F32, 1, *>, 1, 0>", vector(77)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::integer::Splat<x86::source::F32, 1, *>, 1, *, false>", vector(114)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F32, 2, *>, 2, 0>", vector(499)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F32, 4, *>, 4, 0>", vector(380)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F32, 8, *>, 8, 0>", vector(227)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::Bf16, 1, *>, 1, 0>", vector(150)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::integer::Splat<x86::source::Bf16, 1, *>, 1, *, false>", vector(221)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::Bf16, 2, *>, 2, 0>", vector(124)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::Bf16, 4, *>, 4, 0>", vector(512)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::Bf16, 8, *>, 8, 0>", vector(288)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F16, 1, *>, 1, 0>", vector(150)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::integer::Splat<x86::source::F16, 1, *>, 1, *, false>", vector(221)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F16, 2, *>, 2, 0>", vector(124)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F16, 4, *>, 4, 0>", vector(512)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F16, 8, *>, 8, 0>", vector(288)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F64, 1, *>, 1, 0>", vector(79)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::integer::Splat<x86::source::F64, 1, *>, 1, *, false>", vector(121)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F64, 2, *>, 2, 0>", vector(268)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F64, 4, *>, 4, 0>", vector(224)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::integer::Splat<x86::source::F64, 8, *>, 8, 0>", vector(173)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<4, false, *>, 1, 0>", vector(29)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::narrow::Splat<4, false, *>, 1, *, false>", vector(53)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<4, false, *>, 2, 0>", vector(30)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<4, true, *>, 1, 0>", vector(64)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::narrow::Splat<4, true, *>, 1, *, false>", vector(86)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<4, true, *>, 2, 0>", vector(56)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<8, false, *>, 1, 0>", vector(29)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::narrow::Splat<8, false, *>, 1, *, false>", vector(50)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<8, false, *>, 2, 0>", vector(28)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<8, false, *>, 4, 0>", vector(26)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<8, true, *>, 1, 0>", vector(50)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::narrow::Splat<8, true, *>, 1, *, false>", vector(90)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<8, true, *>, 2, 0>", vector(47)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::Splat<8, true, *>, 4, 0>", vector(52)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::NonZeroBits<4>, 1, 0>", vector(42)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::narrow::NonZeroBits<8>, 1, 0>", vector(84)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<1, *, 2>, 1, 0>", vector(116)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::table::Tables<1, *, 2>, 1, *, false>", vector(448)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<1, *, 4>, 1, 0>", vector(96)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::table::Tables<1, *, 4>, 1, *, false>", vector(299)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<1, *, 6>, 1, 0>", vector(119)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::table::Tables<1, *, 6>, 1, *, false>", vector(272)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<1, *, 8>, 1, 0>", vector(80)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::table::Tables<1, *, 8>, 1, *, false>", vector(192)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<2, *, 2>, 2, 0>", vector(107)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<2, *, 4>, 2, 0>", vector(96)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<2, *, 6>, 2, 0>", vector(111)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<2, *, 8>, 2, 0>", vector(102)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<4, *, 2>, 4, 0>", vector(98)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<4, *, 4>, 4, 0>", vector(89)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<4, *, 6>, 4, 0>", vector(98)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<4, *, 8>, 4, 0>", vector(119)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<8, *, 2>, 8, 0>", vector(97)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<8, *, 4>, 8, 0>", vector(95)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<8, *, 6>, 8, 0>", vector(97)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::table::Tables<8, *, 8>, 8, 0>", vector(139)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::split::Tables<false>, 1, 0>", vector(176)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::split::Tables<false>, 1, *, false>", vector(264)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::split::Tables<true>, 1, 0>", vector(155)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::split::Tables<true>, 1, *, false>", vector(235)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::split::OfF32, 1, 0>", vector(138)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::split::OfF32, 1, *, false>", vector(192)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::codes::Codes<[246]>, 1, 0>", vector(119)),
    avx512("x86::avx512::blocks::packed_blocks::<x86::avx512::codes::Codes<8>, 1, *, false>", vector(90)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::Bf16, *>, 4, 0>", vector(78)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::F16, *>, 4, 0>", vector(78)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::F64, *>, 4, 0>", vector(140)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::I32, *>, 4, 0>", vector(30)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::U32, *>, 4, 0>", vector(30)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::I64, *>, 4, 0>", vector(36)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::U64, *>, 4, 0>", vector(36)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::F32, *>, 8, 0>", vector(162)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::I32, *>, 8, 0>", vector(31)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::U32, *>, 8, 0>", vector(31)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::I64, *>, 8, 0>", vector(27)),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::convert::ToFloat<x86::source::U64, *>, 8, 0>", vector(27)),
    // Streaming stores are asm to the compiler, whose addresses the guard does not follow: their loops are not measured.
    avx512("x86::avx512::blocks::blocks::<x86::avx512::{convert,integer,narrow,split,table}::*, 1>", ANY),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::{F32,[!F]*,F64R*,F16}, *, 1>", ANY),
    avx512("x86::avx512::blocks::blocks::<x86::avx512::fused::Converts<x86::source::F64, *, 1>", RARE_F64),
    avx512("<x86::avx512::* as x86::avx512::blocks::Params<*>>::kernel", REGISTERS),
    avx512("<x86::avx512::split::{Tables<*>,OfF32}>::new", REGISTERS),
    avx512("<x86::avx512::table::Tables<*>>::new", REGISTERS),
    avx512("x86::avx512::load::any_f64", ANY_F64),
    avx2("x86::avx2::bytes::clamp::<*, 4, *>", vector(192)),
    avx2("x86::avx2::bytes::clamp::<*, 8, *>", vector(128)),
    avx2("x86::avx2::bytes::truncate::<4, *>", vector(164)),
    avx2("x86::avx2::bytes::truncate::<8, *>", vector(103)),
    avx2("x86::avx2::bytes::wrap::<4, *>", vector(115)),
    avx2("x86::avx2::bytes::wrap::<8, *>", vector(75)),
    avx2("x86::avx2::fused::{shorts,words}_by::<*>",          CHOOSES),
    avx2("x86::avx2::fused::words::<*, true>",                 ANY),
    avx2("x86::avx2::fused::shorts::<*, true>",                ANY),
    avx2("x86::avx2::half::decode::<*, true>",                 ANY),
    avx2("x86::avx2::fused::words::<x86::source::F32, *, {16,32}, *, false>", vector(462)),
    avx2("x86::avx2::fused::words::<x86::source::F32, *, 255, *, false>", vector(608)),
    avx2("x86::avx2::fused::words::<x86::source::I16, *, false>",  vector(715)),
    avx2("x86::avx2::fused::words::<x86::source::U16, *, false>",  vector(662)),
    avx2("x86::avx2::fused::words::<x86::source::F64Reduced, *, {16,32}, *, false>", vector(530)),
    avx2("x86::avx2::fused::words::<x86::source::F64Reduced, *, 255, *, false>", vector(630)),
    avx2("x86::avx2::fused::words::<x86::source::I32Clamped, *, false>",  vector(474)),
    avx2("x86::avx2::fused::words::<x86::source::U32Clamped, *, false>",  vector(404)),
    avx2("x86::avx2::fused::words::<x86::source::I64Clamped, *, false>", vector(416)),
    avx2("x86::avx2::fused::shorts::<x86::source::Bf16, *, {16,32}, *, false>", vector(687)),
    avx2("x86::avx2::fused::shorts::<x86::source::Bf16, *, 255, *, false>", vector(794)),
    avx2("x86::avx2::fused::shorts::<x86::source::F16, *, {0,16,17,32}, *, false>", vector(716)),
    avx2("x86::avx2::fused::shorts::<x86::source::F16, *, 255, *, false>", vector(871)),
    avx2("x86::avx2::fused::to_16::<x86::source::F32, *>", vector(272)),
    avx2("x86::avx2::fused::to_16::<x86::source::Bf16, *>", vector(432)),
    avx2("x86::avx2::fused::to_16::<x86::source::F16, *>", vector(400)),
    avx2("x86::avx2::fused::to_16::<x86::source::I16, *>", vector(304)),
    avx2("x86::avx2::fused::to_16::<x86::source::U16, *>", vector(304)),
    avx2("x86::avx2::fused::to_16::<x86::source::F64, *>", TINY_F64),
    avx2("x86::avx2::fused::to_16::<x86::source::F64Reduced, *>", vector(340)),
    avx2("x86::avx2::fused::to_16::<x86::source::I32Clamped, *, false>", vector(102)),
    avx2("x86::avx2::fused::to_16::<x86::source::I32Clamped, *, true>", vector(134)),
    avx2("x86::avx2::fused::to_16::<x86::source::U32Clamped, *, false>", vector(80)),
    avx2("x86::avx2::fused::to_16::<x86::source::U32Clamped, *, true>", vector(112)),
    avx2("x86::avx2::fused::to_16::<x86::source::I32Odd, *>", TIES),
    avx2("x86::avx2::fused::to_16::<x86::source::U32Odd, *>", vector(422)),
    avx2("x86::avx2::fused::to_16::<x86::source::I64Clamped, *>", vector(247)),
    avx2("x86::avx2::fused::to_16::<x86::source::I64Odd, *>", TIES),
    avx2("x86::avx2::load::any_*",                        LEFT),
    avx2("x86::avx2::i64::any",                            LEFT),
    avx2("x86::avx2::i64::truncate::<*>",              BEYOND),
    avx2("x86::avx2::i64::unsigned::<*>",              vector(363)),
    avx2("x86::avx2::f64::from_f32::<*>",       vector(502)),
    avx2("x86::avx2::f64::to_f32::<*>",         vector(416)),
    avx2("x86::avx2::pack6::pack",                 ANY),
    avx2("x86::avx2::pack6::unpack",               ANY),
    avx2("x86::avx2::rows::run::<*>",                         ANY),
    avx512("x86::avx512::f64::to_f32_odd::<x86::source::{I,U}64Odd>", vector(107)),
    avx512("x86::avx512::f64::to_f32_odd::<x86::source::F64*>", vector(374)),
    avx2("x86::avx2::half::decode::<false, false>",     vector(160)),
    avx2("x86::avx2::half::decode::<true, false>",      vector(64)),
    avx512("x86::stream::copy_lines_avx512::copy",      COPY),

    row("table::Lookup<*>",                             [LOAD, LOAD, Expected::Absent]),
    row("<table::Table16<*> as stage::Stage>::run",     [LOAD, Expected::Absent, Expected::Absent]),

    // TOSA's RESCALE: input, output, mode (0 one rounding, 1 two, 2 16-bit multipliers with tests, 3 in 32 bits).
    row("rescale::arithmetic::OneScale<u8, u8, 1>",         [vector(11840), vector(3072), vector(1072)]),
    row("rescale::arithmetic::OneScale<u8, u8, 3>",         [vector(4864), vector(1280), vector(440)]),
    row("rescale::arithmetic::OneScale<u8, u8, [02]>",      [vector(8704), vector(2368), vector(880)]),
    row("rescale::arithmetic::OneScale<u8, u16, 1>",        [vector(7595), vector(1931), vector(715)]),
    row("rescale::arithmetic::OneScale<u8, u16, 3>",        [vector(3115), vector(704), vector(294)]),
    row("rescale::arithmetic::OneScale<u8, u16, [02]>",     [vector(5718), vector(1451), vector(587)]),
    row("rescale::arithmetic::OneScale<u8, u32, 1>",        [vector(4557), vector(1114), vector(429)]),
    row("rescale::arithmetic::OneScale<u8, u32, 3>",        [vector(1716), vector(372), vector(176)]),
    row("rescale::arithmetic::OneScale<u8, u32, [02]>",     [vector(3277), vector(820), vector(352)]),
    row("rescale::arithmetic::OneScale<u16, u8, 1>",        [vector(7808), vector(2048), vector(715)]),
    row("rescale::arithmetic::OneScale<u16, u8, [02]>",     [vector(5718), vector(1579), vector(587)]),
    row("rescale::arithmetic::OneScale<u16, u16, 1>",       [vector(5632), vector(1448), vector(536)]),
    row("rescale::arithmetic::OneScale<u16, u16, [02]>",    [vector(4224), vector(1088), vector(440)]),
    row("rescale::arithmetic::OneScale<u16, u32, 1>",       [vector(3755), vector(928), vector(358)]),
    row("rescale::arithmetic::OneScale<u16, u32, [02]>",    [vector(2688), vector(683), vector(294)]),
    row("rescale::arithmetic::OneScale<u32, u8, 1>",        [vector(4583), vector(1204), vector(416)]),
    row("rescale::arithmetic::OneScale<u32, u8, [02]>",     [vector(4096), vector(1280), vector(468)]),
    row("rescale::arithmetic::OneScale<u32, u16, 1>",       [vector(3712), vector(944), vector(347)]),
    row("rescale::arithmetic::OneScale<u32, u16, [02]>",    [vector(3371), vector(1024), vector(390)]),
    row("rescale::arithmetic::OneScale<u32, u32, 1>",       [vector(2752), vector(676), vector(260)]),
    row("rescale::arithmetic::OneScale<u32, u32, [02]>",    [vector(2432), vector(736), vector(292)]),
    row("rescale::arithmetic::OneScale<u64, u8, 0>",        [SSE2_64, vector(612), vector(168)]),
    row("rescale::arithmetic::OneScale<u64, u16, 0>",       [SSE2_64, vector(564), vector(151)]),
    row("rescale::arithmetic::OneScale<u64, u32, 0>",       [vector(1302), vector(427), vector(126)]),
    row("rescale::arithmetic::OneScale<u64, u8, 2>",        [SSE2_64, vector(968), vector(317)]),
    row("rescale::arithmetic::OneScale<u64, u16, 2>",       [vector(2253), vector(871), vector(285)]),
    row("rescale::arithmetic::OneScale<u64, u32, 2>",       [vector(1920), vector(715), vector(238)]),
    row("rescale::arithmetic::ManyScales<u8, u8, 1>",       [vector(4506), vector(1101), vector(336)]),
    row("rescale::arithmetic::ManyScales<u8, u8, 3>",       [vector(2112), vector(404), vector(170)]),
    row("rescale::arithmetic::ManyScales<u8, u8, [02]>",    [vector(4020), vector(615), vector(272)]),
    row("rescale::arithmetic::ManyScales<u8, u16, 1>",      [vector(4003), vector(1001), vector(306)]),
    row("rescale::arithmetic::ManyScales<u8, u16, 3>",      [vector(1874), vector(332), vector(155)]),
    row("rescale::arithmetic::ManyScales<u8, u16, [02]>",   [vector(3584), vector(536), vector(248)]),
    row("rescale::arithmetic::ManyScales<u8, u32, 1>",      [vector(3309), vector(808), vector(259)]),
    row("rescale::arithmetic::ManyScales<u8, u32, 3>",      [vector(1527), vector(261), vector(131)]),
    row("rescale::arithmetic::ManyScales<u8, u32, [02]>",   [vector(2994), vector(434), vector(210)]),
    row("rescale::arithmetic::ManyScales<u16, u8, 1>",      [vector(4096), vector(1001), vector(306)]),
    row("rescale::arithmetic::ManyScales<u16, u8, [02]>",   [vector(3654), vector(559), vector(248)]),
    row("rescale::arithmetic::ManyScales<u16, u16, 1>",     [vector(3734), vector(918), vector(280)]),
    row("rescale::arithmetic::ManyScales<u16, u16, [02]>",  [vector(3286), vector(491), vector(227)]),
    row("rescale::arithmetic::ManyScales<u16, u32, 1>",     [vector(3036), vector(750), vector(240)]),
    row("rescale::arithmetic::ManyScales<u16, u32, [02]>",  [vector(2762), vector(403), vector(195)]),
    row("rescale::arithmetic::ManyScales<u32, u8, 1>",      [vector(3427), vector(837), vector(254)]),
    row("rescale::arithmetic::ManyScales<u32, u8, [02]>",   [vector(3092), vector(660), vector(249)]),
    row("rescale::arithmetic::ManyScales<u32, u16, 1>",     [vector(3164), vector(787), vector(236)]),
    row("rescale::arithmetic::ManyScales<u32, u16, [02]>",  [vector(2835), vector(650), vector(231)]),
    row("rescale::arithmetic::ManyScales<u32, u32, 1>",     [vector(2624), vector(648), vector(206)]),
    row("rescale::arithmetic::ManyScales<u32, u32, [02]>",  [vector(2464), vector(584), vector(202)]),
    row("rescale::arithmetic::ManyScales<u64, u8, 0>",      [SSE2_64, vector(528), vector(155)]),
    row("rescale::arithmetic::ManyScales<u64, u16, 0>",     [SSE2_64, vector(498), vector(146)]),
    row("rescale::arithmetic::ManyScales<u64, u32, 0>",     [SSE2_64, vector(378), vector(132)]),
    row("rescale::arithmetic::ManyScales<u64, u8, 2>",      [SSE2_64, vector(716), vector(215)]),
    row("rescale::arithmetic::ManyScales<u64, u16, 2>",     [SSE2_64, vector(704), vector(203)]),
    row("rescale::arithmetic::ManyScales<u64, u32, 2>",     [SSE2_64, vector(615), vector(183)]),
    row("rescale::requirement::FailsR3<u8>",                [vector(1818), vector(250), vector(125)]),
    row("rescale::requirement::FailsR3<u16>",               [vector(1472), vector(208), vector(104)]),
    row("rescale::requirement::FailsR3<u32>",               [vector(1040), vector(140), vector(70)]),
    row("rescale::AnyWide",                                 [vector(608), vector(184), vector(92)]),
    row("rescale::results::CountOutside",                   [vector(900), vector(559), vector(450)]),
    row("rescale::shortened::SameResults",                  [PLANNING, PLANNING, PLANNING]),

    row("measure::sums::Add<*>",                        [RAISED, RAISED, RAISED]),
    row("measure::sums::AddValues<*>",                  [ANY, ANY, Expected::Absent]),
    row("measure::sums::Find<*>",                       [ANY, ANY, ANY]),
    avx512("x86::avx512::measure::pair_rows::<*>",              RAISED),
    avx512("x86::avx512::measure::raised::<*>",                 RAISES),
    avx512("x86::avx512::measure::details::small_rows::<*>",    ANY),
    avx512("x86::avx512::measure::details::special_rows::<*>",  ANY),
    avx512("x86::avx512::measure::value_rows::<*>",             ANY),
    row("measure::details::SmallResults<*>",            [ANY, ANY, Expected::Absent]),
    row("measure::details::Specials<*>",                [ANY, ANY, Expected::Absent]),
    row("measure::details::Undefined<*>",               [TRUNC, ANY, ANY]),
    row("measure::details::Zeros<*>",                   [ANY, ANY, Expected::Absent]),
];

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::asm::loops::tests::assembled;
    use iced_x86::IcedError;
    use iced_x86::code_asm::CodeAssembler;

    /// A task at every level, and a hand-written kernel.
    pub const ROWS: &[Row] = &[
        row("stage::Loop<Copy>", [vector(144), vector(56), vector(28)]),
        row("x86::copy*", [Expected::Absent, Expected::Absent, vector(28)]),
    ];

    /// Functions of those names, each a loop written for its level.
    pub fn copying(write: fn(&mut CodeAssembler, Level) -> Result<(), IcedError>) -> Vec<Function> {
        let task = |level: Level| (format!("{CRATE}::{}::<{CRATE}::stage::Loop<{CRATE}::Copy>>", level.entry()), level);
        let names = Level::ALL.map(task).into_iter().chain([(format!("{CRATE}::x86::copy::<u8>"), Level::Avx512)]);
        names.map(|(name, level)| Function { name, address: 0x1000, code: assembled(|a| write(a, level)) }).collect()
    }

    #[test]
    fn a_task_is_named_without_its_level() {
        let functions = copying(crate::asm::loops::tests::VECTOR_COPY);
        let kernels: Vec<Kernel> = functions.iter().map(|function| Kernel::of(function).unwrap()).collect();
        for (kernel, level) in kernels.iter().zip(Level::ALL) {
            assert_eq!((kernel.name.as_str(), kernel.level), ("stage::Loop<Copy>", Some(level)));
        }
        assert_eq!((kernels[3].name.as_str(), kernels[3].level), ("x86::copy::<u8>", None));
    }

    #[test]
    fn functions_of_others_are_no_kernels() {
        let name = "core::ptr::drop_in_place::<truecast_kernel::stage::Pipeline>".into();
        assert!(Kernel::of(&Function { name, address: 0, code: vec![0xc3] }).is_none());
    }

    #[test]
    fn levels_are_those_of_the_engine() {
        for level in truecast_kernel::Level::available() {
            assert!(Level::ALL.iter().any(|own| own.name() == level.name()));
        }
    }

    #[test]
    fn patterns_are_globs_and_no_two_are_equal() {
        for (i, row) in KERNELS.iter().enumerate() {
            row.matcher();
            assert!(KERNELS[..i].iter().all(|other| other.kernels != row.kernels), "{}", row.kernels);
        }
    }
}
