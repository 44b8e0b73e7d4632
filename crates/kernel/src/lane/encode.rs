//! f32 bits to any narrower float: nearest even by one lane, every rounding by another, E8M0 by a third.
//! Source: `docs/kernels.md §4.2` to §4.8.
//!
//! The input is the f32 hub: the source itself, or a value that reached f32 exactly or rounded to odd (§3).

use super::{F32_INF, F32Parts, Increments, Lane, f32_parts};
use crate::level::Level;
use crate::slot::Slot;
#[cfg(target_arch = "x86_64")]
use crate::x86::half;
use std::marker::PhantomData;
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, NanRule, RangeTest, Unrepresentable};
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
    magic: u32,
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
            magic: if same_range { 0 } else { pow2_bits(f.quantum() + 23) },
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

    /// Which shape of [`EncodeNearest`] computes this, if any.
    pub fn shape(&self) -> Shape {
        let sign = 1 << self.sign_pos;
        let mirrored = |codes: [u32; 2]| codes[1] == codes[0] | sign;
        match (mirrored(self.over) && mirrored(self.inf), self.zero_sign, self.payload_mask != 0) {
            (false, ..) => Shape::Other,
            (true, 1, true) => Shape::Payload,
            (true, 1, false) => Shape::SignedZero,
            (true, _, false) => Shape::UnsignedZero,
            (true, _, true) => Shape::Other,
        }
    }
}

/// The const-generic part of the nearest-even encoder: what its last selects look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Has -0; NaN keeps its payload.
    Payload,
    /// Has -0; NaN is one of two codes.
    SignedZero,
    /// No -0; NaN is one of two codes.
    UnsignedZero,
    /// Only [`EncodeAny`] will do.
    Other,
}

/// Nearest even, §4.3. `PAYLOAD` and `NEG_ZERO` are the [`Shape`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeNearest<D, const PAYLOAD: bool, const NEG_ZERO: bool>(pub Encoder, pub PhantomData<D>);

impl<D: Slot, const PAYLOAD: bool, const NEG_ZERO: bool> Lane for EncodeNearest<D, PAYLOAD, NEG_ZERO> {
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn one(&self, x: u32) -> D {
        let p = &self.0;
        let abs = x & 0x7fff_ffff;
        let sign = (x >> 31) << p.sign_pos;
        let parity = (abs >> p.shift) & 1;
        let normal = abs.wrapping_sub(p.rebias).wrapping_add(p.half + parity) >> p.shift;
        // The sum lies in the binade whose ulp is 2^q: the addition rounds to a multiple of it, ties to even.
        let sub = (f32::from_bits(abs) + f32::from_bits(p.magic)).to_bits().wrapping_sub(p.magic);
        let mut r = if abs < p.min_normal { sub } else { normal };
        r = if abs >= p.over_from { p.over[0] } else { r };
        r = if abs == F32_INF { p.inf[0] } else { r };
        r |= if NEG_ZERO || r != 0 { sign } else { 0 };
        let nan = if PAYLOAD {
            p.nan[0] | ((abs >> p.shift) & p.payload_mask) | sign
        } else if x >> 31 != 0 {
            p.nan[1]
        } else {
            p.nan[0]
        };
        r = if abs > F32_INF { nan } else { r };
        D::low((r << p.place) as u64)
    }
}

/// f16 where overflow and Inf become Inf, nearest even: [`EncodeNearest`] or the conversion instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeF16<const PAYLOAD: bool>(EncodeNearest<u16, PAYLOAD, true>);

impl<const PAYLOAD: bool> EncodeF16<PAYLOAD> {
    /// `None` if the policy asks for other codes than those of the instruction.
    pub fn new(encoder: Encoder) -> Option<Self> {
        const INF: [u32; 2] = [0x7c00, 0xfc00];
        let Encoder { over, inf, nan, payload_mask, .. } = encoder;
        let shape = over == INF && inf == INF && nan == [0x7e00, 0xfe00];
        (shape && (payload_mask != 0) == PAYLOAD).then_some(Self(EncodeNearest(encoder, PhantomData)))
    }
}

