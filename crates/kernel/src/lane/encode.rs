//! f32 bits to any narrower float: nearest even by one lane, every rounding by another, E8M0 by a third.
//! Source: `docs/kernels.md §4.2` to §4.8.
//!
//! The input is the f32 hub: the source itself, or a value that reached f32 exactly or rounded to odd (§3).

use super::{F32_INF, F32Parts, Increments, Lane, Reach, f32_parts};
use crate::slot::Slot;
use std::marker::PhantomData;
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, NanRule, RangeTest, Unrepresentable};
use truecast_core::round::Remainder;
use truecast_core::{DType, Exact, FloatFormat, Specials};

/// The codes that no arithmetic gives, by sign, asked of the definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecialCodes {
    /// Finite overflow.
    pub over: [u64; 2],
    /// Source Inf.
    pub inf: [u64; 2],
    /// NaN without payload.
    pub nan: [u64; 2],
    /// Bits of a payload that may be set in a NaN.
    pub payload_mask: u64,
}

impl SpecialCodes {
    /// `None` if the policy refuses one of them.
    pub fn new(dst: DType, f: &FloatFormat, policy: &CastPolicy) -> Option<Self> {
        let both = |value: fn(bool) -> Exact| -> Option<[u64; 2]> {
            let code = |neg| encode(dst, policy, value(neg)).code;
            Some([code(false)?, code(true)?])
        };
        let keeps_payload = f.specials == Specials::Ieee && policy.nan == NanRule::Keep;
        Some(Self {
            over: both(|neg| Exact::Finite { neg, sig: 1, exp: 4096, sticky: false })?,
            inf: both(|neg| Exact::Inf { neg })?,
            nan: both(|neg| Exact::Nan { neg, payload: None })?,
            payload_mask: if keeps_payload { (1 << f.man_bits) - 1 } else { 0 },
        })
    }
}

/// Numbers of an encoder, `docs/kernels.md §4.2`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder {
    shift: u32,
    half: u32,
    rebias: u32,
    min_normal: u32,
    over_from: u32,
    over: [u32; 2],
    inf: [u32; 2],
    nan: [u32; 2],
    payload_mask: u32,
    sign_pos: u32,
    /// 0 in a format without sign, whose magnitudes are rounded as positive values.
    signed: u32,
    /// 0 where a zero result loses its sign.
    zero_sign: u32,
    man_bits: u32,
    /// f32's biased exponent of the destination's smallest normal, `128 - bias` for a destination with subnormals.
    base: u32,
    max_code: u32,
    /// What a negative value becomes in an unsigned format whose policy does not convert its magnitude.
    negative: Option<u32>,
    increments: Increments,
    /// Position of the code in its storage (13 for tf32).
    place: u32,
}

/// Makes 2^(e + shift), whose ulp is that of the result in binade 2^e, and of which the lowest bits cancel the code that
/// the exponent of the lowest binade would add.
const fn magic(lowest_binade: u32, shift: u32) -> u32 {
    (shift << 23) + (lowest_binade >> shift).wrapping_neg() % (1 << 16)
}

const fn pow2_bits(e: i32) -> u32 {
    if e >= -126 { ((e + 127) as u32) << 23 } else { 1 << (e + 149) }
}

impl Encoder {
    /// `None` if the policy refuses values. It must not flush subnormals or test the range of the source.
    pub fn new(dst: DType, f: &FloatFormat, policy: &CastPolicy) -> Option<Self> {
        let t = f.man_bits as u32;
        assert!(
            (1..=22).contains(&t) && f.bias <= 127 && f.has_zero,
            "docs/kernels.md §4.2: preconditions of an encoder"
        );
        let same_range = f.bias == 127;
        assert!(same_range || f.quantum() >= -125, "docs/kernels.md §4.2: preconditions of an encoder");
        let special = SpecialCodes::new(dst, f, policy)?;
        let negative = match policy.negative {
            _ if f.signed => None,
            Unrepresentable::Magnitude => None,
            _ => Some(encode(dst, policy, Exact::Finite { neg: true, sig: 1, exp: 0, sticky: false }).code? as u32),
        };
        let shift = 23 - t;
        let rebias = ((127 - f.bias) as u32) << 23;
        let max = f.max_code() as u32;
        let narrow = |codes: [u64; 2]| codes.map(|c| c as u32);
        Some(Self {
            shift,
            half: (1 << (shift - 1)) - 1,
            rebias,
            min_normal: if same_range { 0 } else { pow2_bits(f.emin()) },
            // §4.4: the threshold itself stays at an even maximum.
            over_from: (max << shift) + rebias + (1 << (shift - 1)) + (max & 1 == 0) as u32,
            over: narrow(special.over),
            inf: narrow(special.inf),
            nan: narrow(special.nan),
            payload_mask: special.payload_mask as u32,
            sign_pos: if f.signed { f.bits() - 1 } else { 31 },
            signed: f.signed as u32,
            zero_sign: f.has_negative_zero() as u32,
            man_bits: t,
            base: (128 - f.bias) as u32,
            max_code: max,
            negative,
            increments: Increments::new(policy.to_float),
            place: dst.storage_bits().unwrap_or(0).saturating_sub(f.bits()) * (dst == DType::Tf32) as u32,
        })
    }

