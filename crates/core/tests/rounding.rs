//! Properties of every conversion (`docs/style.md §15.3`).
//!
//! Expected results use no table and no function of the crate. Values are computed from the fields (`docs/spec/onnx.md
//! §2.1, §2.2`): floats exactly in f64, integers in i128.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::ops::Deref;
use std::sync::LazyLock;
use truecast_core::DType::{self, *};
use truecast_core::policy::*;
use truecast_core::{CastPolicy, CastSpec, FloatFormat, Kind, Outcome, Rounding, cast_one};
use truecast_testkit::formats::{self, NF4_THRESHOLDS, Top, pow2};
use truecast_testkit::random::Random;

#[derive(Clone, Copy, Debug)]
struct Format {
    dtype: DType,
    page: formats::Format,
}

impl Deref for Format {
    type Target = formats::Format;
    fn deref(&self) -> &Self::Target {
        &self.page
    }
}

static FORMATS: LazyLock<[Format; formats::FORMATS.len()]> =
    LazyLock::new(|| formats::FORMATS.map(|page| Format { dtype: DType::parse(page.name).unwrap(), page }));

/// Type, bits, signed.
const INTEGERS: [(DType, u32, bool); 17] = [
    (I1, 1, true),
    (U1, 1, false),
    (I2, 2, true),
    (U2, 2, false),
    (U3, 3, false),
    (I4, 4, true),
    (U4, 4, false),
    (U6, 6, false),
    (I8, 8, true),
    (U8, 8, false),
    (I16, 16, true),
    (U16, 16, false),
    (I32, 32, true),
    (U32, 32, false),
    (I48, 48, true),
    (I64, 64, true),
    (U64, 64, false),
];

#[test]
fn f16_rounds_correctly() {
    every_rounding(F16);
}

#[test]
fn bf16_rounds_correctly() {
    every_rounding(Bf16);
}

#[test]
fn narrow_sources_round_correctly() {
    for src in narrow_sources().into_iter().filter(|t| ![F16, Bf16].contains(t)) {
        every_rounding(src);
    }
}

fn every_rounding(src: DType) {
    for dst in *FORMATS {
        for rounding in Rounding::ALL {
            let spec = spec(src, dst.dtype, CastPolicy { to_float: rounding, ..CastPolicy::IEEE });
            for code in codes(src) {
                if let Some(x) = value(src, code) {
                    check_rounded(&dst, rounding, x, cast_one(&spec, code));
                }
            }
        }
    }
}

/// Sources are f32 and f64: every value and midpoint of the destination, the numbers next to these in the source, and
/// random values.
#[test]
fn wide_sources_round_correctly() {
    let mut random = Random::new("wide_sources_round_correctly");
    for dst in *FORMATS {
        let boundaries = boundaries(&dst, &mut random);
        for rounding in Rounding::ALL {
            let policy = CastPolicy { to_float: rounding, ..CastPolicy::IEEE };
            let (from_f32, from_f64) = (spec(F32, dst.dtype, policy), spec(F64, dst.dtype, policy));
            for &x in &boundaries {
                let narrow = x as f32;
                for x in [x.next_down(), x, x.next_up()] {
                    check_rounded(&dst, rounding, x, cast_one(&from_f64, x.to_bits()));
                    check_rounded(&dst, rounding, -x, cast_one(&from_f64, (-x).to_bits()));
                }
                for x in [narrow.next_down(), narrow, narrow.next_up()] {
                    check_rounded(&dst, rounding, x as f64, cast_one(&from_f32, x.to_bits() as u64));
                    check_rounded(&dst, rounding, -x as f64, cast_one(&from_f32, (-x).to_bits() as u64));
                }
            }
            for _ in 0..20_000 {
                let (a, b) = (f32::from_bits(random.next() as u32), f64::from_bits(random.next()));
                if !a.is_nan() {
                    check_rounded(&dst, rounding, a as f64, cast_one(&from_f32, a.to_bits() as u64));
                }
                if !b.is_nan() {
                    check_rounded(&dst, rounding, b, cast_one(&from_f64, b.to_bits()));
                }
            }
        }
    }
}

/// `outcome` must be the rounding of `x` under the IEEE policy. A negative value gives NaN in an unsigned format, and
/// zero gives NaN in a format without zero. Overflow gives Inf. If the format has no Inf, overflow gives NaN, and if it
/// has no NaN, the largest value.
fn check_rounded(f: &Format, rounding: Rounding, x: f64, outcome: Outcome) {
    let what = || format!("{x:e} to {} {rounding}: {outcome:x?}", f.dtype);
    let check = |is_right: bool, why: &str| assert!(is_right, "{}: {why}", what());
    let Outcome::Defined(code) = outcome else { return check(false, "nothing is undefined or refused") };
    let (a, neg) = (x.abs(), x.is_sign_negative());
    if neg && f.sign == 0 {
        if a == 0.0 && f.has_zero() {
            return check(code == 0, "-0 is zero");
        }
        return check(code == f.nan(), "negative is NaN");
    }
    if a.is_infinite() {
        return check(code == f.over(neg), "Inf");
    }
    // Index of the result: the code of the magnitude, `max + 1` for overflow, -1 below the smallest value.
    let overflowed = f.top != Top::Finite && code == f.over(neg);
    let index = match overflowed {
        true if f.dtype == F8E8M0 && a < 1.0 => -1,
        true => f.max() + 1,
        false => (code & f.magnitude_mask()) as i64,
    };
    if !overflowed {
        check(index <= f.max(), "not finite");
        let keeps_sign = index != 0 || f.top != Top::Fnuz;
        check((code & f.sign_bit() != 0) == (neg && keeps_sign), "sign");
    }
    let (at, above) = (f.magnitude(index), f.magnitude(index + 1));
    let below = if index > -1 && (index > 0 || !f.has_zero()) { Some(f.magnitude(index - 1)) } else { None };
    // Overflow has no upper neighbor; a result that is clamped or stops at the maximum has no upper bound.
    let stops = match rounding {
        Rounding::TowardZero | Rounding::ToOdd => true,
        Rounding::Up => neg,
        Rounding::Down => !neg,
        _ => f.top == Top::Finite,
    };
    let unbounded = index > f.max() || (index == f.max() && (stops || f.top == Top::Finite));
    let odd = index & 1 == 1;
    let ok = match direction(rounding, neg) {
        Direction::Toward => at <= a && (unbounded || a < above),
        Direction::Away => below.is_none_or(|below| below < a) && (unbounded || a <= at) && (index >= 0 || a == 0.0),
        Direction::Odd if index == f.max() && at < a => true, // stops at max, of either parity
        Direction::Odd => a == at || (odd && below.is_none_or(|below| below < a) && a < above),
        Direction::Nearest { up_on_tie } => {
            // A tie between k and k + 1 rounds up if the rounding says so; to even, if k is odd.
            let tie_goes_up = |k: i64| up_on_tie.unwrap_or(k & 1 == 1);
            let low = below.is_none_or(|below| match compare(a, (below + at) / 2.0) {
                Less => false,
                Equal => tie_goes_up(index - 1),
                Greater => true,
            });
            let high = unbounded
                || match compare(a, (at + above) / 2.0) {
                    Less => true,
                    Equal => !tie_goes_up(index),
                    Greater => false,
                };
            low && high
        }
    };
    if !ok {
        check(false, &format!("it lies between {below:?}, {at:e} and {above:e}"));
    }
}

