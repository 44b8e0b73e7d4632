//! Methods of verification: quick tests by lookup or arithmetic, and the reference definition.
//!
//! A quick test says "right" or "unknown"; the reference definition decides about unknown elements. Tables and
//! intervals come from [`cast_one`]; `arithmetic` shows where Rust's own arithmetic may be used.

use super::arithmetic::Arithmetic;
use super::intervals::{self, Intervals};
use truecast_core::{CastSpec, Outcome, cast_one};

/// Number of elements per method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Methods {
    /// Copied; compared byte by byte.
    pub copied: u64,
    /// Found in a table with the result of every source code.
    pub table: u64,
    /// Found in the interval of sources with this result.
    pub intervals: u64,
    /// Recomputed with Rust's integer and floating-point arithmetic.
    pub arithmetic: u64,
    /// Recomputed by the reference definition.
    pub definition: u64,
}

impl Methods {
    /// Counts with their JSON keys.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 5] {
        let Methods { copied, table, intervals, arithmetic, definition } = *self;
        [
            ("copied", copied),
            ("table", table),
            ("intervals", intervals),
            ("arithmetic", arithmetic),
            ("definition", definition),
        ]
    }

    pub(crate) fn all(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn add(&mut self, other: &Methods) {
        self.copied += other.copied;
        self.table += other.table;
        self.intervals += other.intervals;
        self.arithmetic += other.arithmetic;
        self.definition += other.definition;
    }
}

#[derive(Debug)]
pub(crate) enum Method {
    Copied,
    /// Result of each source. A refused source has [`REFUSED`].
    Table(Vec<u64>),
    Narrow(Intervals<u32>),
    Wide(Intervals<u64>),
    Arithmetic(Arithmetic),
    Definition,
}

/// Marks a refused source in a table. No destination below 64 bits equals `REFUSED`; a table of 64-bit destinations that
/// has it is not used.
const REFUSED: u64 = u64::MAX;

impl Method {
    /// Chooses the method for a cast of `len` elements with these storage widths.
    pub fn new(cast: &CastSpec, src_bits: u32, dst_bits: u32, len: u64) -> Method {
        if src_bits <= 16 && len >= 1 << src_bits {
            let result = |storage| definition(cast, storage).unwrap_or(REFUSED);
            let table: Vec<u64> = (0..1 << src_bits).map(result).collect();
            // A 64-bit result may equal `REFUSED`; then no table is used.
            let is_clear = dst_bits < 64 || !table.contains(&REFUSED);
            return if is_clear { Method::Table(table) } else { Method::Definition };
        }
        if let Some(arithmetic) = Arithmetic::of(cast) {
            return Method::Arithmetic(arithmetic);
        }
        if dst_bits <= 16 && len / 2 >= intervals::cost(src_bits, dst_bits) {
            let found = match src_bits {
                ..=32 => Intervals::new(cast).map(Method::Narrow),
                _ => Intervals::new(cast).map(Method::Wide),
            };
            return found.unwrap_or(Method::Definition);
        }
        Method::Definition
    }

    /// True if all elements are certainly right. The storage must have the widths given to [`Method::new`].
    pub fn hold(&self, src: &[u64], dst: &[u64]) -> bool {
        let mut pairs = src.iter().copied().zip(dst.iter().copied());
        match self {
            Method::Copied => src == dst,
            Method::Table(table) => pairs.all(|(x, y)| table.get(x as usize) == Some(&y)),
            Method::Narrow(intervals) => pairs.all(|(x, y)| intervals.holds(x, y)),
            Method::Wide(intervals) => pairs.all(|(x, y)| intervals.holds(x, y)),
            Method::Arithmetic(arithmetic) => arithmetic.hold(pairs),
            Method::Definition => src.is_empty(),
        }
    }

    pub fn counter<'a>(&self, methods: &'a mut Methods) -> &'a mut u64 {
        match self {
            Method::Copied => &mut methods.copied,
            Method::Table(_) => &mut methods.table,
            Method::Narrow(_) | Method::Wide(_) => &mut methods.intervals,
            Method::Arithmetic(_) => &mut methods.arithmetic,
            Method::Definition => &mut methods.definition,
        }
    }
}