    /// The numbers of [`EncodeNearest`], if the codes of overflow, Inf and NaN have a form that it knows.
    pub fn nearest(&self) -> Option<Nearest> {
        let sign = 1 << self.sign_pos;
        let mirrored = |codes: [u32; 2]| codes[1] == codes[0] | sign;
        // Magnitudes are cut to the largest that rounds to the maximum, or to the smallest that rounds to the code above
        // it, where that is what overflow gives (the code of Inf, or of the only NaN).
        let next = self.over == [self.max_code + 1, (self.max_code + 1) | sign];
        let cap = self.over_from - !next as u32;
        let by_cap = |codes: [u32; 2]| codes == self.over && mirrored(codes) && (next || codes[0] == self.max_code);
        let special_from = match (by_cap(self.over), by_cap(self.inf), by_cap(self.nan)) {
            (true, true, true) => u32::MAX,
            (true, true, false) => F32_INF + 1,
            (true, false, _) if self.inf == self.nan => F32_INF,
            (false, ..) if self.over == self.nan && self.inf == self.nan => self.over_from,
            _ => return None,
        };
        let flips = self.nan[0] ^ self.nan[1];
        let plain = self.signed == 1 && self.negative.is_none() && flips & !sign == 0;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let upper = self.min_normal == 0 && next && self.inf == self.over && mirrored(self.nan);
        let shape = flag(self.min_normal != 0, shape::SUBNORMALS)
            | flag(upper, shape::UPPER_BITS)
            | flag(self.zero_sign == 1, shape::NEGATIVE_ZERO)
            | flag(special_from != u32::MAX, shape::SPECIAL)
            | flag(self.payload_mask != 0, shape::PAYLOAD);
        plain.then_some(Nearest {
            shape,
            is_ieee_f16: self.is_ieee_f16(),
            cap,
            shift: self.shift,
            half: self.half.wrapping_sub(self.rebias),
            lowest_binade: self.min_normal,
            magic: magic(self.min_normal, self.shift),
            sign_shift: 31 - self.sign_pos,
            sign,
            special_from,
            special: self.nan[0],
            special_sign: flips,
            payload_mask: self.payload_mask,
            place: self.place,
        })
    }

    /// Whether a negative value has a code of its own: in an unsigned format whose policy does not convert magnitudes.
    pub fn replaces_negative(&self) -> bool {
        self.negative.is_some()
    }

    /// Whether overflow and Inf become f16's Inf and NaN the quiet one, as its instruction makes them.
    fn is_ieee_f16(&self) -> bool {
        const INF: [u32; 2] = [0x7c00, 0xfc00];
        self.man_bits == 10
            && self.over == INF
            && self.inf == INF
            && self.nan == [0x7e00, 0xfe00]
            && self.zero_sign == 1
    }
}

/// What the nearest-even encoder has to do, as bits of a const parameter: the loop contains nothing else.
pub(crate) mod shape {
    /// Some of the destination's values are subnormal where f32's are normal.
    pub const SUBNORMALS: u8 = 1;
    /// A zero keeps its sign.
    pub const NEGATIVE_ZERO: u8 = 2;
    /// Some magnitudes (NaN, mostly) have a code of their own.
    pub const SPECIAL: u8 = 4;
    /// That code takes the leading payload bits.
    pub const PAYLOAD: u8 = 8;
    /// The code is the upper bits of the f32, rounded, sign and overflow included; a NaN takes what `payload_mask` says.
    pub const UPPER_BITS: u8 = 16;

