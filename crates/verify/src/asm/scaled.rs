//! Loops over scaled elements, and what is expected of their code: part of the table of the assembly guard.

use super::kernels::{Expected, Row, avx2, avx512, row, vector};

const STRIDES: Expected =
    Expected::Aside("eight lines in and eight out, a variable distance apart, which is not followed");
const WORDS: Expected = Expected::Aside("codes are taken eight or more at a time, scales one by one");
const COPIES: Expected = Expected::Scalar("copies of elements as wide as registers that are not of vectors");
const ENDS: Expected = Expected::Aside("with zero points both ends of a range are gathered, once for each block");
const PAIRS: Expected = Expected::Scalar("four pairs of bytes in a register that is not of vectors");
const HALVES: Expected = Expected::Scalar("sixteen results, in two vectors of 128 bits");
const SHARED: Expected = Expected::Aside("256 results of a block of thousands of elements");
const RANGE: Expected = Expected::Aside("the ends of a vector are compared one by one, after many of them");
const RULES: Expected = Expected::Calls("three of the rules of a scale ask the definition, once for each block");
const WITHIN: Expected = Expected::Aside("eight bytes within each word change places");
const ONCE: Expected = Expected::Scalar("a comparison once for each block");
const PROOF: Expected = Expected::Aside("values before rounding, which only reports on losses ask for");
const CLEARED: Expected = Expected::Aside("lanes of all blocks are cleared, which moves more bytes than reading them");
const SUMS: Expected = Expected::Aside("sums in the order of the elements, of eight blocks at once");
const SHARED_STEPS: Expected = Expected::Aside("the steps of a divisor, for a block of thousands of elements");
const SPREAD: Expected = Expected::Aside("results of one byte, of which SSE2 interleaves few at a time");