/// Stored result of the reference definition; `None` for a refusal.
pub(crate) fn definition(cast: &CastSpec, storage: u64) -> Option<u64> {
    match cast_one(cast, cast.src.code_of_storage(storage)) {
        Outcome::Defined(code) | Outcome::Undefined { code, .. } => Some(cast.dst.storage_of_code(code)),
        Outcome::Refused { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use truecast_core::policy::*;
    use truecast_core::{CastPolicy, DType, Layout, Rounding};

    fn numeric() -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(|t| t.is_numeric())
    }

    /// All roundings; under two roundings also all other fields.
    fn policies() -> Vec<CastPolicy> {
        let base = CastPolicy::IEEE;
        let mut all: Vec<_> = Rounding::ALL.iter().map(|&r| CastPolicy { to_float: r, to_int: r, ..base }).collect();
        for base in [base, CastPolicy { to_float: Rounding::Up, to_int: Rounding::Down, ..base }] {
            for rule in [Overflow::Saturate, Overflow::NonfiniteAlways, Overflow::Error] {
                all.push(CastPolicy { overflow: rule, inf: rule, ..base });
                all.push(CastPolicy { overflow: rule, ..base });
                all.push(CastPolicy { inf: rule, ..base });
            }
            for nan in [NanRule::Canonical, NanRule::Error] {
                all.push(CastPolicy { nan, nan_to_int: NanToInt::Error, ..base });
            }
            for int_overflow in [IntOverflow::Saturate, IntOverflow::Error] {
                all.push(CastPolicy { int_overflow, nan_to_int: NanToInt::Saturate, ..base });
            }
            for rule in [Unrepresentable::Smallest, Unrepresentable::Magnitude, Unrepresentable::Error] {
                let vanishing = if rule == Unrepresentable::Magnitude { Unrepresentable::Smallest } else { rule };
                all.push(CastPolicy { negative: rule, vanishing, ..base });
            }
            all.push(CastPolicy { nan_substitute: NanSubstitute::MaxSigned, ..base });
            all.push(CastPolicy { nan_substitute: NanSubstitute::CodeZero, ..base });
            for subnormals in [Subnormals::Flush, Subnormals::FlushSource, Subnormals::FlushResult] {
                all.push(CastPolicy { subnormals, ..base });
            }
            all.push(CastPolicy { range: RangeTest::Source, ..base });
        }
        all
    }

    struct Stream(u64);
    impl Stream {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 32 ^ self.0 << 29
        }
    }

    fn bits(dtype: DType) -> u32 {
        dtype.bits_in(Layout::Bytes).unwrap()
    }

    /// Stored sources: patterns with one or two changed bits, values near one, random bits.
    fn sources(src: DType) -> Vec<u64> {
        let width = bits(src);
        let mask = u64::MAX >> (64 - width);
        let mut all = vec![0, mask];
        for i in 0..width {
            let (a, b) = (1u64 << i, 1u64 << (i * 7 % width));
            all.extend([a, a - 1, mask ^ a, a | b, mask ^ a ^ b]);
        }
        let mut stream = Stream(width as u64);
        for i in 0..200 {
            let r = stream.next();
            all.push(r);
            all.push(match src {
                DType::F64 => (1023 - 30 + i % 60) << 52 | r >> 12 | r << 63,
                DType::F32 | DType::Tf32 => (127 - 30 + i % 60) << 23 | (r & 0x807f_ffff),
                _ => r >> (i % width as u64),
            });
        }
        all.iter_mut().for_each(|x| *x &= mask);
        all
    }

    /// Offers the right code, its neighbors and a random code to a method.
    fn accepts_only_what_is_right(cast: &CastSpec, method: &Method, sources: impl Iterator<Item = u64>) -> (u64, u64) {
        let (mut stream, mut accepted, mut seen) = (Stream(11), 0, 0);
        let mask = u64::MAX >> (64 - bits(cast.dst));
        for x in sources {
            let right = definition(cast, x);
            let near = right.unwrap_or(0);
            seen += 1;
            for y in [near, near.wrapping_add(1), near.wrapping_sub(1), !near, stream.next(), u64::MAX] {
                let y = y & mask;
                if method.hold(&[x], &[y]) {
                    assert_eq!(Some(y), right, "{} -> {} of {x:#x}: {:?}", cast.src, cast.dst, cast.policy);
                    accepted += (y == near) as u64;
                }
            }
        }
        (accepted, seen)
    }

    fn spec(src: DType, dst: DType, policy: CastPolicy) -> CastSpec {
        CastSpec { src, dst, policy, undefined: &[], clause: "" }
    }

    fn all_of_them(src: DType, dst: DType, policy: CastPolicy) {
        let cast = spec(src, dst, policy);
        let method = Method::new(&cast, bits(src), bits(dst), u64::MAX);
        let ends: Vec<u64> = match &method {
            Method::Narrow(intervals) => intervals.ends().collect(),
            Method::Wide(intervals) => intervals.ends().collect(),
            _ => Vec::new(),
        };
        accepts_only_what_is_right(&cast, &method, sources(src).into_iter().chain(ends));
    }

    #[test]
    fn nothing_wrong_is_accepted() {
        let pairs: Vec<(DType, DType)> = numeric().flat_map(|src| numeric().map(move |dst| (src, dst))).collect();
        pairs.into_par_iter().for_each(|(src, dst)| {
            if bits(src) <= 16 || bits(dst) != 16 {
                policies().into_iter().for_each(|policy| all_of_them(src, dst, policy));
            }
        });
    }

    /// Each code of 16 bits has an interval.
    #[test]
    fn nothing_wrong_is_accepted_of_16_bits() {
        let sources = [DType::F32, DType::F64, DType::I32, DType::U64];
        let destinations = [DType::F16, DType::Bf16, DType::I16, DType::U16];
        let base = CastPolicy::IEEE;
        let policies = [
            CastPolicy { subnormals: Subnormals::Flush, int_overflow: IntOverflow::Saturate, ..base },
            CastPolicy { to_float: Rounding::ToOdd, to_int: Rounding::NearestEven, ..base },
        ];
        for (src, dst) in sources.into_iter().flat_map(|src| destinations.map(|dst| (src, dst))) {
            policies.into_iter().for_each(|policy| all_of_them(src, dst, policy));
        }
    }

    #[test]
    fn ordinary_values_are_quick() {
        use DType::*;
        let (floats, narrow) = ([F32, F64], [F16, Bf16, F8E4M3Fn, F8E5M2, F8E4M3Fnuz, F4E2M1, F6E2M3, Nf4, MxInt8]);
        let to_narrow = floats.into_iter().flat_map(|src| narrow.map(|dst| (src, dst)));
        let integers = [I8, U8, I16, U16, I32, U32, I64, U64];
        let to_integers = floats.into_iter().flat_map(|src| integers.map(|dst| (src, dst)));
        let from_integers = [I32, U32, I64, U64].into_iter().flat_map(|src| [F32, F64, F16].map(|dst| (src, dst)));
        let between = [I32, I64].into_iter().flat_map(|src| integers.map(|dst| (src, dst)));
        let others = [(F32, F64), (F64, F32), (F16, F32), (F8E4M3Fn, F32), (F4E2M1, Bf16), (Bf16, F8E4M3Fn), (I8, F32)];
        for (src, dst) in to_narrow.chain(to_integers).chain(from_integers).chain(between).chain(others) {
            let cast = spec(src, dst, CastPolicy::IEEE);
            let method = Method::new(&cast, bits(src), bits(dst), u64::MAX);
            // Positive numbers below two, which every destination accepts.
            let mut stream = Stream(3);
            let few = (0..5000).map(|i| match src {
                F32 => (1.0 + (i as f32 - 2500.0) / 2501.0).to_bits() as u64,
                F64 => (1.0 + (i as f64 - 2500.0) / 2501.0).to_bits(),
                _ => stream.next() % 2,
            });
            let (accepted, seen) = accepts_only_what_is_right(&cast, &method, few);
            assert!(accepted * 100 >= seen * 95, "{src} -> {dst}: {accepted} of {seen}");
        }
    }
}
