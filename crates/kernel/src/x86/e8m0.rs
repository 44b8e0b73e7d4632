//! Any wide source to E8M0: the loaders of [`super::fused`] and the lane [`EncodeE8m0Cut`] in one loop.

use super::blocks::{Blocks, Kernel, Numbers};
use super::double::TRUNCATE;
use super::fused::{load_hub, low_parts, source};
use super::{join, load};
use crate::lane::F32_INF;
use crate::lane::encode::EncodeE8m0Cut;
use crate::level::Avx512;
use crate::stage::Stage;
use std::arch::x86_64::*;

const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

/// Which fractions let a code grow. If it is the same for even and odd codes, there is one bound, and an integer may be
/// rounded to f32 in a direction that leaves it on its side of that.
mod grows {
    /// From a bound on, or none does: what is below the bound stays there when it is truncated.
    pub const FROM: u8 = 0;
    /// Those above a bound: they stay there when they are rounded up.
    pub const ABOVE: u8 = 1;
    /// That depends on the code's last bit.
    pub const BY_PARITY: u8 = 2;
}

/// The stage for a source that is exact in f32 or rounded to odd.
pub(crate) fn stage(token: Avx512, source: u8, numbers: EncodeE8m0Cut) -> Option<Box<dyn Stage>> {
    macro_rules! from {
        ($grows:ident: $($name:ident)*) => {
            match source {
                $(source::$name => {
                    let stage: Box<dyn Stage> =
                        Box::new(Blocks::<_, 1>(Scale::<{ source::$name }, { grows::$grows }>(numbers), token));
                    Some(stage)
                })*
                _ => None,
            }
        };
    }
    let [even, odd] = numbers.addends;
    if even != odd {
        return from!(BY_PARITY: F32 BF16 F16 I16 U16 F64 I32_ODD U32_ODD I64_ODD U64_ODD);
    }
    match even {
        0 | 0x0040_0000 => from!(FROM: F32 BF16 F16 I16 U16 F64 I32_ODD U32_ODD I64_ODD U64_ODD),
        _ => from!(ABOVE: I32_ODD U32_ODD I64_ODD U64_ODD).or_else(|| from!(FROM: F32 BF16 F16 I16 U16 F64)),
    }
}

/// `GROWS`: as of [`grows`]; of floats, whether that is by parity.
#[derive(Debug)]
struct Scale<const SOURCE: u8, const GROWS: u8>(EncodeE8m0Cut);

impl<const SOURCE: u8, const GROWS: u8> Numbers<1> for Scale<SOURCE, GROWS> {
    type Kernel = InRegisters<SOURCE, GROWS>;
    const PACKS: bool = false;
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn kernel(&self) -> InRegisters<SOURCE, GROWS> {
        let EncodeE8m0Cut { addends, floor, cap, special_from, special, replaces_negative } = self.0;
        let [replaces, negative] = replaces_negative;
        InRegisters {
            addends: addends.map(|addend| _mm512_set1_epi32(addend as i32)),
            floor: _mm512_set1_epi32(floor as i32),
            cap: _mm512_set1_epi32(cap as i32),
            special_from: _mm512_set1_epi32(special_from as i32),
            special: _mm512_set1_epi32(special as i32),
            // No value is below none.
            negatives: _mm512_set1_epi32(if replaces != 0 { F32_INF as i32 } else { 0 }),
            replaces: if replaces != 0 { !0 } else { 0 },
            negative: _mm512_set1_epi32(negative as i32),
        }
    }
}

/// The numbers of [`EncodeE8m0Cut`] in every lane.
struct InRegisters<const SOURCE: u8, const GROWS: u8> {
    addends: [__m512i; 2],
    floor: __m512i,
    cap: __m512i,
    special_from: __m512i,
    special: __m512i,
    /// How many codes of f32, from the smallest negative one on, have a code of their own.
    negatives: __m512i,
    /// All bits, or none if negative values have their magnitude's code.
    replaces: __mmask16,
    negative: __m512i,
}