    // The shapes that types and policies have.
    pub const SUBNORMAL: u8 = SUBNORMALS | NEGATIVE_ZERO;
    pub const SUBNORMAL_SPECIAL: u8 = SUBNORMAL | SPECIAL;
    pub const SUBNORMAL_PAYLOAD: u8 = SUBNORMAL_SPECIAL | PAYLOAD;
    pub const UNSIGNED_ZERO: u8 = SUBNORMALS;
    pub const UNSIGNED_ZERO_SPECIAL: u8 = UNSIGNED_ZERO | SPECIAL;
    pub const SAME_RANGE_SPECIAL: u8 = NEGATIVE_ZERO | SPECIAL;
    pub const SAME_RANGE_PAYLOAD: u8 = SAME_RANGE_SPECIAL | PAYLOAD;
    pub const UPPER: u8 = SAME_RANGE_SPECIAL | UPPER_BITS;
    pub const UPPER_PAYLOAD: u8 = SAME_RANGE_PAYLOAD | UPPER_BITS;
}

/// Numbers of [`EncodeNearest`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearest {
    /// Bits of [`shape`].
    pub shape: u8,
    /// Overflow and Inf become f16's Inf and NaN the quiet one, as the instruction that converts to f16 makes them.
    pub is_ieee_f16: bool,
    /// Larger magnitudes give the code of this one.
    pub cap: u32,
    pub shift: u32,
    /// One half of a unit less one, and the change of bias.
    pub half: u32,
    /// The exponent bits of the smallest normal.
    pub lowest_binade: u32,
    /// Added to the bits of a binade, it makes the magic number.
    pub magic: u32,
    pub sign_shift: u32,
    pub sign: u32,
    /// Magnitudes from here on get `special`.
    pub special_from: u32,
    pub special: u32,
    /// The sign bit, if it flips that of `special`.
    pub special_sign: u32,
    /// Fraction bits that `special` takes.
    pub payload_mask: u32,
    /// Position of the code in its storage (13 for tf32).
    pub place: u32,
}

/// Nearest even, §4.3. `SHAPE` is that of the numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeNearest<D, const SHAPE: u8>(pub Nearest, pub PhantomData<D>);

impl<D: Slot, const SHAPE: u8> Lane for EncodeNearest<D, SHAPE> {
    const UP_TO: Reach = match D::BYTES {
        1 => Reach::Baseline,
        2 if SHAPE & shape::UPPER_BITS != 0 => Reach::Baseline,
        _ => Reach::All,
    };
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn one(&self, x: u32) -> D {
        let has = |flag: u8| SHAPE & flag != 0;
        let p = &self.0;
        if has(shape::UPPER_BITS) {
            let upper = x >> p.shift;
            let rounded = x.wrapping_add(p.half).wrapping_add(upper & 1) >> p.shift;
            let nan = (upper & (p.sign | p.payload_mask)) | p.special;
            let r = if f32::from_bits(x).is_nan() { nan } else { rounded };
            return D::low(if D::BYTES == 4 { r << p.place } else { r } as u64);
        }
        let abs = x & 0x7fff_ffff;
        let capped = abs.min(p.cap);
        let mut r = if has(shape::SUBNORMALS) {
            // The magic number lies in the binade whose ulp is that of the result: the addition rounds to a multiple of
            // it, ties to even. Bits above the code are left over, and lost when it is stored.
            let binade = (capped & F32_INF).max(p.lowest_binade);
            let sum = f32::from_bits(capped) + f32::from_bits(binade.wrapping_add(p.magic));
            sum.to_bits().wrapping_add(binade >> p.shift)
        } else {
            capped.wrapping_add(p.half).wrapping_add((capped >> p.shift) & 1) >> p.shift
        };
        let sign = (x >> p.sign_shift) & p.sign;
        r |= if has(shape::NEGATIVE_ZERO) || r & (p.sign - 1) != 0 { sign } else { 0 };
        if has(shape::SPECIAL) {
            let payload = if has(shape::PAYLOAD) { (abs >> p.shift) & p.payload_mask } else { 0 };
            let special = (p.special | payload) ^ (sign & p.special_sign);
            r = if abs >= p.special_from { special } else { r };
        }
        if D::BYTES == 4 {
            r = (r & (2 * p.sign - 1)) << p.place;
        }
        D::low(r as u64)
    }
}

