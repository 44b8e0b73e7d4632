//! Source elements that are likely to show errors, for any policy.
//!
//! A narrow source has all its elements. A wide source has:
//! - the oracle's boundaries,
//! - the distances of `docs/kernels.md §11` row 4 around values and midpoints of the destination,
//! - products of exponents and significand patterns,
//! - weighted random elements.

use crate::adapter::oracle_type;
use crate::buffers::{Source, width};
use crate::number::{Number, Value};
use crate::oracle;
use crate::random::Random;
use truecast_core::{DType, FloatFormat, Kind, Layout};

/// True if all elements of a type are tested: at most 16 bits.
pub fn is_narrow(dtype: DType) -> bool {
    width(dtype, Layout::Packed) <= 16
}

/// Size of the list for a wide source.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub seed: u64,
    pub n_random: usize,
    /// Approximate limit on the number of elements.
    pub limit: usize,
}

/// All elements of a narrow source, or decision points of a wide source. They are sorted, and none occurs twice.
pub fn elements(src: DType, dst: DType, extent: &Extent) -> Source {
    if is_narrow(src) {
        return Source::all(src);
    }
    let mut random = Random::new(extent.seed, &[src as u64, dst as u64]);
    let mut all = weighted(src, dst, extent.n_random, &mut random);
    all.extend(products(src, dst));
    let mut decisions = distances(src, &decision_points(dst));
    decisions.extend(oracle::boundaries(oracle_type(src), oracle_type(dst)).iter().map(|&c| src.storage_of_code(c)));
    if src == DType::Tf32 {
        // Storage bits that are not part of the code.
        decisions.iter_mut().for_each(|element| *element |= random.bits() & 0x1fff);
    }
    all.extend(decisions);
    all.sort_unstable();
    all.dedup();
    thin(&mut all, src, dst, extent.limit, &mut random);
    Source::new(src, all)
}

/// Keeps about `limit` random elements, all special codes, and the neighborhoods of the ends of the destination's
/// range.
pub fn thin(list: &mut Vec<u64>, src: DType, dst: DType, limit: usize, random: &mut Random) {
    let n = list.len() as u64;
    if n <= limit as u64 {
        return;
    }
    list.retain(|_| random.below(n) < limit as u64);
    list.extend(specials(src));
    if !is_narrow(src) {
        list.extend(distances(src, &ends(dst)));
    }
    list.sort_unstable();
    list.dedup();
}

/// Zeros, smallest and largest magnitudes, infinities, and quiet and signaling NaNs. For an integer type, the ends of
/// its range.
fn specials(src: DType) -> Vec<u64> {
    match src.kind() {
        Kind::Float(f) => {
            let max = f.max_code();
            let magnitudes = [0, 1, f.min_normal_code(), max, max + 1, max + 2, f.magnitude_mask()];
            let magnitudes = magnitudes.into_iter().chain(f.nan_code()).filter(|m| *m <= f.magnitude_mask());
            magnitudes.flat_map(|m| [m, m | f.sign_bit()]).map(|code| src.storage_of_code(code)).collect()
        }
        Kind::Int(f) => [0, 1, -1, f.min(), f.min() + 1, f.max() - 1, f.max()].map(|n| f.code(n)).to_vec(),
        _ => Vec::new(),
    }
}

/// Ends of a destination's range. They are the largest values, values that round to the largest values, the smallest
/// normal and subnormal values, and half of the smallest subnormal.
fn ends(dst: DType) -> Vec<f64> {
    let power = |exp: i32| 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2);
    let magnitudes = match dst.kind() {
        Kind::Float(f) => {
            let (sig, exp) = f.overflow_threshold();
            let max = Value::decode(dst, dst.storage_of_code(f.max_code())).number().map_or(0.0, Number::to_f64);
            vec![max, sig as f64 * power(exp), power(f.emin()), power(f.quantum()), power(f.quantum()) / 2.0]
        }
        Kind::Int(f) => [f.max(), -f.min()].iter().flat_map(|&n| [-0.5, 0.0, 0.5].map(|d| n as f64 + d)).collect(),
        _ => vec![1.0, 2.0],
    };
    magnitudes.into_iter().filter(|m| m.is_finite()).flat_map(|m| [m, -m]).collect()
}

