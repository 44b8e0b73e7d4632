//! Floats to integers by the conversion instructions, truncated or to nearest even (`docs/kernels.md §7`).
//!
//! What is computed is what the lanes of [`crate::lane::to_int`] compute. Neither FTZ nor DAZ matters: a subnormal becomes
//! 0 either way, and the rounding is the instruction's own.

use super::fused::AHEAD;
use super::{load, load_half, load_quarter, prefetch, store, store_half, store_quarter};
use crate::lane::to_int::ToInt;
use crate::lane::{F32_INF, F64_INF};
use crate::level::Avx512;
use crate::stage::{Refusal, Stage, slot_bytes};
use std::arch::x86_64::*;
use truecast_core::{DType, IntFormat, Rounding};

/// How elements are read: into 16 lanes of f32, or into 8 of f64 where they or the results are 64 bits wide.
mod source {
    pub const BF16: u8 = 0;
    pub const F16: u8 = 1;
    pub const F32: u8 = 2;
    pub const F64: u8 = 3;

    /// Bytes of an element.
    pub const fn bytes(source: u8) -> usize {
        match source {
            BF16 | F16 => 2,
            F32 => 4,
            _ => 8,
        }
    }
}

/// What becomes of a value beyond the destination's range.
mod overflow {
    /// Its low bits.
    pub const WRAP: u8 = 0;
    /// The bound, which the lanes hold exactly as a float.
    pub const CLAMP: u8 = 1;
    /// The bound of a signed integer as wide as the lanes.
    pub const SIGNED: u8 = 2;
    /// The bound of an unsigned integer as wide as the lanes.
    pub const UNSIGNED: u8 = 3;
}

/// From a source to integers of `BYTES`.
#[derive(Debug)]
struct Convert<const SOURCE: u8, const BYTES: usize, const OVERFLOW: u8, const NEAREST: bool> {
    numbers: Numbers,
    token: Avx512,
}

/// What a conversion has to know of the destination and the policy.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// Bounds, where values are clamped to them.
    min: f64,
    max: f64,
    nan: u64,
    /// The bits of a code.
    mask: u64,
}

/// The stage for a source, unless the policy asks for something that the instructions do not compute.
pub(crate) fn stage(token: Avx512, src: DType, dst: DType, f: &IntFormat, to_int: &ToInt) -> Option<Box<dyn Stage>> {
    let nearest = to_int.rounds_as(Rounding::NearestEven);
    if !nearest && !to_int.rounds_as(Rounding::TowardZero) {
        return None;
    }
    let numbers = Numbers { min: f.min() as f64, max: f.max() as f64, nan: to_int.nan(), mask: f.mask() };
    let bytes = slot_bytes(dst);
    let lanes = if src == DType::F64 || bytes == 8 { 64 } else { 32 };
    let overflow = match (to_int.saturates_to(f), f.signed) {
        (false, _) if to_int.truncates_and_wraps() => overflow::WRAP,
        (false, _) => return None,
        (true, _) if f.bits < lanes => overflow::CLAMP,
        (true, true) => overflow::SIGNED,
        (true, false) => overflow::UNSIGNED,
    };
    macro_rules! convert {
        ($($source:ident $bytes:literal $overflow:ident $nearest:literal,)*) => {
            match (src, bytes, overflow, nearest) {
                $((DType::$source, $bytes, overflow::$overflow, $nearest) => Some(Box::new(
                    Convert::<{ source_of(DType::$source) }, $bytes, { overflow::$overflow }, $nearest> { numbers, token },
                )),)*
                _ => None,
            }
        };
    }
    convert! {
        Bf16 1 WRAP false, Bf16 2 WRAP false, Bf16 4 WRAP false, Bf16 8 WRAP false,
        F16 1 WRAP false, F16 2 WRAP false, F16 4 WRAP false, F16 8 WRAP false,
        F64 1 WRAP false, F64 2 WRAP false, F64 4 WRAP false, F64 8 WRAP false,
        Bf16 1 CLAMP false, Bf16 2 CLAMP false, Bf16 4 SIGNED false, Bf16 4 UNSIGNED false,
        Bf16 1 CLAMP true, Bf16 2 CLAMP true, Bf16 4 SIGNED true, Bf16 4 UNSIGNED true,
        F16 1 CLAMP false, F16 2 CLAMP false, F16 4 SIGNED false, F16 4 UNSIGNED false,
        F16 1 CLAMP true, F16 2 CLAMP true, F16 4 SIGNED true, F16 4 UNSIGNED true,
        F32 1 CLAMP false, F32 2 CLAMP false, F32 4 SIGNED false, F32 4 UNSIGNED false,
        F32 1 CLAMP true, F32 2 CLAMP true, F32 4 SIGNED true, F32 4 UNSIGNED true,
        F64 1 CLAMP false, F64 2 CLAMP false, F64 4 CLAMP false, F64 8 SIGNED false, F64 8 UNSIGNED false,
        F64 1 CLAMP true, F64 2 CLAMP true, F64 4 CLAMP true, F64 8 SIGNED true, F64 8 UNSIGNED true,
        Bf16 8 SIGNED false, Bf16 8 UNSIGNED false, Bf16 8 SIGNED true, Bf16 8 UNSIGNED true,
        F16 8 SIGNED false, F16 8 UNSIGNED false, F16 8 SIGNED true, F16 8 UNSIGNED true,
        F32 8 SIGNED false, F32 8 UNSIGNED false, F32 8 SIGNED true, F32 8 UNSIGNED true,
    }
}