enum Direction {
    Toward,
    Away,
    Odd,
    Nearest { up_on_tie: Option<bool> },
}

fn direction(rounding: Rounding, neg: bool) -> Direction {
    match rounding {
        Rounding::TowardZero => Direction::Toward,
        Rounding::AwayFromZero => Direction::Away,
        Rounding::Up | Rounding::Down if neg == (rounding == Rounding::Up) => Direction::Toward,
        Rounding::Up | Rounding::Down => Direction::Away,
        Rounding::ToOdd => Direction::Odd,
        Rounding::NearestEven => Direction::Nearest { up_on_tie: None },
        Rounding::NearestAway => Direction::Nearest { up_on_tie: Some(true) },
        Rounding::NearestUp => Direction::Nearest { up_on_tie: Some(!neg) },
    }
}

#[test]
fn up_and_down_are_adjacent() {
    for src in [F16, Bf16, I16, F8E5M2, F8E8M0, Nf4] {
        for dst in FORMATS.into_iter().filter(|f| f.sign == 1) {
            let specs = Rounding::ALL.map(|r| spec(src, dst.dtype, CastPolicy { to_float: r, ..CastPolicy::IEEE }));
            for code in codes(src) {
                let Some(x) = value(src, code) else { continue };
                if x.abs() > dst.magnitude(dst.max()) {
                    continue;
                }
                let results = specs.map(|s| cast_one(&s, code).code().unwrap());
                let of = |r| results[Rounding::ALL.iter().position(|&q| q == r).unwrap()];
                let (up, down) = (dst.value(of(Rounding::Up)), dst.value(of(Rounding::Down)));
                assert!(up >= x && x >= down, "{src} {code:x} to {}", dst.dtype);
                let step = dst.ordinal(of(Rounding::Up)) - dst.ordinal(of(Rounding::Down));
                assert_eq!(step, if up == down { 0 } else { 1 }, "{src} {code:x} to {}", dst.dtype);
                assert!(results.iter().all(|r| [of(Rounding::Up), of(Rounding::Down)].contains(r)), "{src} {code:x}");
            }
        }
    }
}

#[test]
fn floats_to_integers() {
    for src in narrow_sources() {
        let all: Vec<u64> = codes(src).collect();
        to_integers(src, &all);
    }
}

#[test]
fn wide_floats_to_integers() {
    let mut random = Random::new("wide_floats_to_integers");
    let mut edges: Vec<f64> = vec![0.0, f64::INFINITY, f64::NAN, 5e-324, 1e300, 0.5, 1.5, 2.5];
    for bits in 0..=66 {
        for offset in [-1.0, -0.5, 0.0, 0.5, 1.0] {
            let x = 2f64.powi(bits) + offset;
            edges.extend([x.next_down(), x, x.next_up()]);
        }
    }
    for _ in 0..2000 {
        let exponent = (random.next() % 80) as i32 - 8;
        edges.push((1.0 + (random.next() >> 11) as f64 / 2f64.powi(53)) * 2f64.powi(exponent));
    }
    let signed = || edges.iter().flat_map(|&x| [x, -x]);
    to_integers(F64, &signed().map(f64::to_bits).collect::<Vec<_>>());
    to_integers(F32, &signed().map(|x| (x as f32).to_bits() as u64).collect::<Vec<_>>());
}

const INT_OVERFLOWS: [IntOverflow; 3] = [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error];

fn to_integers(src: DType, codes: &[u64]) {
    for (dst, bits, signed) in INTEGERS {
        let (min, max) = integer_range(bits, signed);
        for to_int in Rounding::ALL {
            let with = |int_overflow| spec(src, dst, CastPolicy { to_int, int_overflow, ..CastPolicy::IEEE });
            let specs = INT_OVERFLOWS.map(with);
            for &code in codes {
                let Some(x) = value(src, code) else { continue };
                let got = specs.map(|s| cast_one(&s, code).code());
                let expected = match round_to_integer(x, to_int) {
                    Some(t) if (min..=max).contains(&t) => [Some(low_bits(t, bits)); 3],
                    Some(t) => [Some(low_bits(t, bits)), Some(low_bits(t.clamp(min, max), bits)), None],
                    // Beyond 2^120: a multiple of 2^64, or an infinity.
                    None => [Some(0), Some(low_bits(if x < 0.0 { min } else { max }, bits)), None],
                };
                assert_eq!(got, expected, "{src} {x:e} to {dst} {to_int}");
            }
        }
    }
}

#[test]
fn integers_to_integers() {
    for (src, src_bits, src_signed) in INTEGERS {
        for (dst, bits, signed) in INTEGERS {
            let (min, max) = integer_range(bits, signed);
            let with = |int_overflow| spec(src, dst, CastPolicy { int_overflow, ..CastPolicy::IEEE });
            let specs = INT_OVERFLOWS.map(with);
            let all: Vec<u64> = if src_bits <= 8 { codes(src).collect() } else { integer_edges(src_bits) };
            for code in all {
                let t = integer_value(code, src_bits, src_signed);
                let got = specs.map(|s| cast_one(&s, code).code());
                let in_range = (min..=max).contains(&t).then_some(low_bits(t, bits));
                let expected = [Some(low_bits(t, bits)), Some(low_bits(t.clamp(min, max), bits)), in_range];
                assert_eq!(got, expected, "{src} {t} to {dst}");
            }
        }
    }
}