/// Any rounding and any policy that has an [`Encoder`], §4.5. `NEGATIVE`: [`Encoder::replaces_negative`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeAny<D, const NEGATIVE: bool>(pub Encoder, pub PhantomData<D>);

impl<D: Slot, const NEGATIVE: bool> Lane for EncodeAny<D, NEGATIVE> {
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn one(&self, x: u32) -> D {
        let p = &self.0;
        let F32Parts { neg, abs, sig, exp } = f32_parts(x);
        let by_sign = |codes: [u32; 2]| if neg != 0 { codes[1] } else { codes[0] };
        let s = (p.shift + p.base.saturating_sub(exp)).min(31);
        let up = exp.saturating_sub(p.base) << p.man_bits;
        // `n` holds the hidden bit and `up` the biased exponent minus one, so a carry needs no special case.
        let (n, rest) = (sig >> s, sig & ((1u32 << s) - 1));
        let floor = n.wrapping_add(up);
        let code = floor.wrapping_add(p.increments.of_u32(neg & p.signed, floor & 1, rest, 1 << (s - 1)));
        let sign = if p.zero_sign != 0 || code != 0 { (neg & p.signed) << p.sign_pos } else { 0 };
        let mut r = if code > p.max_code { by_sign(p.over) } else { code | sign };
        if NEGATIVE {
            r = if neg != 0 && abs != 0 { p.negative.unwrap_or(r) } else { r };
        }
        r = if abs == F32_INF { by_sign(p.inf) } else { r };
        let payload = (abs >> p.shift) & p.payload_mask;
        r = if abs > F32_INF { by_sign(p.nan) | payload } else { r };
        D::low((r << p.place) as u64)
    }
}

/// To E8M0, any rounding, §4.8. Codes are those of the definition for each class of source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeE8m0 {
    /// What is added before the fraction is dropped, where the kept code is even and where it is odd: E8M0 has no sign,
    /// so that every rounding is one of these sums.
    addends: [u32; 2],
    /// Magnitudes from here on overflow (f32 bits).
    over_from: u32,
    /// Magnitudes below this vanish.
    vanish_below: u32,
    over: u32,
    vanish: u32,
    zero: u32,
    nan: u32,
    inf: [u32; 2],
    /// 1 if a negative value gets a code of its own instead of its magnitude's, and that code.
    replaces_negative: [u32; 2],
}

const E8M0_MAX: u32 = 254;
const E8M0_MIN_BITS: u32 = 0x0040_0000; // 2^-127
const E8M0_MAX_BITS: u32 = 0x7f00_0000; // 2^127

impl EncodeE8m0 {
    /// `None` if the policy refuses values, and for any format but E8M0.
    pub fn new(dst: DType, f: &FloatFormat, policy: &CastPolicy) -> Option<Self> {
        if *f != truecast_core::format::F8E8M0 {
            return None; // another format without zero: the definition converts it
        }
        let special = SpecialCodes::new(dst, f, policy)?;
        let code = |value| Some(encode(dst, policy, value).code? as u32);
        let finite = |neg, sig, exp| Exact::Finite { neg, sig, exp, sticky: false };
        // What vanishes by rounding is asked with a rounding that makes it vanish.
        let vanishing = CastPolicy { to_float: truecast_core::Rounding::TowardZero, ..*policy };
        let addends = [false, true].map(|odd| {
            let grows = |rest| policy.to_float.increments(false, odd, rest);
            match (grows(Remainder::BelowHalf), grows(Remainder::Half), grows(Remainder::AboveHalf)) {
                (true, ..) => 0x007f_ffff,
                (false, true, _) => 0x0040_0000,
                (false, false, true) => 0x003f_ffff,
                (false, false, false) => 0,
            }
        });
        // 2^127 has the even code 254, and below 2^-127 there is only "nothing", code -1, which is odd.
        let mut over_from = E8M0_MAX_BITS + (1 << 23) - addends[0];
        let mut vanish_below = ((1 << 23) - addends[1]).div_ceil(2);
        if policy.range == RangeTest::Source {
            (over_from, vanish_below) = (E8M0_MAX_BITS + 1, E8M0_MIN_BITS);
        }
        Some(Self {
            addends,
            over_from: over_from.min(F32_INF),
            vanish_below,
            over: special.over[0] as u32,
            vanish: encode(dst, &vanishing, finite(false, 1, -200)).code? as u32,
            zero: code(finite(false, 0, 0))?,
            nan: special.nan[0] as u32,
            inf: special.inf.map(|c| c as u32),
            replaces_negative: match policy.negative {
                Unrepresentable::Magnitude => [0, 0],
                _ => [1, code(finite(true, 1, 0))?],
            },
        })
    }
}