impl<const SOURCE: u8, const GROWS: u8> Kernel<1> for InRegisters<SOURCE, GROWS> {
    const SRC_BITS: usize = 8 * source::bytes(SOURCE);
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; 1] {
        let mut wide = [_mm512_setzero_si512(); 4];
        for (wide, sixteen) in wide.iter_mut().zip(source.chunks_exact(16 * source::bytes(SOURCE))) {
            *wide = match (SOURCE, GROWS) {
                (source::I32_ODD.., grows::FROM | grows::ABOVE) => self.of_ints(sixteen),
                _ => self.of_floats(load_hub::<SOURCE>(sixteen)),
            };
        }
        low_parts(wide)
    }
}

impl<const SOURCE: u8, const GROWS: u8> InRegisters<SOURCE, GROWS> {
    /// The lane, line by line.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn of_floats(&self, x: __m512i) -> __m512i {
        let smallest_normal = _mm512_set1_epi32(0x0080_0000);
        let abs = _mm512_and_si512(x, _mm512_set1_epi32(i32::MAX));
        let b = _mm512_min_epu32(_mm512_max_epu32(abs, self.floor), self.cap);
        // What a subnormal lacks of the smallest normal counts twice.
        let lacks = _mm512_min_epi32(_mm512_sub_epi32(b, smallest_normal), _mm512_setzero_si512());
        let v = _mm512_add_epi32(b, lacks);
        let mut addend = self.addends[0];
        if GROWS == grows::BY_PARITY {
            let odd = _mm512_test_epi32_mask(v, smallest_normal);
            addend = _mm512_mask_mov_epi32(addend, odd, self.addends[1]);
        }
        let mut r = _mm512_srli_epi32::<23>(_mm512_add_epi32(v, addend));
        let negative = _mm512_sub_epi32(x, _mm512_set1_epi32(i32::MIN + 1));
        r = _mm512_mask_mov_epi32(r, _mm512_cmplt_epu32_mask(negative, self.negatives), self.negative);
        _mm512_mask_mov_epi32(r, _mm512_cmpge_epu32_mask(abs, self.special_from), self.special)
    }

    /// The same of integers, which are zero or between the smallest scale and the largest.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn of_ints(&self, source: &[u8]) -> __m512i {
        let (vectors, _) = source.as_chunks();
        let (magnitude, negative) = match SOURCE {
            source::I32_ODD | source::U32_ODD => of_32::<SOURCE, GROWS>(load(&vectors[0])),
            _ => {
                let [(low, low_negative), (high, high_negative)] =
                    [0, 1].map(|i| of_64::<SOURCE, GROWS>(load(&vectors[i])));
                (join(low, high), (high_negative as __mmask16) << 8 | low_negative as __mmask16)
            }
        };
        let r = _mm512_srli_epi32::<23>(_mm512_add_epi32(magnitude, self.addends[0]));
        _mm512_mask_mov_epi32(r, negative & self.replaces, self.negative)
    }
}

/// The magnitudes of integers as f32, rounded to stay on their side of a bound, and which are negative.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn of_32<const SOURCE: u8, const GROWS: u8>(v: __m512i) -> (__m512i, __mmask16) {
    let signed = SOURCE == source::I32_ODD;
    let magnitude = if signed { _mm512_abs_epi32(v) } else { v };
    let rounded = match GROWS {
        grows::ABOVE => _mm512_cvt_roundepu32_ps::<UP>(magnitude),
        _ => _mm512_cvt_roundepu32_ps::<TRUNCATE>(magnitude),
    };
    (_mm512_castps_si512(rounded), if signed { _mm512_movepi32_mask(v) } else { 0 })
}

/// As [`of_32`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn of_64<const SOURCE: u8, const GROWS: u8>(v: __m512i) -> (__m256i, __mmask8) {
    let signed = SOURCE == source::I64_ODD;
    let magnitude = if signed { _mm512_abs_epi64(v) } else { v };
    let rounded = match GROWS {
        grows::ABOVE => _mm512_cvt_roundepu64_ps::<UP>(magnitude),
        _ => _mm512_cvt_roundepu64_ps::<TRUNCATE>(magnitude),
    };
    (_mm256_castps_si256(rounded), if signed { _mm512_movepi64_mask(v) } else { 0 })
}