/// 32-, 48- and 64-bit sources. The expected result in i128 is one of two neighbors with `p` significant bits.
#[test]
fn wide_integers_to_floats() {
    let mut random = Random::new("wide_integers_to_floats");
    let page = formats::Format { name: "f64", sign: 1, exp: 11, man: 52, bias: 1023, top: Top::Ieee };
    let f64_format = Format { dtype: F64, page };
    for (src, src_bits, signed) in INTEGERS.into_iter().filter(|i| i.1 >= 32) {
        let mut all = integer_edges(src_bits);
        for _ in 0..3000 {
            all.push((random.next() >> (random.next() % 64)) & (u64::MAX >> (64 - src_bits)));
        }
        for dst in FORMATS.into_iter().chain([f64_format]) {
            for rounding in Rounding::ALL {
                let spec = spec(src, dst.dtype, CastPolicy { to_float: rounding, ..CastPolicy::IEEE });
                for &code in &all {
                    let n = integer_value(code, src_bits, signed);
                    let expected = integer_to_float(n, &dst, rounding);
                    assert_eq!(cast_one(&spec, code).code(), Some(expected), "{src} {n} to {} {rounding}", dst.dtype);
                }
            }
        }
    }
}

/// Every nonzero integer is a normal number of the format, or too large.
fn integer_to_float(n: i128, f: &Format, rounding: Rounding) -> u64 {
    let (a, neg) = (n.unsigned_abs(), n < 0);
    if a == 0 {
        return if f.has_zero() { 0 } else { f.nan() };
    }
    if neg && f.sign == 0 {
        return f.nan();
    }
    let exponent = 127 - a.leading_zeros() as i32;
    let ulp = 1u128 << (exponent - f.man as i32).max(0);
    let (floor, rest) = (a / ulp * ulp, a % ulp);
    // Code of `floor`: the exponent field, then the fraction.
    let fraction =
        if exponent >= f.man as i32 { floor / ulp } else { floor << (f.man as i32 - exponent) } - (1 << f.man);
    let mut index = (((exponent + f.bias) as u128) << f.man) + fraction;
    index += match direction(rounding, neg) {
        _ if rest == 0 => 0,
        Direction::Toward => 0,
        Direction::Away => 1,
        Direction::Odd => 1 - index % 2,
        Direction::Nearest { up_on_tie } => match (2 * rest).cmp(&ulp) {
            Less => 0,
            Equal => up_on_tie.unwrap_or(index % 2 == 1) as u128,
            Greater => 1,
        },
    };
    let index = index as i64;
    let stops = match direction(rounding, neg) {
        Direction::Toward | Direction::Odd => true,
        _ => f.top == Top::Finite,
    };
    match index > f.max() {
        true if !stops => f.over(neg),
        _ => index.min(f.max()) as u64 | if neg { f.sign_bit() } else { 0 },
    }
}

#[test]
fn to_bool_is_not_zero() {
    for src in narrow_sources() {
        let spec = spec(src, Bool, CastPolicy::IEEE);
        for code in codes(src) {
            let expected = !matches!(value(src, code), Some(x) if x == 0.0);
            assert_eq!(cast_one(&spec, code), Outcome::Defined(expected as u64), "{src} {code:x}");
        }
    }
}

/// mxint8 is an 8-bit integer of 64ths. Rounds, then clamps (`docs/spec/tosa.md §2.1`).
#[test]
fn to_fixed_point() {
    for src in narrow_sources() {
        for to_float in Rounding::ALL {
            let with =
                |overflow| spec(src, MxInt8, CastPolicy { to_float, overflow, inf: overflow, ..CastPolicy::IEEE });
            let [clamp, error] = [Overflow::Saturate, Overflow::Error].map(with);
            for code in codes(src) {
                let Some(x) = value(src, code) else { continue };
                let (n, fits) = match round_to_integer(x * 64.0, to_float) {
                    Some(n) => (n.clamp(-128, 127), (-128..=127).contains(&n)),
                    None => (if x < 0.0 { -128 } else { 127 }, false),
                };
                let got = [clamp, error].map(|s| cast_one(&s, code).code());
                assert_eq!(got, [Some(low_bits(n, 8)), fits.then_some(low_bits(n, 8))], "{src} {x:e} {to_float}");
            }
        }
    }
}

/// nf4 (`docs/spec/openvino.md §1.3, §6.8`): nearest roundings by the thresholds, other roundings to a neighboring
/// value.
#[test]
fn to_code_book() {
    let values: Vec<f64> = (0..16).map(nf4_value).collect();
    let thresholds = NF4_THRESHOLDS.map(|bits| f32::from_bits(bits) as f64);
    let sources = narrow_sources().into_iter().map(|t| (t, codes(t).collect::<Vec<_>>()));
    let edges: Vec<f64> = values.iter().chain(&thresholds).copied().collect();
    let edges = edges.iter().flat_map(|&x| [x.next_down(), x, x.next_up()]).map(f64::to_bits).collect();
    for (src, codes) in sources.chain([(F64, edges)]) {
        for to_float in Rounding::ALL {
            let with = |overflow| spec(src, Nf4, CastPolicy { to_float, overflow, inf: overflow, ..CastPolicy::IEEE });
            let [clamp, error] = [Overflow::Nonfinite, Overflow::Error].map(with);
            for &code in &codes {
                let Some(x) = value(src, code) else { continue };
                let fits = (-1.0..=1.0).contains(&x);
                let x = x.clamp(-1.0, 1.0);
                let up = values.iter().position(|&v| v >= x).unwrap() as u64;
                let down = values.iter().rposition(|&v| v <= x).unwrap() as u64;
                let (inner, outer) = if x < 0.0 { (up, down) } else { (down, up) };
                let expected = match direction(to_float, x < 0.0) {
                    Direction::Nearest { .. } => thresholds.iter().filter(|&&t| x > t).count() as u64,
                    Direction::Toward => inner,
                    Direction::Away => outer,
                    Direction::Odd if up == down || up % 2 == 1 => up,
                    Direction::Odd => down,
                };
                let got = [clamp, error].map(|s| cast_one(&s, code).code());
                assert_eq!(got, [Some(expected), fits.then_some(expected)], "{src} {x:e} {to_float}");
            }
        }
    }
}

fn saturating(policy: CastPolicy) -> CastPolicy {
    CastPolicy {
        overflow: Overflow::Saturate,
        inf: Overflow::Saturate,
        int_overflow: IntOverflow::Saturate,
        negative: Unrepresentable::Smallest,
        vanishing: Unrepresentable::Smallest,
        ..policy
    }
}