const fn source_of(dtype: DType) -> u8 {
    match dtype {
        DType::Bf16 => source::BF16,
        DType::F16 => source::F16,
        DType::F32 => source::F32,
        _ => source::F64,
    }
}

impl<const SOURCE: u8, const BYTES: usize, const OVERFLOW: u8, const NEAREST: bool> Stage
    for Convert<SOURCE, BYTES, OVERFLOW, NEAREST>
{
    fn widths(&self) -> (usize, usize) {
        (source::bytes(SOURCE), BYTES)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        convert::<SOURCE, BYTES, OVERFLOW, NEAREST>(self.token, &self.numbers, src, dst);
        Ok(())
    }
}

/// Converts whatever both slices hold.
fn convert<const SOURCE: u8, const BYTES: usize, const OVERFLOW: u8, const NEAREST: bool>(
    _: Avx512,
    numbers: &Numbers,
    src: &[u8],
    dst: &mut [u8],
) {
    // SAFETY: the token proves that the features were detected.
    unsafe { run::<SOURCE, BYTES, OVERFLOW, NEAREST>(numbers, src, dst) };
}

/// Elements per iteration.
const GROUP: usize = 32;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn run<const SOURCE: u8, const BYTES: usize, const OVERFLOW: u8, const NEAREST: bool>(
    numbers: &Numbers,
    src: &[u8],
    dst: &mut [u8],
) {
    let group_bytes = GROUP * source::bytes(SOURCE);
    let lanes = Lanes::new(SOURCE == source::F64 || BYTES == 8, numbers);
    let sources = src.chunks_exact(group_bytes);
    let mut targets = dst.chunks_exact_mut(GROUP * BYTES);
    let rest = sources.remainder();
    for (target, source) in targets.by_ref().zip(sources) {
        for line in (0..group_bytes).step_by(64) {
            prefetch(source.as_ptr().wrapping_add(AHEAD + line));
        }
        group::<SOURCE, BYTES, OVERFLOW, NEAREST>(&lanes, source, target);
    }
    if !rest.is_empty() {
        let (mut source, mut target) = ([0; GROUP * 8], [0; GROUP * 8]);
        source[..rest.len()].copy_from_slice(rest);
        group::<SOURCE, BYTES, OVERFLOW, NEAREST>(&lanes, &source[..group_bytes], &mut target[..GROUP * BYTES]);
        let last = targets.into_remainder();
        last.copy_from_slice(&target[..last.len()]);
    }
}

