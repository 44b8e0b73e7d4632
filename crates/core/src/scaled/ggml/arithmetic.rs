//! Arithmetic of ggml, bit for bit also outside the range that it is meant for.

/// 1.5 * 2^23. A sum with it is an integer, which the low 22 bits of the sum hold.
const ROUNDER: f32 = 12_582_912.0;

/// Nearest integer, ties to even. Beyond 2^22 the result wraps; NaN gives 0, an infinity -2^22.
#[inline(always)]
pub(super) fn nearest(x: f32) -> i32 {
    ((x + ROUNDER).to_bits() & 0x007f_ffff) as i32 - 0x0040_0000
}

/// Nearest integer of `x`, limited to `least ..= most`.
#[inline(always)]
pub(super) fn limited(x: f32, least: i32, most: i32) -> i32 {
    nearest(x).min(most).max(least)
}

/// Integer part of `x`, wrapped to a byte; 0 for negative values, NaN, and values from 2^22 on.
#[inline(always)]
pub(super) fn truncated(x: f32) -> i8 {
    let rounded = (x + ROUNDER) - ROUNDER;
    let whole = nearest(x) - i32::from(rounded > x);
    (if (0.0..4_194_304.0).contains(&x) { whole } else { 0 }) as i8
}

/// `1 / x`, but 0 for a zero.
#[inline(always)]
pub(super) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// Square root of a sum of squares, rounded once.
#[inline(always)]
pub(super) fn square_root(x: f32) -> f32 {
    let bits = x.to_bits();
    if bits == 0 || bits >= 0x7f80_0000 {
        return x;
    }
    // x = significand * 2^exponent, with 51 or 52 significant bits and an even exponent.
    let field = (bits >> 23) as i32;
    let significand = u64::from(bits & 0x007f_ffff | if field == 0 { 0 } else { 0x0080_0000 });
    let shift = significand.leading_zeros() as i32 - 12;
    let exponent = field.max(1) - 150 - shift;
    let (shift, exponent) = if exponent % 2 == 0 { (shift, exponent) } else { (shift - 1, exponent + 1) };
    let square = significand << shift;
    let root = square.isqrt();
    // A sticky bit far below the 24 bits of the result, so that the conversion below is the only rounding.
    let with_sticky = root << 1 | u64::from(root * root != square);
    with_sticky as f32 * f32::from_bits(((exponent / 2 - 1 + 127) as u32) << 23)
}

/// Nearest f16, ties to even. Beyond the range it is infinite, and NaN is quiet with the sign of `x`.
#[must_use]
#[inline(always)]
pub fn to_half(x: f32) -> u16 {
    let (sign, magnitude) = (x.to_bits() >> 16 & 0x8000, x.to_bits() & 0x7fff_ffff);
    let code = if magnitude > 0x7f80_0000 {
        0x7e00
    } else if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude >= 0x3880_0000 {
        let even = magnitude >> 13 & 1;
        (magnitude - (112 << 23) + 0x0fff + even) >> 13
    } else {
        // The last bit of 0.5 is the smallest f16.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000
    };
    (sign | code) as u16
}

/// Value of an f16: a product, which is exact, moves the exponent.
#[must_use]
#[inline(always)]
pub fn from_half(code: u16) -> f32 {
    const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
    let (sign, magnitude) = (u32::from(code & 0x8000) << 16, u32::from(code & 0x7fff) << 13);
    let is_finite = magnitude < 0x7c00 << 13;
    let value = if is_finite { (f32::from_bits(magnitude) * TWO_TO_112).to_bits() } else { magnitude | 0x7f80_0000 };
    f32::from_bits(sign | value)
}

/// Half the value of an unsigned E4M3 code (§9.5). The sign bit is ignored; 7F means 0.
#[must_use]
#[inline(always)]
pub fn half_of_ue4m3(code: u8) -> f32 {
    const TWO_TO_119: f32 = f32::from_bits((127 + 119) << 23);
    if code == 0x7f { 0.0 } else { f32::from_bits(u32::from(code & 0x7f) << 20) * TWO_TO_119 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast_one;
    use crate::dtype::DType;
    use crate::policy::{CastPolicy, CastSpec};

    #[test]
    fn halves_are_those_of_the_definition() {
        let spec = |src, dst| CastSpec { src, ..CastSpec::copy(dst) };
        let narrow = CastSpec { policy: CastPolicy::IEEE, ..spec(DType::F32, DType::F16) };
        for code in 0..=u16::MAX {
            let value = from_half(code);
            if !value.is_nan() {
                let wide = cast_one(&spec(DType::F16, DType::F32), code.into()).code();
                assert_eq!(Some(value.to_bits().into()), wide, "{code:#x}");
                // The neighbors of the value, and of the middle to the next.
                let middle = value.to_bits().wrapping_add(0x1000);
                for bits in
                    [value.to_bits(), middle].into_iter().flat_map(|bits| [bits.wrapping_sub(1), bits, bits + 1])
                {
                    if !f32::from_bits(bits).is_nan() {
                        let expected = cast_one(&narrow, bits.into()).code();
                        assert_eq!(Some(to_half(f32::from_bits(bits)).into()), expected, "{bits:#x}");
                    }
                }
            }
        }
        for bits in (0..=24).flat_map(|shift| [0x3300_0000u32 + (1 << shift), 0x3880_0000 - (1 << shift)]) {
            assert_eq!(Some(to_half(f32::from_bits(bits)).into()), cast_one(&narrow, bits.into()).code(), "{bits:#x}");
        }
    }

    #[test]
    fn square_roots_are_those_of_the_machine() {
        for i in 0..0x7f80u32 {
            let x = f32::from_bits(i << 16 | i.wrapping_mul(0x9e37) & 0xffff);
            assert_eq!(square_root(x).to_bits(), x.sqrt().to_bits(), "{x:e}");
        }
        for x in [0.0, 1.0, 4.0, f32::from_bits(1), f32::from_bits(0x007f_ffff), f32::MAX, f32::INFINITY] {
            assert_eq!(square_root(x).to_bits(), x.sqrt().to_bits(), "{x:e}");
        }
    }
}