#[test]
fn conversion_is_monotone() {
    for src in [F16, Bf16, I16, U16, F8E5M2, F8E3M4, F8E8M0, F6E2M3, MxInt8, Nf4] {
        let mut sorted: Vec<(f64, u64)> = codes(src).filter_map(|c| Some((value(src, c)?, c))).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        for rounding in Rounding::ALL {
            let policy = CastPolicy { to_float: rounding, to_int: rounding, ..CastPolicy::IEEE };
            let saturate = saturating(policy);
            let integers = INTEGERS.iter().filter(|i| i.1 <= 32).map(|i| (i.0, saturate));
            let floats = FORMATS.iter().flat_map(|f| {
                let nonfinite = (f.sign == 1).then_some((f.dtype, policy));
                nonfinite.into_iter().chain([(f.dtype, saturate)])
            });
            for (dst, policy) in floats.chain(integers).chain([(MxInt8, policy), (Nf4, policy)]) {
                let spec = spec(src, dst, policy);
                let mut last = f64::NEG_INFINITY;
                for &(x, code) in &sorted {
                    let result = cast_one(&spec, code).code().unwrap();
                    let y = value(dst, result).unwrap_or(f64::INFINITY.copysign(x)); // NaN is an overflow here
                    assert!(last <= y, "{src} {x:e} to {dst} {rounding} gives {y:e} after {last:e}");
                    last = y;
                }
            }
        }
    }
}

#[test]
fn conversion_mirrors() {
    let signed = |f: &&Format| f.sign == 1;
    for src in FORMATS.iter().filter(signed).filter(|f| f.bits() <= 16 && f.top != Top::Fnuz) {
        for dst in FORMATS.iter().filter(signed) {
            for rounding in Rounding::ALL {
                let mirrored = match rounding {
                    Rounding::Up => Rounding::Down,
                    Rounding::Down => Rounding::Up,
                    Rounding::NearestUp => continue, // its mirror image is not a rounding of ours
                    other => other,
                };
                let with = |r| spec(src.dtype, dst.dtype, CastPolicy { to_float: r, ..CastPolicy::IEEE });
                let (plain, mirror) = (with(rounding), with(mirrored));
                for code in 0..src.sign_bit() {
                    let (a, b) = (
                        cast_one(&plain, code).code().unwrap(),
                        cast_one(&mirror, code | src.sign_bit()).code().unwrap(),
                    );
                    let unsigned = dst.top == Top::Fnuz && (a == 0 || a == dst.sign_bit()); // zero and NaN
                    let nan_substitute = dst.top == Top::Finite && src.read(code).is_none(); // zero flipped
                    let expected = if unsigned { a } else { a ^ dst.sign_bit() };
                    assert!(b == expected || nan_substitute, "{} {code:x} to {} {rounding}", src.dtype, dst.dtype);
                }
            }
        }
    }
}

/// If every value of one format is a value of the other, a round trip under any rounding changes nothing. `embeds_in`
/// is true for exactly these pairs.
#[test]
fn widening_then_narrowing_is_the_identity() {
    let mut embedded = 0;
    for a in FORMATS.iter().filter(|f| f.bits() <= 19) {
        let finite: Vec<u64> = (0..1 << a.bits()).filter(|&c| matches!(a.read(c), Some(x) if x.is_finite())).collect();
        for b in *FORMATS {
            let embeds = finite.iter().all(|&c| b.holds(a.value(c)));
            assert_eq!(float(a.dtype).embeds_in(&float(b.dtype)), embeds, "{} in {}", a.dtype, b.dtype);
            if !embeds {
                continue;
            }
            embedded += 1;
            for rounding in Rounding::ALL {
                let policy = CastPolicy { to_float: rounding, ..CastPolicy::IEEE };
                let (widen, narrow) = (spec(a.dtype, b.dtype, policy), spec(b.dtype, a.dtype, policy));
                for code in 0..1 << a.bits() {
                    let x = match a.read(code) {
                        None => continue,
                        Some(x) if x.is_infinite() && b.top != Top::Ieee => continue,
                        Some(x) => x,
                    };
                    let wide = cast_one(&widen, code).code().unwrap();
                    let back = cast_one(&narrow, wide).code().unwrap();
                    let lost_sign = x == 0.0 && b.top == Top::Fnuz;
                    assert_eq!(back, if lost_sign { 0 } else { code }, "{} {code:x} by {}", a.dtype, b.dtype);
                }
            }
        }
    }
    assert!(embedded > 16, "more than every format in itself");
}

#[test]
fn identity() {
    for dtype in narrow_sources() {
        for rounding in Rounding::ALL {
            let spec = spec(dtype, dtype, CastPolicy { to_float: rounding, to_int: rounding, ..CastPolicy::IEEE });
            for code in codes(dtype) {
                assert_eq!(cast_one(&spec, code), Outcome::Defined(code), "{dtype} {code:x}");
            }
        }
    }
}

#[test]
fn saturate_is_clamp() {
    for src in [F16, Bf16, I16, F8E5M2, F8E8M0, MxInt8] {
        for rounding in Rounding::ALL {
            let policy = CastPolicy { to_float: rounding, to_int: rounding, ..CastPolicy::IEEE };
            let saturate = saturating(policy);
            let floats = FORMATS.map(|f| {
                let max = f.magnitude(f.max());
                (f.dtype, if f.sign == 1 { -max } else { f.magnitude(0) }, max)
            });
            let integers = INTEGERS.into_iter().filter(|i| i.1 <= 48).map(|(t, bits, signed)| {
                let (min, max) = integer_range(bits, signed);
                (t, min as f64, max as f64)
            });
            for (dst, min, max) in floats.into_iter().chain(integers) {
                let (saturating, plain) = (spec(src, dst, saturate), spec(F64, dst, policy));
                for code in codes(src) {
                    let Some(x) = value(src, code) else { continue };
                    if dst == F8E8M0 && x > 0.0 && x < min {
                        continue; // rounding may still reach 2^-127
                    }
                    let x = if x.is_sign_negative() && x == 0.0 && min == 0.0 { 0.0 } else { x };
                    let clamped = cast_one(&plain, x.clamp(min, max).to_bits());
                    assert_eq!(cast_one(&saturating, code), clamped, "{src} {x:e} to {dst} {rounding}");
                }
            }
        }
    }
}