/// One row for loops that share what is expected of them.
#[rustfmt::skip] // One row, one line: a table.
pub const SCALED: &[Row] = &[
    row("scaled::blocks::Unpack<*>", [WORDS, WORDS, WORDS]),
    row("scaled::dequantize::transposed::Interleave<1>", [SPREAD, vector(92), vector(70)]),
    row("scaled::dequantize::transposed::Interleave<2>", [vector(184), vector(152), vector(58)]),
    row("scaled::dequantize::transposed::Interleave<[48]>", [COPIES, vector(144), vector(60)]),
    row("scaled::products::FullTables<*>", [SHARED, SHARED, SHARED]),
    row("scaled::products::Products<*, *::Half>", [vector(2492), vector(774), vector(230)]),
    row("scaled::products::Products<*, *::Upper>", [vector(1275), vector(528), vector(158)]),
    row("scaled::products::Tables<[01234], *::Half>", [vector(5376), vector(1394), vector(569)]),
    row("scaled::products::Tables<[01234], *::Upper>", [vector(1736), vector(743), vector(427)]),
    row("scaled::products::Tables<5, *::Half>", [vector(6477), vector(1869), vector(794)]),
    row("scaled::products::Tables<5, *::Upper>", [vector(3277), vector(1408), vector(666)]),
    row("scaled::quantize::blocks::Mxfp4", [vector(2262), vector(976), vector(660)]),
    row("scaled::quantize::coder::Inverses", [vector(496), vector(208), vector(70)]),
    row("scaled::quantize::element::SwapNibbles", [vector(336), vector(124), vector(46)]),
    row("scaled::quantize::element::ToInt", [vector(692), vector(282), vector(100)]),
    row("scaled::quantize::scales::Effective", [vector(144), vector(44), vector(22)]),
    row("scaled::quantize::scales::MxBytes", [RULES, RULES, RULES]),
    row("scaled::quantize::scales::ReplaceZeros<1>", [vector(304), vector(76), vector(30)]),
    row("scaled::quantize::scales::ReplaceZeros<[24]>", [ONCE, ONCE, ONCE]),
    row("scaled::quantize::scales::Wanted", [vector(384), vector(128), ENDS]),
    row("scaled::quantize::search::Errors", [SUMS, SUMS, SUMS]),
    row("scaled::quantize::source::Largest<*::Of*16>", [vector(232), vector(104), vector(60)]),
    row("scaled::quantize::source::Largest<*::OfF32>", [vector(560), vector(202), vector(60)]),
    row("scaled::quantize::source::LargestOfRows<*>", [CLEARED, CLEARED, CLEARED]),
    row("scaled::quantize::source::Most", [vector(736), vector(56), vector(28)]),
    row("scaled::quantize::source::Ranges<*>", [RANGE, RANGE, RANGE]),
    row("scaled::quantize::source::Ratios<*::OfBf16, [012], 2>", [vector(701), vector(339), vector(204)]),
    row("scaled::quantize::source::Ratios<*::OfBf16, 3, 2>", [Expected::Absent, vector(452), vector(204)]),
    row("scaled::quantize::source::Ratios<*::OfBf16, [012], 4>", [vector(292), vector(139), vector(62)]),
    row("scaled::quantize::source::Ratios<*::OfBf16, 3, 4>", [Expected::Absent, vector(216), vector(94)]),
    row("scaled::quantize::source::Ratios<*::OfF16, [012], 2>", [vector(1552), vector(625), vector(302)]),
    row("scaled::quantize::source::Ratios<*::OfF16, 3, 2>", [Expected::Absent, vector(746), vector(339)]),
    row("scaled::quantize::source::Ratios<*::OfF16, [012], 4>", [vector(835), vector(344), vector(159)]),
    row("scaled::quantize::source::Ratios<*::OfF16, 3, 4>", [Expected::Absent, vector(420), vector(185)]),
    row("scaled::quantize::source::Ratios<*::OfF32, [012], 2>", [vector(415), vector(241), vector(118)]),
    row("scaled::quantize::source::Ratios<*::OfF32, 3, 2>", [Expected::Absent, vector(318), vector(126)]),
    row("scaled::quantize::source::Ratios<*::OfF32, [012], 4>", [vector(160), vector(90), vector(40)]),
    row("scaled::quantize::source::Ratios<*::OfF32, 3, 4>", [Expected::Absent, vector(148), vector(62)]),
    row("scaled::quantize::source::ToZero<*>", [vector(272), vector(60), vector(30)]),
    row("scaled::quantize::source::Widened<*::OfBf16>", [Expected::Absent, vector(61), vector(31)]),
    row("scaled::quantize::source::Widened<*::OfF16>", [Expected::Absent, vector(125), vector(50)]),
    row("scaled::unpack::Awq", [WITHIN, WITHIN, WITHIN]),
    row("scaled::unpack::LowFirst", [vector(336), vector(124), vector(46)]),
    row("scaled::unpack::OfWords", [vector(299), vector(141), vector(61)]),
    row("scaled::unpack::Shifted", [vector(208), vector(76), vector(38)]),
    row("scaled::unpack::SwapPairs", [PAIRS, vector(60), vector(36)]),
    row("scaled::values::Combine<*>", [vector(427), vector(128), vector(64)]),
    row("scaled::values::Exact", [PROOF, PROOF, PROOF]),
    row("scaled::values::Factor", [vector(336), vector(76), vector(38)]),
    row("scaled::values::Minus", [vector(118), vector(40), vector(20)]),
    row("scaled::values::OfInt", [vector(384), vector(122), vector(61)]),

    avx2("x86::avx2::scaled::amax_of_blocks", vector(332)),
    avx2("x86::avx2::scaled::rows::<*>", HALVES),
    avx2("x86::avx2::threshold_table::groups::<*>", vector(1485)),
    avx2("x86::avx2::threshold_table::tables::make", SHARED_STEPS),
    avx512("x86::avx512::quantize::groups::<*::Of*16, 0, [46], *>", vector(379)),
    avx512("x86::avx512::quantize::groups::<*::Of*16, 0, 8, *>", vector(278)),
    avx512("x86::avx512::quantize::groups::<*::Of*16, 3, [46], *>", vector(493)),
    avx512("x86::avx512::quantize::groups::<*::Of*16, 3, 8, *>", vector(406)),
    avx512("x86::avx512::quantize::groups::<*::OfF32, 0, *>", vector(199)),
    avx512("x86::avx512::quantize::groups::<*::OfF32, 1, *>", vector(213)),
    avx512("x86::avx512::threshold_table::groups::<*>", vector(845)),
    avx512("x86::avx512::threshold_table::tables::make", SHARED_STEPS),
    avx512("x86::avx512::transpose::squares::<*>", STRIDES),
    avx512("x86::avx512::scaled::by_tables::<*>", vector(121)),
    avx512("x86::avx512::scaled::of_bytes::<*>", vector(112)),
];