impl Lane for EncodeE8m0 {
    type Src = u32;
    type Dst = u8;
    #[inline(always)]
    fn one(&self, x: u32) -> u8 {
        let (neg, b) = (x >> 31, x & 0x7fff_ffff);
        // Below 2^-126 the exponent field is 0 and the leading bit is part of the fraction.
        let v = if b < 0x0080_0000 { (b << 1).wrapping_sub(0x0080_0000) } else { b };
        let addend = if v & 0x0080_0000 != 0 { self.addends[1] } else { self.addends[0] };
        let mut r = v.wrapping_add(addend) >> 23;
        r = if b < self.vanish_below { self.vanish } else { r };
        r = if b >= self.over_from { self.over } else { r };
        r = if neg & self.replaces_negative[0] != 0 { self.replaces_negative[1] } else { r };
        r = if b == 0 { self.zero } else { r };
        r = if b == F32_INF { if neg != 0 { self.inf[1] } else { self.inf[0] } } else { r };
        r = if b > F32_INF { self.nan } else { r };
        r as u8
    }
}

/// [`EncodeE8m0`] where what vanishes gets the smallest code, and overflow the largest or the one above it: magnitudes are
/// cut to those that have these codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeE8m0Cut {
    pub addends: [u32; 2],
    pub floor: u32,
    pub cap: u32,
    pub special_from: u32,
    pub special: u32,
    pub replaces_negative: [u32; 2],
}

impl EncodeE8m0 {
    /// The same by fewer steps, if the codes allow it.
    pub fn cut(&self) -> Option<EncodeE8m0Cut> {
        let EncodeE8m0 { addends, over_from, vanish_below, over, vanish, zero, nan, inf, replaces_negative } = *self;
        let next = over == E8M0_MAX + 1;
        let below_zero = if replaces_negative[0] != 0 { replaces_negative[1] } else { over };
        let special_from = match (inf == [over, below_zero], nan == over) {
            (true, true) => u32::MAX,
            (true, false) => F32_INF + 1,
            (false, _) if inf == [nan; 2] => F32_INF,
            _ => return None,
        };
        let fits = (vanish, zero) == (0, 0) && (next || over == E8M0_MAX);
        fits.then_some(EncodeE8m0Cut {
            addends,
            floor: vanish_below.max(1),
            cap: over_from - !next as u32,
            special_from,
            special: nan,
            replaces_negative,
        })
    }
}

impl Lane for EncodeE8m0Cut {
    const UP_TO: Reach = Reach::Avx2;
    type Src = u32;
    type Dst = u8;
    #[inline(always)]
    fn one(&self, x: u32) -> u8 {
        let abs = x & 0x7fff_ffff;
        let b = abs.max(self.floor).min(self.cap);
        // As in the other lane.
        let v = if b < 0x0080_0000 { (b << 1).wrapping_sub(0x0080_0000) } else { b };
        let addend = if v & 0x0080_0000 != 0 { self.addends[1] } else { self.addends[0] };
        let mut r = v.wrapping_add(addend) >> 23;
        // Negative, but neither -0 nor NaN.
        let [replaces, negative] = self.replaces_negative;
        let below_zero = x.wrapping_sub(0x8000_0001) < F32_INF;
        r = if below_zero & (replaces != 0) { negative } else { r };
        r = if abs >= self.special_from { self.special } else { r };
        r as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::format::F8E8M0;

    /// Planning one is not an error: the definition converts it.
    #[test]
    fn another_format_without_zero_has_no_lane() {
        let lane = |f| EncodeE8m0::new(DType::F8E8M0, &f, &CastPolicy::IEEE);
        assert!(lane(F8E8M0).is_some());
        assert!(lane(FloatFormat { exp_bits: 7, man_bits: 1, ..F8E8M0 }).is_none());
        assert!(lane(FloatFormat { bias: 120, ..F8E8M0 }).is_none());
    }
}