impl<const PAYLOAD: bool> Lane for EncodeF16<PAYLOAD> {
    type Src = u32;
    type Dst = u16;
    #[inline(always)]
    fn one(&self, x: u32) -> u16 {
        self.0.one(x)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn by_hand(&self, level: Level, src: &[u8], dst: &mut [u8]) -> usize {
        match level {
            Level::Baseline => 0,
            Level::Avx2(token) => half::encode_avx2(token, PAYLOAD, src, dst),
            Level::Avx512(token) => half::encode_avx512(token, PAYLOAD, src, dst),
        }
    }
}

/// Any rounding and any policy that has an [`Encoder`], §4.5.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeAny<D>(pub Encoder, pub PhantomData<D>);

impl<D: Slot> Lane for EncodeAny<D> {
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
        r = match p.negative {
            Some(negative) if neg != 0 && abs != 0 => negative,
            _ => r,
        };
        r = if abs == F32_INF { by_sign(p.inf) } else { r };
        let payload = (abs >> p.shift) & p.payload_mask;
        r = if abs > F32_INF { by_sign(p.nan) | payload } else { r };
        D::low((r << p.place) as u64)
    }
}

/// To E8M0, any rounding, §4.8. Codes are those of the definition for each class of source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeE8m0 {
    increments: Increments,
    /// Magnitudes above this overflow whatever the rounding (f32 bits).
    above: u32,
    /// Magnitudes below this vanish whatever the rounding.
    below: u32,
    over: u32,
    vanish: u32,
    zero: u32,
    nan: u32,
    inf: [u32; 2],
    /// What a negative value becomes, unless its magnitude is converted.
    negative: Option<u32>,
}

const E8M0_MAX: u32 = 254;
const E8M0_MIN_BITS: u32 = 0x0040_0000; // 2^-127
const E8M0_MAX_BITS: u32 = 0x7f00_0000; // 2^127

impl EncodeE8m0 {
    /// `None` if the policy refuses values.
    pub fn new(dst: DType, f: &FloatFormat, policy: &CastPolicy) -> Option<Self> {
        assert!(!f.has_zero && f.man_bits == 0 && f.bias == 127, "this lane knows E8M0 only");
        let special = SpecialCodes::new(dst, f, policy)?;
        let code = |value| Some(encode(dst, policy, value).code? as u32);
        let finite = |neg, sig, exp| Exact::Finite { neg, sig, exp, sticky: false };
        let source = policy.range == RangeTest::Source;
        // What vanishes by rounding is asked with a rounding that makes it vanish.
        let vanishing = CastPolicy { to_float: truecast_core::Rounding::TowardZero, ..*policy };
        Some(Self {
            increments: Increments::new(policy.to_float),
            above: if source { E8M0_MAX_BITS } else { u32::MAX },
            below: if source { E8M0_MIN_BITS } else { 0 },
            over: special.over[0] as u32,
            vanish: encode(dst, &vanishing, finite(false, 1, -200)).code? as u32,
            zero: code(finite(false, 0, 0))?,
            nan: special.nan[0] as u32,
            inf: special.inf.map(|c| c as u32),
            negative: match policy.negative {
                Unrepresentable::Magnitude => None,
                _ => Some(code(finite(true, 1, 0))?),
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
        // Below 2^-126 the exponent field is 0: 2^-127 is 00400000, and below it there is only "nothing", code -1.
        let small = b < 0x0080_0000;
        let floor = if small { (b >> 22).wrapping_sub(1) } else { b >> 23 };
        let rest = if small { (b & 0x003f_ffff) << 1 } else { b & 0x007f_ffff };
        let code = floor.wrapping_add(self.increments.of_u32(0, floor & 1, rest, 1 << 22));
        let mut r = code;
        r = if b > self.above || code.wrapping_add(1) > E8M0_MAX + 1 { self.over } else { r };
        r = if b < self.below || code == u32::MAX { self.vanish } else { r };
        r = match self.negative {
            Some(negative) if neg != 0 => negative,
            _ => r,
        };
        r = if b == 0 { self.zero } else { r };
        r = if b == F32_INF { if neg != 0 { self.inf[1] } else { self.inf[0] } } else { r };
        r = if b > F32_INF { self.nan } else { r };
        r as u8
    }
}