/// Distances in ulps of the source; in ones for integers.
const DISTANCES: [i64; 10] = [0, 1, 2, 3, 1 << 10, 1 << 20, 1 << 27, 1 << 28, (1 << 28) + 1, 1 << 29];

/// Exact values of a destination of at most 16 bits, midpoints between neighbors, and the midpoint above the largest
/// value.
fn decision_points(dst: DType) -> Vec<f64> {
    if !is_narrow(dst) {
        return Vec::new();
    }
    let (from, exact) = (oracle_type(dst), oracle::Policy::default());
    let value = |code| oracle::convert(from, oracle::Type::F64, &exact, code).map(f64::from_bits);
    let mut values: Vec<f64> = (0..1 << dst.code_bits()).filter_map(value).filter(|v| v.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let mut points: Vec<f64> = values.windows(2).map(|w| (w[0] + w[1]) / 2.0).collect();
    if let [first, second, .., before_last, last] = values[..] {
        points.extend([first - (second - first) / 2.0, last + (last - before_last) / 2.0]);
    }
    points.extend(values);
    points
}

/// Elements nearest to some points, and elements at [`DISTANCES`] from them.
fn distances(src: DType, points: &[f64]) -> Vec<u64> {
    let mut all = Vec::with_capacity(points.len() * 2 * DISTANCES.len());
    for &point in points {
        for distance in DISTANCES.into_iter().flat_map(|d| [d, -d]) {
            match src.kind() {
                Kind::Float(_) if src == DType::F64 => all.push(moved(point.to_bits(), distance, 63)),
                Kind::Float(_) if distance.abs() <= 1 << 20 => {
                    all.push(moved((point as f32).to_bits() as u64, distance, 31)); // f32 or tf32
                }
                Kind::Int(f) => {
                    let n = (point as i128).saturating_add(distance.into());
                    if (f.min()..=f.max()).contains(&n) {
                        all.push(f.code(n));
                    }
                }
                _ => {}
            }
        }
    }
    all
}

/// Moves the magnitude in a float's bits by a distance; stops at the smallest and largest magnitude.
fn moved(bits: u64, distance: i64, sign_bit: u32) -> u64 {
    let sign = bits & 1 << sign_bit;
    let magnitude = (bits ^ sign) as i64;
    sign | magnitude.saturating_add(distance).clamp(0, i64::MAX >> (63 - sign_bit)) as u64
}

fn landmarks(dst: DType) -> Vec<i32> {
    let mut centers = vec![0, 24, 31, 32, 53, 63, 64];
    match dst.kind() {
        Kind::Float(f) => centers.extend([f.quantum(), f.emin(), f.emax()]),
        Kind::Int(f) => centers.push(f.bits as i32),
        Kind::Fixed(f) => centers.push(-(f.frac_bits as i32)),
        _ => centers.push(-5),
    }
    let mut all: Vec<i32> = centers.into_iter().flat_map(|c| c - 3..=c + 3).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Exponent fields of a wide float source for [`landmarks`], and fields at the ends of its range.
fn exponent_fields(f: &FloatFormat, dst: DType) -> Vec<u64> {
    let last = (1i32 << f.exp_bits) - 1;
    let inner = landmarks(dst).into_iter().map(|e| e + f.bias as i32).filter(|e| (0..=last).contains(e));
    let mut all: Vec<u64> = inner.chain([0, 1, 2, last - 2, last - 1, last]).map(|e| e as u64).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Products of exponents and significand patterns: one bit set or clear, low or high bits. For integers: sums and
/// differences of two powers of two.
fn products(src: DType, dst: DType) -> Vec<u64> {
    let mut all = Vec::new();
    match src.kind() {
        Kind::Float(f) => {
            let t = f.man_bits as u32;
            let ones = (1u64 << t) - 1;
            let mut patterns = vec![0, ones];
            for bit in 0..t {
                patterns.extend([1 << bit, ones ^ 1 << bit, (1 << bit) - 1, ones << bit & ones]);
            }
            for field in exponent_fields(&f, dst) {
                for pattern in &patterns {
                    let code = field << t | pattern;
                    all.extend([code, code | f.sign_bit()].map(|code| src.storage_of_code(code)));
                }
            }
        }
        Kind::Int(f) => {
            for high in 0..f.bits {
                for low in 0..=high {
                    let (a, b) = (1u64 << high, 1u64 << low);
                    for n in [a, a + (b - 1), a.wrapping_add(b), a - b, !a, !(a + (b - 1)), a.wrapping_sub(b + 1)] {
                        all.extend([n, n.wrapping_neg()].map(|n| n & f.mask()));
                    }
                }
            }
        }
        _ => {}
    }
    all
}

/// Random elements, mostly near the destination's decision points: similar exponents, short significands, sums of two
/// patterns.
fn weighted(src: DType, dst: DType, n: usize, random: &mut Random) -> Vec<u64> {
    let one: Box<dyn Fn(&mut Random) -> u64> = match src.kind() {
        Kind::Float(f) => {
            let fields = exponent_fields(&f, dst);
            Box::new(move |random| {
                let field = match random.below(4) {
                    0 => random.below(1 << f.exp_bits),
                    _ => random.pick(&fields),
                };
                let code = field << f.man_bits | pattern(random, f.man_bits as u32);
                let code = if random.below(2) == 0 { code } else { code | f.sign_bit() };
                src.storage_of_code(code) | if src == DType::Tf32 { random.bits() & 0x1fff } else { 0 }
            })
        }
        Kind::Int(f) => Box::new(move |random| {
            let n_bits = 1 + random.below(f.bits as u64) as u32;
            let n = pattern(random, n_bits) | random.below(2) << (n_bits - 1);
            (if random.below(2) == 0 { n } else { n.wrapping_neg() }) & f.mask()
        }),
        _ => Box::new(|random| random.bits()),
    };
    (0..n).map(|_| one(random)).collect()
}

/// Random pattern of `n_bits` bits: random bits, few ones at the top, a single one, or a sum or difference of two such
/// patterns.
fn pattern(random: &mut Random, n_bits: u32) -> u64 {
    let simple = |random: &mut Random| {
        let any = random.bits() >> (64 - n_bits);
        match random.below(3) {
            0 => any,
            1 => any & u64::MAX << random.below(n_bits as u64),
            _ => 1 << random.below(n_bits as u64),
        }
    };
    let (a, b) = (simple(random), simple(random));
    let bits = match random.below(3) {
        0 => a,
        1 => a.wrapping_add(b),
        _ => a.wrapping_sub(b),
    };
    bits & u64::MAX >> (64 - n_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(limit: usize) -> Extent {
        Extent { seed: 1, n_random: 100, limit }
    }

    /// Every list has the overflow threshold with neighbors, NaN, Inf and zeros.
    #[test]
    fn decisions_survive_thinning() {
        for limit in [0, 1000, usize::MAX] {
            let list = elements(DType::F64, DType::F8E4M3Fn, &extent(limit)).elements;
            for value in [464.0, 448.0, -464.0, 0.0, -0.0, f64::INFINITY, 2f64.powi(-10), f64::NAN] {
                let bits = value.to_bits();
                assert!(list.contains(&bits), "{value} at limit {limit}");
                let near = value.is_finite() && value != 0.0;
                assert!(!near || (list.contains(&(bits + 1)) && list.contains(&(bits - 1))), "around {value}");
            }
            let list = elements(DType::I64, DType::F16, &extent(limit)).elements;
            assert!(list.contains(&65519) && list.contains(&65520) && list.contains(&(1 << 63)), "at limit {limit}");
        }
    }

    #[test]
    fn seeds() {
        let of = |seed| elements(DType::F32, DType::F16, &Extent { seed, n_random: 1000, limit: 5000 }).elements;
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn narrow_sources_give_everything() {
        assert_eq!(elements(DType::U3, DType::F64, &extent(0)).elements, (0..8).collect::<Vec<_>>());
        assert_eq!(elements(DType::Bool, DType::F64, &extent(0)).len(), 256);
        assert_eq!(elements(DType::Bf16, DType::F64, &extent(0)).len(), 65_536);
    }
}
