//! What is converted when time is taken: values of every kind, the same in every run.
//!
//! Fast conversions do not depend on values, but slow ones do, and zeros or one constant would flatter them.

use fastrand::Rng;
use truecast_core::{DType, FloatFormat, IntFormat, Kind};

/// Elements after which the data repeat: more than a branch predictor remembers, quickly made.
const PERIOD: usize = 1 << 20;

/// Exponents of the floats, where the format has them: both ends of narrow formats lie well within.
const EXPONENTS: std::ops::RangeInclusive<i32> = -16..=15;

/// Fills a buffer with packed elements of a type; the bits after the last whole period are filled too.
///
/// Floats have both signs, exponents over 32 binades, one in eight a short fraction (ties and exact values), one in 64 is
/// NaN, an infinity, zero or subnormal. Integers have both signs and every length in bits. Text has no elements, and
/// nothing is written.
pub fn fill(dtype: DType, bytes: &mut [u8]) {
    let Some(bits) = dtype.storage_bits() else { return };
    let period = (PERIOD * bits as usize / 8).min(bytes.len());
    let (first, rest) = bytes.split_at_mut(period);
    let mut random = Rng::with_seed(dtype as u64);
    let (mut pending, mut n_pending) = (0u128, 0);
    for byte in &mut *first {
        while n_pending < 8 {
            pending |= (element(dtype, &mut random) as u128) << n_pending;
            n_pending += bits;
        }
        *byte = pending as u8;
        pending >>= 8;
        n_pending -= 8;
    }
    rest.chunks_mut(period.max(1)).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
}

/// The storage of one element.
fn element(dtype: DType, random: &mut Rng) -> u64 {
    let code = match dtype.kind() {
        Kind::Float(f) => float(&f, random),
        Kind::Int(f) => int(&f, random),
        _ => random.u64(..) >> (64 - dtype.code_bits()),
    };
    dtype.storage_of_code(code)
}

fn float(f: &FloatFormat, random: &mut Rng) -> u64 {
    let fraction_mask = (1 << f.man_bits) - 1;
    let magnitude = if random.u8(..64) == 0 {
        match random.u8(..4) {
            0 => f.nan_code().unwrap_or(0),
            1 => f.inf_code().unwrap_or(f.max_code()),
            2 => 0,
            _ => random.u64(..=fraction_mask),
        }
    } else {
        let exponent = random.i32(f.emin().max(*EXPONENTS.start())..=f.emax().min(*EXPONENTS.end()));
        let kept = if random.u8(..8) == 0 { random.u8(..=f.man_bits) } else { f.man_bits };
        let fraction = random.u64(..) & fraction_mask & !(fraction_mask >> kept);
        (((exponent + f.bias as i32) as u64) << f.man_bits | fraction).min(f.max_code())
    };
    if random.bool() { magnitude | f.sign_bit() } else { magnitude }
}

fn int(f: &IntFormat, random: &mut Rng) -> u64 {
    let n_bits = random.u8(1..=f.bits);
    let magnitude = random.u64(..) >> (64 - n_bits);
    let is_negative = f.signed && random.bool();
    (if is_negative { magnitude.wrapping_neg() } else { magnitude }) & f.mask()
}
