//! Input of measurements: values of every kind, equal in every run.
//!
//! The speed of slow conversions depends on the values: zeros or a constant would make them look faster than they are.

use fastrand::Rng;
use truecast_core::{DType, FloatFormat, IntFormat, Kind};

/// Elements after which the data repeat: too many for a branch predictor to learn, few enough to be made quickly.
const PERIOD: usize = 1 << 20;

/// Exponents of the floats, limited to the format's range. Both ends of a narrow format's range are included.
const EXPONENTS: std::ops::RangeInclusive<i32> = -16..=15;

/// Fills a buffer with packed elements of a type, up to its last byte.
///
/// Floats have both signs and exponents over 32 binades. One float in 8 has a short fraction, which makes ties and
/// exact values; one in 64 is NaN, an infinity, zero or subnormal. Integers have both signs and every length in bits.
/// For text, which has no packed elements, nothing is written.
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

/// Returns the storage of one random element.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use truecast_core::exact::{Exact, decode};

    const LEN: usize = 1 << 14;

    /// Returns the codes of the first elements, taken from the packed bytes one bit at a time.
    fn codes(dtype: DType) -> Vec<u64> {
        let bits = dtype.storage_bits().unwrap() as usize;
        let mut bytes = vec![0; LEN * bits / 8];
        fill(dtype, &mut bytes);
        let bit = |at: usize| (bytes[at / 8] >> (at % 8) & 1) as u64;
        let storage = |i: usize| (0..bits).map(|j| bit(i * bits + j) << j).sum();
        (0..LEN).map(|i| dtype.code_of_storage(storage(i))).collect()
    }

    #[test]
    fn floats_have_every_kind_of_value() {
        for dtype in DType::ALL {
            let Kind::Float(f) = dtype.kind() else { continue };
            let values: Vec<Exact> = codes(dtype).into_iter().map(|code| decode(dtype, code)).collect();
            let has = |what: fn(&Exact) -> bool| values.iter().any(what);
            assert_eq!(has(|v| matches!(v, Exact::Nan { .. })), f.nan_code().is_some(), "{dtype}");
            assert_eq!(has(|v| matches!(v, Exact::Inf { .. })), f.inf_code().is_some(), "{dtype}");
            assert_eq!(has(|v| matches!(v, Exact::Finite { neg: true, .. })), f.signed, "{dtype}");
            assert!(has(|v| matches!(v, Exact::Finite { neg: false, .. })), "{dtype}");
            let subnormal = |code: &u64| (1..f.min_normal_code()).contains(&(code & f.magnitude_mask()));
            assert_eq!(codes(dtype).iter().any(subnormal), f.has_zero && f.man_bits > 0, "{dtype}");
            let exponents: BTreeSet<u64> =
                codes(dtype).iter().map(|c| (c & f.magnitude_mask()) >> f.man_bits).collect();
            assert!(exponents.len() >= 32.min(1 << f.exp_bits), "{dtype}: {exponents:?}");
        }
    }

    #[test]
    fn some_floats_are_ties() {
        // Halfway between neighbors in bf16, and in f8e4m3fn: one more fraction bit is set, and none after it.
        for kept in [7, 3] {
            let (half, below) = (1u64 << (22 - kept), (1u64 << (23 - kept)) - 1);
            let ties = codes(DType::F32).iter().filter(|code| **code & below == half).count();
            assert!(ties > LEN / 1000, "{kept}: {ties}");
        }
    }

    #[test]
    fn integers_have_every_length_and_sign() {
        for dtype in DType::ALL {
            let Kind::Int(f) = dtype.kind() else { continue };
            let values: Vec<i128> = codes(dtype).into_iter().map(|code| f.value(code)).collect();
            assert_eq!(values.iter().any(|v| *v < 0), f.signed, "{dtype}");
            let lengths: BTreeSet<u32> = values.iter().map(|v| 128 - v.unsigned_abs().leading_zeros()).collect();
            let longest = (f.bits as u32).saturating_sub(f.signed as u32);
            assert!((0..=longest).all(|n| lengths.contains(&n)), "{dtype}: {lengths:?}");
        }
    }
}