/// Inf and NaN in each format, by policy: (format, Inf kept, Inf saturated, canonical NaN, negative NaN).
/// `docs/kernels.md §4.6, §4.7`.
#[rustfmt::skip]
const SPECIALS: [(DType, u64, u64, u64, u64); 15] = [
    (F64, 0x7ff0 << 48, 0x7fefffffffffffff, 0x7ff8 << 48, 0xfff8 << 48),
    (F32, 0x7f800000, 0x7f7fffff, 0x7fc00000, 0xffc00000), (Tf32, 0x3fc00, 0x3fbff, 0x3fe00, 0x7fe00),
    (Bf16, 0x7f80, 0x7f7f, 0x7fc0, 0xffc0), (F16, 0x7c00, 0x7bff, 0x7e00, 0xfe00), (F8E5M2, 0x7c, 0x7b, 0x7e, 0xfe),
    (F8E4M3Ieee, 0x78, 0x77, 0x7c, 0xfc), (F8E3M4, 0x70, 0x6f, 0x78, 0xf8), (F8E4M3Fn, 0x7f, 0x7e, 0x7f, 0xff),
    (F8E5M3Fnu, 0xff, 0xfe, 0xff, 0xff), (F8E8M0, 0xff, 0xfe, 0xff, 0xff), (F8E4M3Fnuz, 0x80, 0x7f, 0x80, 0x80),
    (F8E5M2Fnuz, 0x80, 0x7f, 0x80, 0x80), (F8E4M3B11Fnuz, 0x80, 0x7f, 0x80, 0x80),
    (F4E2M1, 0x7, 0x7, 0x8, 0x0),
];

#[test]
fn infinity_and_nan() {
    for (dst, inf, max, nan, negative_nan) in SPECIALS {
        let cast = |x, policy| cast(F64, dst, policy, x);
        let inf_bits = f64::INFINITY.to_bits();
        for to_float in Rounding::ALL {
            let policy = CastPolicy { to_float, nan: NanRule::Canonical, ..CastPolicy::IEEE };
            assert_eq!(cast(inf_bits, policy), Some(inf), "{dst} {to_float}");
            assert_eq!(cast(inf_bits, CastPolicy { inf: Overflow::Saturate, ..policy }), Some(max), "{dst}");
            assert_eq!(cast(0x7ff0_0000_0000_0001, policy), Some(nan), "{dst}");
            assert_eq!(cast(0xffff_ffff_ffff_ffff, policy), Some(negative_nan), "{dst}");
        }
    }
    // Each row is a format without NaN. Its results are for +NaN and -NaN under `ZeroFlipped`, then for +NaN and -NaN
    // under `MaxSigned`.
    for (dst, [plus, minus, max, negative_max]) in [
        (F4E2M1, [0x8, 0x0, 0x7, 0xf]),
        (F6E2M3, [0x20, 0x00, 0x1f, 0x3f]),
        (F6E3M2, [0x20, 0x00, 0x1f, 0x3f]),
        (MxInt8, [0x00, 0x00, 0x7f, 0x80]),
        (Nf4, [0x7, 0x7, 0xf, 0x0]),
    ] {
        for (src, nan, neg) in
            [(F32, 0x7fc00000, false), (F32, 0xff800001, true), (F8E4M3Fnuz, 0x80, true), (F8E8M0, 0xff, false)]
        {
            let cast = |nan_substitute| cast(src, dst, CastPolicy { nan_substitute, ..CastPolicy::IEEE }, nan);
            assert_eq!(cast(NanSubstitute::ZeroFlipped), Some(if neg { minus } else { plus }), "{src} to {dst}");
            assert_eq!(cast(NanSubstitute::MaxSigned), Some(if neg { negative_max } else { max }), "{src} to {dst}");
            assert_eq!(cast(NanSubstitute::MaxPositive), Some(max), "{src} to {dst}");
        }
    }
    for (dst, bits, signed) in INTEGERS {
        let (_, max) = integer_range(bits, signed);
        for nan in [0x7fc00000, 0xffc00000] {
            let cast = |nan_to_int| cast(F32, dst, CastPolicy { nan_to_int, ..CastPolicy::IEEE }, nan);
            assert_eq!(cast(NanToInt::Zero), Some(0));
            assert_eq!(cast(NanToInt::Saturate), Some(low_bits(max, bits)), "{dst}");
        }
    }
}

#[test]
fn unrepresentable_values() {
    use Unrepresentable::*;
    for src in [F16, Bf16, I8, F8E5M2] {
        for dst in FORMATS.iter().filter(|f| f.sign == 0) {
            for to_float in Rounding::ALL {
                let with = |negative, vanishing| CastPolicy { to_float, negative, vanishing, ..CastPolicy::IEEE };
                let cast = |negative, vanishing, code| cast(src, dst.dtype, with(negative, vanishing), code);
                for code in codes(src) {
                    let Some(x) = value(src, code) else { continue };
                    let vanishes = x == 0.0 && !dst.has_zero();
                    if vanishes {
                        for negative in [Smallest, Nan, Error] {
                            assert_eq!(cast(negative, Smallest, code), Some(0)); // -0 counts as zero
                            assert_eq!(cast(negative, Nan, code), Some(dst.nan()));
                            assert_eq!(cast(negative, Error, code), None);
                        }
                    } else if x == 0.0 {
                        assert_eq!(cast(Error, Error, code), Some(0));
                    } else if x < 0.0 {
                        assert_eq!(cast(Smallest, Error, code), Some(0), "{x:e}");
                        assert_eq!(cast(Nan, Error, code), Some(dst.nan()), "{x:e}");
                        assert_eq!(cast(Error, Nan, code), None, "{x:e}");
                        let plain = spec(F64, dst.dtype, CastPolicy { to_float, ..CastPolicy::IEEE });
                        let magnitude = cast_one(&plain, (-x).to_bits()).code();
                        assert_eq!(cast(Magnitude, Nan, code), magnitude, "{x:e} {to_float}");
                    }
                }
            }
        }
    }
}

