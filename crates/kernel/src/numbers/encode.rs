//! Parameters for encoding f32 as a narrower float (`docs/kernels.md §4.2` to §4.6).

use super::{F32_INF, Increments, SpecialCodes};
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, Unrepresentable};
use truecast_core::{DType, Exact, FloatFormat};

/// Parameters of the lane `EncodeAny`, `docs/kernels.md §4.2`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder {
    pub shift: u32,
    pub half: u32,
    pub rebias: u32,
    pub min_normal: u32,
    pub over_from: u32,
    pub over: [u32; 2],
    pub inf: [u32; 2],
    pub nan: [u32; 2],
    pub payload_mask: u32,
    pub sign_pos: u32,
    /// 0 for a format without sign, where magnitudes are rounded as positive values.
    pub signed: u32,
    /// 0 if a zero result loses its sign.
    pub zero_sign: u32,
    pub man_bits: u32,
    /// Biased exponent in f32 of the destination's smallest normal: `128 - bias`.
    pub base: u32,
    pub max_code: u32,
    /// Code of a negative value in an unsigned format; `None` if the policy converts the magnitude.
    pub negative: Option<u32>,
    pub increments: Increments,
    /// Position of the code in the storage element: 13 for tf32, else 0.
    pub place: u32,
}

/// Number that turns the bits of 2^e into the bits of 2^(e + shift) by addition. The ulp of 2^(e + shift) equals the
/// ulp that a result in binade 2^e has. The low bits cancel the exponent code of the lowest binade.
const fn magic(lowest_binade: u32, shift: u32) -> u32 {
    (shift << 23) + (lowest_binade >> shift).wrapping_neg() % (1 << 16)
}

const fn pow2_bits(e: i32) -> u32 {
    if e >= -126 { ((e + 127) as u32) << 23 } else { 1 << (e + 149) }
}

impl Encoder {
    /// `None` if the policy refuses values. The policy must not flush subnormals or test the range of the source.
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
            // §4.4: the threshold itself rounds to an even maximum.
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

    /// Parameters of the lane [`EncodeNearest`]; `None` if the lane cannot produce the codes of overflow, Inf and NaN.
    pub fn nearest(&self) -> Option<Nearest> {
        let sign = 1 << self.sign_pos;
        let mirrored = |codes: [u32; 2]| codes[1] == codes[0] | sign;
        // Magnitudes are capped at the largest magnitude that rounds to the maximum. If overflow gives the next code
        // (Inf, or the only NaN), the cap is the smallest magnitude that rounds to this next code.
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

    /// Whether a negative value has its own code: unsigned format, and a policy that does not convert magnitudes.
    pub fn replaces_negative(&self) -> bool {
        self.negative.is_some()
    }

    /// Whether the codes equal the conversion instruction to f16: overflow and Inf give Inf, NaN becomes quiet.
    fn is_ieee_f16(&self) -> bool {
        const INF: [u32; 2] = [0x7c00, 0xfc00];
        self.man_bits == 10
            && self.over == INF
            && self.inf == INF
            && self.nan == [0x7e00, 0xfe00]
            && self.zero_sign == 1
    }
}

/// Steps of the nearest-even encoder, as bits of a const parameter. The compiler makes each loop with only the steps of
/// its shape.
pub(crate) mod shape {
    /// Some values of the destination are subnormal, while normal in f32.
    pub const SUBNORMALS: u8 = 1;
    /// A zero keeps its sign.
    pub const NEGATIVE_ZERO: u8 = 2;
    /// Some magnitudes, mostly NaN, have a special code.
    pub const SPECIAL: u8 = 4;
    /// The special code takes the leading payload bits.
    pub const PAYLOAD: u8 = 8;
    /// The code is the rounded upper bits of the f32, with sign and overflow. NaN takes the bits of `payload_mask`.
    pub const UPPER_BITS: u8 = 16;

    // Shapes of types and policies.
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearest {
    /// Bits of [`shape`].
    pub shape: u8,
    /// Whether the codes equal the conversion instruction to f16: overflow and Inf give Inf, NaN becomes quiet.
    pub is_ieee_f16: bool,
    /// Largest magnitude that is encoded. All larger magnitudes get its code.
    pub cap: u32,
    pub shift: u32,
    /// Addend for rounding: half a unit minus one, minus the change of bias.
    pub half: u32,
    /// Exponent bits of the smallest normal.
    pub lowest_binade: u32,
    /// Number that turns the bits of a binade into the magic number by addition.
    pub magic: u32,
    pub sign_shift: u32,
    pub sign: u32,
    /// Smallest magnitude with code `special`.
    pub special_from: u32,
    pub special: u32,
    /// Sign bit if a value's sign flips this bit of `special`, else 0.
    pub special_sign: u32,
    /// Mask of the fraction bits that `special` takes.
    pub payload_mask: u32,
    /// Position of the code in the storage element: 13 for tf32, else 0.
    pub place: u32,
}

impl Nearest {
    /// Parameters for integers of magnitude up to 2^24, in the simplest shape; `None` if that shape does not suffice.
    /// No integer is NaN, and only 0 becomes zero.
    pub fn of_integers(self) -> Option<Nearest> {
        const LARGEST: u32 = (127 + 24) << 23;
        let rounds_one_to_zero = self.lowest_binade > 127 << 23;
        let does = self.shape & shape::SUBNORMALS != 0 && self.special_from > LARGEST && !rounds_one_to_zero;
        does.then_some(Nearest { shape: shape::SUBNORMAL, ..self })
    }
}