/// Converts [`GROUP`] elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn group<const SOURCE: u8, const BYTES: usize, const OVERFLOW: u8, const NEAREST: bool>(
    lanes: &Lanes,
    source: &[u8],
    target: &mut [u8],
) {
    let src_bytes = source::bytes(SOURCE);
    if SOURCE == source::F64 || BYTES == 8 {
        for (target, source) in target.chunks_exact_mut(8 * BYTES).zip(source.chunks_exact(8 * src_bytes)) {
            let ints = lanes.to_64::<OVERFLOW, NEAREST>(load_8::<SOURCE>(source));
            match BYTES {
                1 => target.copy_from_slice(&_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(ints)).to_le_bytes()),
                2 => store_quarter(target.first_chunk_mut().expect("8 results"), _mm512_cvtepi64_epi16(ints)),
                4 => store_half(target.first_chunk_mut().expect("8 results"), _mm512_cvtepi64_epi32(ints)),
                _ => store(target.first_chunk_mut().expect("8 results"), ints),
            }
        }
        return;
    }
    for (target, source) in target.chunks_exact_mut(16 * BYTES).zip(source.chunks_exact(16 * src_bytes)) {
        let ints = lanes.to_32::<OVERFLOW, NEAREST>(load_16::<SOURCE>(source));
        match BYTES {
            1 => store_quarter(target.first_chunk_mut().expect("16 results"), _mm512_cvtepi32_epi8(ints)),
            2 => store_half(target.first_chunk_mut().expect("16 results"), _mm512_cvtepi32_epi16(ints)),
            _ => store(target.first_chunk_mut().expect("16 results"), ints),
        }
    }
}

/// 16 elements as f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_16<const SOURCE: u8>(source: &[u8]) -> __m512i {
    match SOURCE {
        source::F32 => load(source.first_chunk().expect("16 elements")),
        source::F16 => _mm512_castps_si512(_mm512_cvtph_ps(load_half(source.first_chunk().expect("16 elements")))),
        _ => {
            let codes = load_half(source.first_chunk().expect("16 elements"));
            _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(codes))
        }
    }
}

/// Eight elements as f64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_8<const SOURCE: u8>(source: &[u8]) -> __m512i {
    let single = match SOURCE {
        source::F64 => return load(source.first_chunk().expect("8 elements")),
        source::F32 => _mm256_castsi256_ps(load_half(source.first_chunk().expect("8 elements"))),
        source::F16 => _mm256_cvtph_ps(load_quarter(source.first_chunk().expect("8 elements"))),
        _ => {
            let codes = load_quarter(source.first_chunk().expect("8 elements"));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(codes)))
        }
    };
    _mm512_castpd_si512(_mm512_cvtps_pd(single))
}