#[test]
fn errors_refuse_exactly() {
    let ieee = CastPolicy::IEEE;
    let f64_too = |t: &DType| [F16, Bf16, F8E4M3Fn, F8E5M2, F8E4M3Fnuz, F8E8M0, I8, U8, I16, F4E2M1].contains(t);
    for src in narrow_sources().into_iter().filter(f64_too) {
        for dst in DType::ALL.into_iter().filter(|t| t.is_numeric()) {
            let float = FORMATS.into_iter().find(|f| f.dtype == dst);
            let unsigned = float.is_some_and(|f| f.sign == 0);
            let integer = INTEGERS.iter().any(|i| i.0 == dst);
            let floating = !integer && dst != Bool;
            let only = |policy: CastPolicy, name: &str, about: &dyn Fn(Option<f64>) -> bool| {
                let (with, without) = (spec(src, dst, policy), spec(src, dst, ieee));
                for code in codes(src) {
                    let (got, plain) = (cast_one(&with, code), cast_one(&without, code));
                    let refused = matches!(got, Outcome::Refused { .. });
                    let x = value(src, code);
                    assert_eq!(refused, about(x), "{name}: {src} {code:x} {x:?} to {dst}: {got:?}");
                    assert!(refused || got == plain, "{name}: {src} {code:x} to {dst}");
                }
            };
            let inf = |x: Option<f64>| matches!(x, Some(x) if x.is_infinite());
            only(CastPolicy { nan: NanRule::Error, ..ieee }, "nan", &|x| x.is_none());
            let nan = |x: Option<f64>| integer && x.is_none();
            only(CastPolicy { nan_to_int: NanToInt::Error, ..ieee }, "nan_to_int", &nan);
            only(CastPolicy { inf: Overflow::Error, ..ieee }, "inf", &|x| floating && inf(x));
            only(CastPolicy { negative: Unrepresentable::Error, ..ieee }, "negative", &|x| {
                unsigned && matches!(x, Some(x) if x < 0.0)
            });
            only(CastPolicy { vanishing: Unrepresentable::Error, ..ieee }, "vanishing", &|x| {
                // To nearest even, 2^-128 is a tie between 2^-127 (even) and zero.
                dst == F8E8M0 && matches!(x, Some(x) if x == 0.0 || (x > 0.0 && x < 2f64.powi(-128)))
            });
            only(CastPolicy { overflow: Overflow::Error, ..ieee }, "overflow", &|x| match (x, float, dst) {
                (None, ..) => false,
                (Some(x), ..) if x.is_infinite() || (unsigned && x < 0.0) => false,
                (Some(x), Some(f), _) => {
                    let (max, next) = (f.magnitude(f.max()), f.magnitude(f.max() + 1));
                    match compare(x.abs(), (max + next) / 2.0) {
                        Less => false,
                        Equal => f.max() & 1 == 1,
                        Greater => true,
                    }
                }
                (Some(x), None, MxInt8) => x * 64.0 >= 127.5 || x * 64.0 < -128.5, // ties go to even
                (Some(x), None, Nf4) => x.abs() > 1.0,
                (Some(_), None, _) => false, // f64, bool and the integers
            });
        }
    }
}

/// Under `overflow: Error`, a value is refused if the magnitude, rounded with unlimited exponents, exceeds the largest
/// finite value. With `range: Source`, the unrounded magnitude is tested.
#[test]
fn overflow_is_decided_before_a_rounding_stops() {
    for f in *FORMATS {
        let (max, next) = (f.magnitude(f.max()), f.magnitude(f.max() + 1));
        let middle = (max + next) / 2.0;
        let candidates =
            [max, max.next_up(), middle.next_down(), middle, middle.next_up(), next.next_down(), next, 2.0 * next];
        for x in candidates.into_iter().flat_map(|x| [x, -x]).filter(|x| f.sign == 1 || *x > 0.0) {
            let a = x.abs();
            for to_float in Rounding::ALL {
                let odd = f.max() & 1 == 1;
                let exceeds = match direction(to_float, x < 0.0) {
                    Direction::Toward => a >= next,
                    Direction::Away => a > max,
                    Direction::Odd => a >= next || (!odd && a > max),
                    Direction::Nearest { up_on_tie } => match compare(a, middle) {
                        Less => false,
                        Equal => up_on_tie.unwrap_or(odd),
                        Greater => true,
                    },
                };
                let stops = matches!(direction(to_float, x < 0.0), Direction::Toward | Direction::Odd);
                let with = |overflow, range| CastPolicy { to_float, overflow, range, ..CastPolicy::IEEE };
                let cast = |overflow, range| cast(F64, f.dtype, with(overflow, range), x.to_bits());
                let sign = if x < 0.0 { f.sign_bit() } else { 0 };
                let max_code = f.max() as u64 | sign;
                let nonfinite = if f.top == Top::Finite { max_code } else { f.over(x < 0.0) };
                let what = format!("{x:e} to {} {to_float}", f.dtype);
                assert_eq!(cast(Overflow::Error, RangeTest::Rounded).is_none(), exceeds, "{what}");
                assert_eq!(cast(Overflow::Error, RangeTest::Source).is_none(), a > max, "{what}");
                assert_eq!(cast(Overflow::Saturate, RangeTest::Source), Some(max_code), "{what}");
                assert_eq!(cast(Overflow::Saturate, RangeTest::Rounded), Some(max_code), "{what}");
                let tested = if a > max { nonfinite } else { max_code };
                assert_eq!(cast(Overflow::Nonfinite, RangeTest::Source), Some(tested), "{what}");
                let rounded = if exceeds && !stops { nonfinite } else { max_code };
                assert_eq!(cast(Overflow::Nonfinite, RangeTest::Rounded), Some(rounded), "{what}");
            }
        }
    }
}

/// Under `subnormals: Flush`, subnormal sources and results become a zero of the same sign.
#[test]
fn flush() {
    for src in narrow_sources() {
        let subnormal = |t: DType, code: u64| {
            FORMATS.iter().any(|f| {
                f.dtype == t && f.has_zero() && {
                    let magnitude = code & f.magnitude_mask();
                    magnitude != 0 && magnitude >> f.man == 0
                }
            })
        };
        let zero_of = |t: DType, code: u64| {
            let f = FORMATS.iter().find(|f| f.dtype == t).unwrap();
            if f.top == Top::Fnuz { 0 } else { code & f.sign_bit() }
        };
        let others = [F64, Bool, I8, U8, I64, MxInt8, Nf4];
        for dst in FORMATS.map(|f| f.dtype).into_iter().chain(others) {
            for rounding in [Rounding::NearestEven, Rounding::AwayFromZero, Rounding::Down] {
                let keep = CastPolicy { to_float: rounding, to_int: rounding, ..CastPolicy::IEEE };
                let flush = CastPolicy { subnormals: Subnormals::Flush, ..keep };
                let (keep, from_zero, flush) = (spec(src, dst, keep), spec(F64, dst, keep), spec(src, dst, flush));
                for code in codes(src) {
                    let kept = match value(src, code) {
                        Some(x) if subnormal(src, code) => cast_one(&from_zero, 0f64.copysign(x).to_bits()),
                        _ => cast_one(&keep, code),
                    };
                    let kept = kept.code().unwrap();
                    let expected = if subnormal(dst, kept) { zero_of(dst, kept) } else { kept };
                    assert_eq!(cast_one(&flush, code).code(), Some(expected), "{src} {code:x} to {dst} {rounding}");
                }
            }
        }
    }
}

