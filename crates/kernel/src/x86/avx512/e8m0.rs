//! Any wide source to E8M0: the loaders of [`super::fused`] and the lane [`EncodeE8m0Cut`] in one loop.

use super::blocks::{Kernel, Params};
use super::f64::TRUNCATE;
use super::fused::low_parts;
use super::join;
use crate::numbers::F32_INF;
use crate::numbers::e8m0::EncodeE8m0Cut;
use crate::x86::load;
use crate::x86::pairs::both;
use crate::x86::source::{self, Source512};
use std::arch::x86_64::*;
use std::marker::PhantomData;

const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

/// Which fractions let a code grow. If it is the same for even and odd codes, there is one bound, and an integer may be
/// rounded to f32 in a direction that leaves it on its side of that.
pub(crate) mod grows {
    /// From a bound on, or none does: what is below the bound stays there when it is truncated.
    pub const FROM: u8 = 0;
    /// Those above a bound: they stay there when they are rounded up.
    pub const ABOVE: u8 = 1;
    /// That depends on the code's last bit.
    pub const BY_PARITY: u8 = 2;

    /// That of these numbers.
    pub fn of([even, odd]: [u32; 2]) -> u8 {
        match even {
            _ if even != odd => BY_PARITY,
            0 | 0x0040_0000 => FROM,
            _ => ABOVE,
        }
    }
}

/// `GROWS`: as of [`grows`].
#[derive(Debug)]
pub(crate) struct ToE8m0<S, const GROWS: u8>(pub EncodeE8m0Cut, pub S);

impl<S: Scaled, const GROWS: u8> Params<1> for ToE8m0<S, GROWS> {
    type Kernel = Splat<S, GROWS>;
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn kernel(&self) -> Splat<S, GROWS> {
        let EncodeE8m0Cut { addends, floor, cap, special_from, special, replaces_negative } = self.0;
        let [replaces, negative] = replaces_negative;
        Splat {
            source: PhantomData,
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

/// Sources of E8M0. Integers are zero or between the smallest scale and the largest, and have a shorter way.
pub(crate) trait Scaled: Source512 {
    /// Integers have a way of their own, unless codes grow by parity: 16 magnitudes as f32, rounded to stay on their side of
    /// a bound (up if `UP`), and which of them are negative.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`](crate::level::Avx512).
    #[inline]
    unsafe fn magnitudes<const UP: bool>(_sixteen: &[u8]) -> Option<(__m512i, __mmask16)> {
        None
    }
}

impl Scaled for source::F32 {}
impl Scaled for source::Bf16 {}
impl Scaled for source::F16 {}
impl Scaled for source::I16 {}
impl Scaled for source::U16 {}
impl Scaled for source::F64 {}

macro_rules! scaled {
    ($($source:ident $magnitudes:ident $signed:literal;)*) => {$(
        impl Scaled for source::$source {
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            unsafe fn magnitudes<const UP: bool>(sixteen: &[u8]) -> Option<(__m512i, __mmask16)> {
                Some($magnitudes::<$signed, UP>(sixteen))
            }
        }
    )*};
}

scaled! {
    I32Odd of_32 true;
    U32Odd of_32 false;
    I64Odd of_64 true;
    U64Odd of_64 false;
}

/// The numbers of [`EncodeE8m0Cut`] in every lane.
pub(crate) struct Splat<S, const GROWS: u8> {
    source: PhantomData<S>,
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

impl<S: Scaled, const GROWS: u8> Kernel<1> for Splat<S, GROWS> {
    const SRC_BITS: usize = 8 * S::BYTES;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; 1] {
        let mut wide = [_mm512_setzero_si512(); 4];
        for (wide, sixteen) in wide.iter_mut().zip(source.chunks_exact(16 * S::BYTES)) {
            let int = match GROWS {
                grows::BY_PARITY => None,
                // SAFETY: this function has the features.
                grows::ABOVE => unsafe { S::magnitudes::<true>(sixteen) },
                // SAFETY: as above.
                _ => unsafe { S::magnitudes::<false>(sixteen) },
            };
            *wide = match int {
                Some((magnitude, negative)) => self.of_ints(magnitude, negative),
                // SAFETY: as above.
                None => self.of_floats(unsafe { S::load(sixteen) }),
            };
        }
        low_parts(wide)
    }
}

impl<S, const GROWS: u8> Splat<S, GROWS> {
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
    #[target_feature(enable = "avx512f")]
    fn of_ints(&self, magnitude: __m512i, negative: __mmask16) -> __m512i {
        let r = _mm512_srli_epi32::<23>(_mm512_add_epi32(magnitude, self.addends[0]));
        _mm512_mask_mov_epi32(r, negative & self.replaces, self.negative)
    }
}

/// 16 integers of 32 bits, as of [`Scaled::magnitudes`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn of_32<const SIGNED: bool, const ROUNDS_UP: bool>(sixteen: &[u8]) -> (__m512i, __mmask16) {
    let v = load(sixteen.first_chunk().expect("16 elements"));
    let magnitude = if SIGNED { _mm512_abs_epi32(v) } else { v };
    let rounded = match ROUNDS_UP {
        true => _mm512_cvt_roundepu32_ps::<UP>(magnitude),
        false => _mm512_cvt_roundepu32_ps::<TRUNCATE>(magnitude),
    };
    (_mm512_castps_si512(rounded), if SIGNED { _mm512_movepi32_mask(v) } else { 0 })
}

/// 16 integers of 64 bits, as of [`Scaled::magnitudes`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn of_64<const SIGNED: bool, const ROUNDS_UP: bool>(sixteen: &[u8]) -> (__m512i, __mmask16) {
    let (eights, _) = sixteen.as_chunks();
    let [low, high] = both([load(&eights[0]), load(&eights[1])], |v| {
        let magnitude = if SIGNED { _mm512_abs_epi64(v) } else { v };
        let rounded = match ROUNDS_UP {
            true => _mm512_cvt_roundepu64_ps::<UP>(magnitude),
            false => _mm512_cvt_roundepu64_ps::<TRUNCATE>(magnitude),
        };
        (_mm256_castps_si256(rounded), if SIGNED { _mm512_movepi64_mask(v) } else { 0 })
    });
    (join(low.0, high.0), (high.1 as __mmask16) << 8 | low.1 as __mmask16)
}