/// [`Numbers`] in every lane.
struct Lanes {
    min: __m512i,
    max: __m512i,
    nan: __m512i,
    mask: __m512i,
}

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(wide: bool, numbers: &Numbers) -> Lanes {
        let Numbers { min, max, nan, mask } = *numbers;
        let int = |code: u64| if wide { _mm512_set1_epi64(code as i64) } else { _mm512_set1_epi32(code as i32) };
        let bound = |bound: f64| if wide { bound.to_bits() } else { (bound as f32).to_bits() as u64 };
        Lanes { min: int(bound(min)), max: int(bound(max)), nan: int(nan), mask: int(mask) }
    }

    /// 16 f32 to integers of 32 bits, or to the low bits of such.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn to_32<const OVERFLOW: u8, const NEAREST: bool>(&self, bits: __m512i) -> __m512i {
        let value = _mm512_castsi512_ps(bits);
        let magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(i32::MAX));
        let mut ints = match OVERFLOW {
            overflow::CLAMP => {
                let above = _mm512_max_ps(value, _mm512_castsi512_ps(self.min));
                int_32::<NEAREST>(_mm512_min_ps(above, _mm512_castsi512_ps(self.max)))
            }
            overflow::UNSIGNED => {
                let above = _mm512_max_ps(value, _mm512_setzero_ps());
                if NEAREST {
                    _mm512_cvt_roundps_epu32::<NEAREST_EVEN>(above)
                } else {
                    _mm512_cvtt_roundps_epu32::<_MM_FROUND_NO_EXC>(above)
                }
            }
            _ => int_32::<NEAREST>(value),
        };
        // As f32, 2^31, from where the instruction knows no answer.
        let beyond = 158 << 23;
        if OVERFLOW == overflow::SIGNED {
            let over = _mm512_cmpge_epi32_mask(bits, _mm512_set1_epi32(beyond));
            ints = _mm512_mask_mov_epi32(ints, over, _mm512_set1_epi32(i32::MAX));
        }
        if OVERFLOW == overflow::WRAP {
            let over = _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(beyond));
            if over != 0 {
                let fraction = _mm512_and_si512(bits, _mm512_set1_epi32(0x007f_ffff));
                let significand = _mm512_or_si512(fraction, _mm512_set1_epi32(1 << 23));
                let shift = _mm512_sub_epi32(_mm512_srli_epi32::<23>(magnitude), _mm512_set1_epi32(150));
                let low = _mm512_sllv_epi32(significand, shift);
                let negative = _mm512_movepi32_mask(bits);
                let signed = _mm512_mask_sub_epi32(low, negative, _mm512_setzero_si512(), low);
                ints = _mm512_mask_mov_epi32(ints, over, signed);
            }
        }
        let nan = _mm512_cmpgt_epu32_mask(magnitude, _mm512_set1_epi32(F32_INF as i32));
        _mm512_and_si512(_mm512_mask_mov_epi32(ints, nan, self.nan), self.mask)
    }

    /// Eight f64 to integers of 64 bits, or to the low bits of such.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn to_64<const OVERFLOW: u8, const NEAREST: bool>(&self, bits: __m512i) -> __m512i {
        let value = _mm512_castsi512_pd(bits);
        let magnitude = _mm512_and_si512(bits, _mm512_set1_epi64(i64::MAX));
        let mut ints = match OVERFLOW {
            overflow::CLAMP => {
                let above = _mm512_max_pd(value, _mm512_castsi512_pd(self.min));
                int_64::<NEAREST>(_mm512_min_pd(above, _mm512_castsi512_pd(self.max)))
            }
            overflow::UNSIGNED => {
                let above = _mm512_max_pd(value, _mm512_setzero_pd());
                if NEAREST {
                    _mm512_cvt_roundpd_epu64::<NEAREST_EVEN>(above)
                } else {
                    _mm512_cvtt_roundpd_epu64::<_MM_FROUND_NO_EXC>(above)
                }
            }
            _ => int_64::<NEAREST>(value),
        };
        // As f64, 2^63, from where the instruction knows no answer.
        let beyond = 1086 << 52;
        if OVERFLOW == overflow::SIGNED {
            let over = _mm512_cmpge_epi64_mask(bits, _mm512_set1_epi64(beyond));
            ints = _mm512_mask_mov_epi64(ints, over, _mm512_set1_epi64(i64::MAX));
        }
        if OVERFLOW == overflow::WRAP {
            let over = _mm512_cmpge_epu64_mask(magnitude, _mm512_set1_epi64(beyond));
            if over != 0 {
                let fraction = _mm512_and_si512(bits, _mm512_set1_epi64((1 << 52) - 1));
                let significand = _mm512_or_si512(fraction, _mm512_set1_epi64(1 << 52));
                let shift = _mm512_sub_epi64(_mm512_srli_epi64::<52>(magnitude), _mm512_set1_epi64(1075));
                let low = _mm512_sllv_epi64(significand, shift);
                let negative = _mm512_movepi64_mask(bits);
                let signed = _mm512_mask_sub_epi64(low, negative, _mm512_setzero_si512(), low);
                ints = _mm512_mask_mov_epi64(ints, over, signed);
            }
        }
        let nan = _mm512_cmpgt_epu64_mask(magnitude, _mm512_set1_epi64(F64_INF as i64));
        _mm512_and_si512(_mm512_mask_mov_epi64(ints, nan, self.nan), self.mask)
    }
}

const NEAREST_EVEN: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

#[inline]
#[target_feature(enable = "avx512f")]
fn int_32<const NEAREST: bool>(value: __m512) -> __m512i {
    if NEAREST {
        _mm512_cvt_roundps_epi32::<NEAREST_EVEN>(value)
    } else {
        _mm512_cvtt_roundps_epi32::<_MM_FROUND_NO_EXC>(value)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn int_64<const NEAREST: bool>(value: __m512d) -> __m512i {
    if NEAREST {
        _mm512_cvt_roundpd_epi64::<NEAREST_EVEN>(value)
    } else {
        _mm512_cvtt_roundpd_epi64::<_MM_FROUND_NO_EXC>(value)
    }
}