#[test]
fn half_a_flush() {
    let of = |subnormals| CastPolicy { subnormals, ..CastPolicy::IEEE };
    let code = |subnormals, src, dst, code| cast(src, dst, of(subnormals), code);
    let (source, result) = (Subnormals::FlushSource, Subnormals::FlushResult);
    assert_eq!(
        (code(source, F16, F32, 0x8001), code(result, F16, F32, 0x8001)),
        (Some(0x8000_0000), Some(0xb380_0000))
    );
    assert_eq!((code(source, F8E5M2, F16, 0x01), code(result, F8E5M2, F16, 0x04)), (Some(0), Some(0x0400)));
    let small = 2f32.powi(-15).to_bits().into();
    assert_eq!((code(source, F32, F16, small), code(result, F32, F16, small)), (Some(0x0200), Some(0)));
    for (from, to) in [(false, false), (true, false), (false, true), (true, true)] {
        let both = Subnormals::new(from, to);
        assert_eq!((both.flushes_source(), both.flushes_result()), (from, to));
    }
}

/// Under `NonfiniteAlways`, roundings that stop at the largest value overflow, too, once the rounded value is beyond
/// the largest.
#[test]
fn overflow_under_directed_rounding() {
    let code = |rounding, dst, x: f64| {
        let policy = CastPolicy { to_float: rounding, overflow: Overflow::NonfiniteAlways, ..CastPolicy::IEEE };
        cast_one(&spec(F64, dst, policy), x.to_bits()).code().unwrap()
    };
    for (x, expected) in [(65504.0, 0x7bff), (65535.9, 0x7bff), (65536.0, 0x7c00), (-1e300, 0xfc00)] {
        assert_eq!(code(Rounding::TowardZero, F16, x), expected, "{x}");
    }
    assert_eq!((code(Rounding::Down, F16, 1e300), code(Rounding::Down, F16, 65535.9)), (0x7c00, 0x7bff));
    assert_eq!(
        (code(Rounding::TowardZero, F8E4M3Fn, 479.9), code(Rounding::TowardZero, F8E4M3Fn, 480.0)),
        (0x7e, 0x7f)
    );
    assert_eq!(code(Rounding::TowardZero, F4E2M1, 1e9), 0x7);
    assert_eq!(code(Rounding::NearestEven, F16, 65520.0), 0x7c00);
}

/// Options of `ieee`, and the defaults (`docs/interfaces.md §2`).
#[test]
fn ieee_options() {
    use truecast_core::spec::ieee::Cast;
    let cast = |cast: Cast, x: f64| cast_one(&cast.resolve(F64).unwrap(), x.to_bits()).code();
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let (f8, i8, e8, e5) = (Cast::to(F8E4M3Fn), Cast::to(I8), Cast::to(F8E8M0), Cast::to(F8E5M2));
    // Rounding option. Without it, floats are rounded to nearest even, and integers toward zero. It sets both
    // roundings.
    assert_eq!((cast(f8, 464.0), cast(f8, 17.0), cast(i8, -2.9)), (Some(0x7e), Some(0x58), Some(0xfe)));
    let up = |to| Cast { rounding: Some(Rounding::Up), ..to };
    assert_eq!((cast(up(f8), 16.1), cast(up(i8), 2.1), cast(up(i8), -2.9)), (Some(0x59), Some(3), Some(0xfe)));
    // Overflow: `nonfinite` by default. Inf follows overflow by default.
    assert_eq!(
        (cast(e5, 1e6), cast(e5, inf), cast(f8, 1e6), cast(f8, inf)),
        (Some(0x7c), Some(0x7c), Some(0x7f), Some(0x7f))
    );
    let saturate = |to| Cast { overflow: Overflow::Saturate, ..to };
    assert_eq!(
        (cast(saturate(e5), 1e6), cast(saturate(e5), inf), cast(saturate(e5), -inf)),
        (Some(0x7b), Some(0x7b), Some(0xfb))
    );
    let keeps_inf = Cast { inf: Some(Overflow::Nonfinite), ..saturate(e5) };
    assert_eq!((cast(keeps_inf, 1e6), cast(keeps_inf, inf)), (Some(0x7b), Some(0x7c)));
    let refuses_inf = Cast { inf: Some(Overflow::Error), ..e5 };
    assert_eq!((cast(refuses_inf, 1e6), cast(refuses_inf, inf)), (Some(0x7c), None));
    let error = |to| Cast { overflow: Overflow::Error, ..to };
    assert_eq!((cast(error(e5), 1e6), cast(error(e5), inf), cast(error(e5), 1.0)), (None, None, Some(0x3c)));
    assert_eq!((cast(error(e8), -1.0), cast(error(e8), 0.0), cast(error(e8), 1.0)), (None, None, Some(0x7f)));
    // Finite-only types saturate.
    assert_eq!(cast(Cast::to(F4E2M1), -inf), Some(0xf));
    // Integers wrap, and NaN becomes 0.
    assert_eq!((cast(i8, 300.0), cast(i8, inf), cast(i8, nan)), (Some(44), Some(0), Some(0)));
    let clamps = Cast { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Saturate, ..i8 };
    assert_eq!((cast(clamps, 300.0), cast(clamps, -inf), cast(clamps, -nan)), (Some(127), Some(0x80), Some(127)));
    let strict = Cast { int_overflow: IntOverflow::Error, nan_to_int: NanToInt::Error, ..i8 };
    assert_eq!(
        (cast(strict, 300.0), cast(strict, inf), cast(strict, nan), cast(strict, -128.9)),
        (None, None, None, Some(0x80))
    );
    // NaN payloads and subnormals are kept.
    let payload = f64::from_bits(0x7ffc << 48);
    assert_eq!(cast(e5, payload), Some(0x7f));
    assert_eq!(cast(Cast { nan: NanRule::Canonical, ..e5 }, payload), Some(0x7e));
    assert_eq!(cast(Cast { nan: NanRule::Error, ..e5 }, payload), None);
    assert_eq!(cast(e5, pow2(-16)), Some(0x01));
    assert_eq!(cast(Cast { subnormals: Subnormals::Flush, ..e5 }, -pow2(-16)), Some(0x80));
    let names = "nearest-even nearest-away nearest-up toward-zero away up down odd";
    assert!(Rounding::ALL.into_iter().all(|r| names.split(' ').any(|n| n == r.name())));
    assert!(Cast::to(C64).resolve(String).is_err() && Cast::to(C64).resolve(F32).is_err());
    assert!(Cast::to(F32).resolve(String).is_ok() && Cast::to(String).resolve(F32).is_ok());
}

