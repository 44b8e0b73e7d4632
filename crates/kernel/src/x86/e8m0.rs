//! Any wide source to E8M0: the loaders of [`super::fused`] and the lane [`EncodeE8m0Cut`] in one loop.

use super::blocks::{Blocks, Kernel, Numbers};
use super::fused::{load_hub, low_parts, source};
use crate::lane::F32_INF;
use crate::lane::encode::EncodeE8m0Cut;
use crate::level::Avx512;
use crate::stage::Stage;
use std::arch::x86_64::*;

/// The stage for a source that is exact in f32 or rounded to odd.
pub(crate) fn stage(token: Avx512, source: u8, numbers: EncodeE8m0Cut) -> Option<Box<dyn Stage>> {
    macro_rules! from {
        ($($name:ident)*) => {
            match source {
                $(source::$name => Some(Box::new(Blocks::<_, 1>(Scale::<{ source::$name }>(numbers), token)) as Box<dyn Stage>),)*
                _ => None,
            }
        };
    }
    from!(F32 BF16 F16 I16 U16 F64 I32_ODD U32_ODD I64_ODD U64_ODD)
}

#[derive(Debug)]
struct Scale<const SOURCE: u8>(EncodeE8m0Cut);

impl<const SOURCE: u8> Numbers<1> for Scale<SOURCE> {
    type Kernel = InRegisters<SOURCE>;
    const PACKS: bool = false;
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn kernel(&self) -> InRegisters<SOURCE> {
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
            negative: _mm512_set1_epi32(negative as i32),
        }
    }
}

/// The numbers of [`EncodeE8m0Cut`] in every lane.
struct InRegisters<const SOURCE: u8> {
    addends: [__m512i; 2],
    floor: __m512i,
    cap: __m512i,
    special_from: __m512i,
    special: __m512i,
    /// How many codes of f32, from the smallest negative one on, have a code of their own.
    negatives: __m512i,
    negative: __m512i,
}

impl<const SOURCE: u8> Kernel<1> for InRegisters<SOURCE> {
    const SRC_BITS: usize = 8 * source::bytes(SOURCE);
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert(&self, source: &[u8]) -> [__m512i; 1] {
        let mut wide = [_mm512_setzero_si512(); 4];
        for (wide, sixteen) in wide.iter_mut().zip(source.chunks_exact(16 * source::bytes(SOURCE))) {
            *wide = self.encode(load_hub::<SOURCE>(sixteen));
        }
        low_parts(wide)
    }
}

impl<const SOURCE: u8> InRegisters<SOURCE> {
    /// The lane, line by line.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn encode(&self, x: __m512i) -> __m512i {
        let smallest_normal = _mm512_set1_epi32(0x0080_0000);
        let abs = _mm512_and_si512(x, _mm512_set1_epi32(i32::MAX));
        let b = _mm512_min_epu32(_mm512_max_epu32(abs, self.floor), self.cap);
        let subnormal = _mm512_cmplt_epu32_mask(b, smallest_normal);
        let v = _mm512_mask_sub_epi32(b, subnormal, _mm512_slli_epi32::<1>(b), smallest_normal);
        let odd = _mm512_test_epi32_mask(v, smallest_normal);
        let addend = _mm512_mask_mov_epi32(self.addends[0], odd, self.addends[1]);
        let mut r = _mm512_srli_epi32::<23>(_mm512_add_epi32(v, addend));
        let negative = _mm512_sub_epi32(x, _mm512_set1_epi32(i32::MIN + 1));
        r = _mm512_mask_mov_epi32(r, _mm512_cmplt_epu32_mask(negative, self.negatives), self.negative);
        _mm512_mask_mov_epi32(r, _mm512_cmpge_epu32_mask(abs, self.special_from), self.special)
    }
}