/// Rounding to odd in an intermediate format, then to the destination, equals one rounding (`docs/kernels.md §3.1`).
#[test]
fn odd_intermediates() {
    let mut random = Random::new("odd_intermediates");
    for dst in *FORMATS {
        let mut sources = boundaries(&dst, &mut random);
        sources.extend((0..5000).map(|_| f64::from_bits(random.next())).filter(|x| !x.is_nan()));
        for intermediate in [F32, F16] {
            if !float(intermediate).is_safe_odd_intermediate_for(&float(dst.dtype)) {
                continue;
            }
            let to_intermediate = spec(F64, intermediate, CastPolicy { to_float: Rounding::ToOdd, ..CastPolicy::IEEE });
            for to_float in Rounding::ALL {
                let policy = CastPolicy { to_float, ..CastPolicy::IEEE };
                let (direct, from_intermediate) = (spec(F64, dst.dtype, policy), spec(intermediate, dst.dtype, policy));
                for x in sources.iter().flat_map(|&x| [x.next_down(), x, x.next_up(), -x, -x.next_up()]) {
                    let through = cast_one(&from_intermediate, cast_one(&to_intermediate, x.to_bits()).code().unwrap());
                    let what = || format!("{x:e} by {intermediate} to {} {to_float}", dst.dtype);
                    assert_eq!(cast_one(&direct, x.to_bits()), through, "{}", what());
                }
            }
        }
    }
}

/// Positive values, midpoints, and the first values out of range. Formats of at most 8 bits have all of these, and
/// other formats a sample.
fn boundaries(f: &Format, random: &mut Random) -> Vec<f64> {
    let lowest = if f.has_zero() { 0 } else { -1 };
    let indices: Vec<i64> = if f.bits() <= 8 {
        (lowest..=f.max() + 1).collect()
    } else {
        let edges = [0, 1, 2, (1 << f.man) - 1, 1 << f.man, (1 << f.man) + 1, f.max() - 1, f.max(), f.max() + 1];
        let sample = (0..1000).map(|_| (random.next() % (f.max() as u64)) as i64);
        edges.into_iter().chain(sample).collect()
    };
    let values = indices.iter().flat_map(|&k| [f.magnitude(k), (f.magnitude(k) + f.magnitude(k + 1)) / 2.0]);
    values.chain([f64::MAX, f64::MIN_POSITIVE, 5e-324]).filter(|&x| x > 0.0).collect()
}

fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap()
}

fn nf4_value(code: u64) -> f64 {
    f32::from_bits(formats::NF4[code as usize]) as f64
}

/// Value of a code from its fields, infinities included; `None` for NaN.
fn value(dtype: DType, code: u64) -> Option<f64> {
    if let Some(f) = FORMATS.iter().find(|f| f.dtype == dtype) {
        return f.read(code);
    }
    if let Some(&(_, bits, signed)) = INTEGERS.iter().find(|i| i.0 == dtype) {
        assert!(bits <= 48, "exact in f64");
        return Some(integer_value(code, bits, signed) as f64);
    }
    let x = match dtype {
        F64 => f64::from_bits(code),
        Bool => code as f64,
        MxInt8 => code as u8 as i8 as f64 / 64.0,
        Nf4 => nf4_value(code),
        _ => panic!("{dtype}"),
    };
    (!x.is_nan()).then_some(x)
}

fn narrow_sources() -> Vec<DType> {
    DType::ALL.into_iter().filter(|t| t.is_numeric() && t.code_bits() <= 16).collect()
}

fn codes(dtype: DType) -> std::ops::Range<u64> {
    0..1 << dtype.code_bits()
}

fn integer_range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn integer_value(code: u64, bits: u32, signed: bool) -> i128 {
    let (_, max) = integer_range(bits, signed);
    let n = code as i128;
    if n > max { n - (1 << bits) } else { n }
}

fn low_bits(t: i128, bits: u32) -> u64 {
    t.rem_euclid(1 << bits) as u64
}

fn integer_edges(bits: u32) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let powers =
        (0..bits).flat_map(|b| [8, 11, 24, 53].map(|p| (1u128 << b) + (1u128 << b >> p) + (1u128 << b >> (p - 1))));
    let plain = (0..=bits).map(|b| 1u128 << b);
    let all = powers.chain(plain).flat_map(|n| [n.wrapping_sub(1), n, n + 1]);
    all.flat_map(|n| [n as u64 & mask, (n as u64).wrapping_neg() & mask]).collect()
}

/// Rounds a number to an integer; `None` beyond 2^120.
fn round_to_integer(x: f64, rounding: Rounding) -> Option<i128> {
    let a = x.abs();
    if a >= pow2(120) {
        return None;
    }
    let floor = a.trunc() as i128;
    let rest = a - a.trunc(); // exact
    let magnitude = floor
        + match direction(rounding, x.is_sign_negative()) {
            _ if rest == 0.0 => 0,
            Direction::Toward => 0,
            Direction::Away => 1,
            Direction::Odd => 1 - floor % 2,
            Direction::Nearest { up_on_tie } => match compare(rest, 0.5) {
                Less => 0,
                Equal => up_on_tie.unwrap_or(floor % 2 == 1) as i128,
                Greater => 1,
            },
        };
    Some(if x < 0.0 { -magnitude } else { magnitude })
}

fn spec(src: DType, dst: DType, policy: CastPolicy) -> CastSpec {
    CastSpec { src, dst, policy, undefined: &[], clause: "a test" }
}

/// Resulting code; `None` if the policy refuses the value.
fn cast(src: DType, dst: DType, policy: CastPolicy, code: u64) -> Option<u64> {
    cast_one(&spec(src, dst, policy), code).code()
}

fn float(dtype: DType) -> FloatFormat {
    match dtype.kind() {
        Kind::Float(format) => format,
        _ => panic!("{dtype}"),
    }
}
