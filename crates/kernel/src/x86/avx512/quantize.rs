//! Division of elements by the scales of their blocks, then encoding, 64 elements at a time
//! (`scaled::quantize::encode`). The quotients stay in registers.

use super::bits::store_packed;
use super::split::Tables;
use crate::level::Avx512;
use crate::numbers::split::Split;
use crate::scaled::rows::{CodesMut, Divided, F32, NextRows, Rows, how};
use crate::x86::pairs::both;
use crate::x86::{bytes_where, load, load256, prefetch, store, store256};
use std::arch::x86_64::*;
use truecast_core::DType;

/// Number of elements in an iteration.
const ELEMENTS: usize = 64;

/// Divides and encodes whole groups of 64 elements of each row. Codes are bytes, or are packed to 4 or 6 bits. `split`
/// has the codes of all bf16 values, because quotients become bf16. Returns the number of encoded elements of a row.
pub(crate) fn encode(_: Avx512, divided: &Divided<'_>, split: &Split, bits: usize, dst: CodesMut<'_>) -> usize {
    let Rows { dtype, block, .. } = divided.rows;
    let fits = block == 16 || block == 32 || block.is_multiple_of(ELEMENTS);
    if !fits || (bits == 4 && !split.short) {
        return 0;
    }
    macro_rules! loops {
        ($($source:ident $dtype:ident $how:ident,)*) => {
            // SAFETY: the token proves that the features were detected.
            unsafe {
                match (dtype, divided.how, bits) {
                    $((DType::$dtype, how::$how, 8) => groups::<$source, { how::$how }, 8, false>(divided, split, dst),
                    (DType::$dtype, how::$how, 6) => groups::<$source, { how::$how }, 6, false>(divided, split, dst),
                    (DType::$dtype, how::$how, 4) => groups::<$source, { how::$how }, 4, true>(divided, split, dst),)*
                    _ => 0,
                }
            }
        };
    }
    loops!(
        OfBf16 Bf16 TIMES,
        OfBf16 Bf16 RECIPROCAL,
        OfF16 F16 TIMES,
        OfF16 F16 RECIPROCAL,
        OfF32 F32 TIMES,
        OfF32 F32 DIVIDE,
    )
}

/// Type of source elements. 32 elements are a pair of f32 vectors. Each type has its own order of elements in a pair.
trait Source {
    const BYTES: usize;
    /// Loads 32 elements as a pair.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn pair(bytes: &[u8]) -> [__m512; 2];
    /// Returns a pair of operands. The first 16 elements have the operand `low`, and the last 16 elements have `high`.
    /// This default is for pairs in the order of elements.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn of_sixteen(low: f32, high: f32) -> [__m512; 2] {
        [_mm512_set1_ps(low), _mm512_set1_ps(high)]
    }
    /// Makes bf16 of a pair by [`with_rest`], in the order of elements. This default is for pairs in the order of
    /// elements.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn upper(pair: [__m512; 2]) -> __m512i {
        let [low, high] = both(pair, |half| _mm512_castps_si512(half));
        // `lower` has the indices of even words, and `upper` those of odd words.
        let lower = load(const { &bytes_where!(|i| (1 - i % 2) * i) });
        let upper = _mm512_add_epi16(lower, _mm512_set1_epi16(1));
        let upper = _mm512_permutex2var_epi16(low, upper, high);
        let lower = _mm512_permutex2var_epi16(low, lower, high);
        with_rest(upper, lower)
    }
}

struct OfBf16;
impl Source for OfBf16 {
    const BYTES: usize = 2;
    /// The first vector has the elements at even places, and the second vector has the elements at odd places.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn pair(bytes: &[u8]) -> [__m512; 2] {
        let both = load(bytes.first_chunk().expect("32 elements"));
        let odd = _mm512_and_si512(both, _mm512_set1_epi32(0xffff_0000u32 as i32));
        [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(both)), _mm512_castsi512_ps(odd)]
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn of_sixteen(low: f32, high: f32) -> [__m512; 2] {
        [_mm512_mask_blend_ps(0xff00, _mm512_set1_ps(low), _mm512_set1_ps(high)); 2]
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn upper([even, odd]: [__m512; 2]) -> __m512i {
        const ODD: __mmask32 = 0xaaaa_aaaa;
        let (even, odd) = (_mm512_castps_si512(even), _mm512_castps_si512(odd));
        let upper = _mm512_mask_blend_epi16(ODD, _mm512_srli_epi32::<16>(even), odd);
        let lower = _mm512_mask_blend_epi16(ODD, even, _mm512_slli_epi32::<16>(odd));
        with_rest(upper, lower)
    }
}

struct OfF16;
impl Source for OfF16 {
    const BYTES: usize = 2;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn pair(bytes: &[u8]) -> [__m512; 2] {
        let (halves, _) = bytes.as_chunks();
        [_mm512_cvtph_ps(load256(&halves[0])), _mm512_cvtph_ps(load256(&halves[1]))]
    }
}

struct OfF32;
impl Source for OfF32 {
    const BYTES: usize = 4;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn pair(bytes: &[u8]) -> [__m512; 2] {
        let (halves, _) = bytes.as_chunks();
        [_mm512_castsi512_ps(load(&halves[0])), _mm512_castsi512_ps(load(&halves[1]))]
    }
}

/// Makes bf16 of f32 values, given the halves of each. The upper half stays, and one of its last three bits is set if
/// the lower half is not zero. Rounding this bf16 to at most four significant bits gives the result of rounding the
/// f32. (With the minimum of the lower half and 1 instead of 7, the compiler would make four instructions of this one.)
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn with_rest(upper: __m512i, lower: __m512i) -> __m512i {
    _mm512_or_si512(upper, _mm512_min_epu16(lower, _mm512_set1_epi16(7)))
}

/// Returns the operands of 64 elements, from the operands of their one, two or four blocks.
///
/// # Safety
/// Needs the features of [`Avx512`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn operands<S: Source>(of: &[F32]) -> [[__m512; 2]; 2] {
    let one = |at: usize| f32::from_le_bytes(of[at]);
    match of.len() {
        // SAFETY: this function has the features.
        4 => unsafe { [S::of_sixteen(one(0), one(1)), S::of_sixteen(one(2), one(3))] },
        2 => [[_mm512_set1_ps(one(0)); 2], [_mm512_set1_ps(one(1)); 2]],
        _ => [[_mm512_set1_ps(one(0)); 2]; 2],
    }
}

/// # Safety
/// Needs the features of [`Avx512`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn groups<S: Source, const HOW: u8, const BITS: u8, const SHORT: bool>(
    divided: &Divided<'_>,
    split: &Split,
    dst: CodesMut<'_>,
) -> usize {
    let Divided { rows, t, u, next: NextRows { bytes: next, stride: next_stride }, .. } = *divided;
    let Rows { stride, cols, block, .. } = rows;
    let (src_bytes, dst_bytes) = (ELEMENTS * S::BYTES, ELEMENTS / 8 * BITS as usize);
    let tables = Tables::<SHORT>::new(split);
    let n = cols / ELEMENTS;
    // Number of groups that share operands, and number of operands in a group. One of the two numbers is 1.
    let (shared, per_group) = ((block / ELEMENTS).clamp(1, n.max(1)), (ELEMENTS / block).max(1));
    for (row, (src, dst)) in rows.span().chunks(stride).zip(dst.bytes.chunks_mut(dst.stride)).enumerate() {
        let mut ahead = next.as_ptr().wrapping_add(row * next_stride);
        let (src, dst) = (&src[..n * src_bytes], &mut dst[..n * dst_bytes]);
        let blocks = src.chunks(shared * src_bytes).zip(dst.chunks_mut(shared * dst_bytes));
        for ((src, dst), (t, u)) in blocks.zip(t.chunks(per_group).zip(u.chunks(per_group))) {
            // SAFETY: this function has the features.
            let (t, u) = unsafe { (operands::<S>(t), operands::<S>(u)) };
            for (src, dst) in src.chunks_exact(src_bytes).zip(dst.chunks_exact_mut(dst_bytes)) {
                if !next.is_empty() {
                    for line in (0..src_bytes).step_by(64) {
                        prefetch(ahead.wrapping_add(line));
                    }
                    ahead = ahead.wrapping_add(src_bytes);
                }
                // SAFETY: this function has the features; nothing is streamed.
                unsafe {
                    let (low, high) = src.split_at(src_bytes / 2);
                    let low = quotients::<S, HOW>(low, t[0], u[0]);
                    let high = quotients::<S, HOW>(high, t[1], u[1]);
                    let codes = tables.look_up(low, high);
                    match BITS {
                        8 => store(dst.first_chunk_mut().expect("64 bytes"), codes),
                        4 => store256(dst.first_chunk_mut().expect("32 bytes"), nibbles(codes)),
                        _ => store_packed::<BITS, false>(dst, [codes, codes]),
                    }
                }
            }
        }
    }
    n * ELEMENTS
}

/// Packs 64 nibbles, half a line. ([`store_packed`] would pack two vectors.)
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn nibbles(codes: __m512i) -> __m256i {
    let codes = _mm512_and_si512(codes, _mm512_set1_epi8(15));
    let pairs = _mm512_or_si512(codes, _mm512_srli_epi16::<4>(codes));
    // The low byte of each word is a pair of nibbles.
    _mm512_cvtepi16_epi8(pairs)
}

/// Returns the quotients of 32 elements as bf16, by [`with_rest`].
///
/// # Safety
/// Needs the features of [`Avx512`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
unsafe fn quotients<S: Source, const HOW: u8>(src: &[u8], t: [__m512; 2], u: [__m512; 2]) -> __m512i {
    // SAFETY: this function has the features.
    unsafe {
        let [a, b] = S::pair(src);
        S::upper([quotient::<HOW>(a, t[0], u[0]), quotient::<HOW>(b, t[1], u[1])])
    }
}

/// Computes what `ratio` of `scaled::quantize::source` computes, before its result is shortened to bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn quotient<const HOW: u8>(x: __m512, t: __m512, u: __m512) -> __m512 {
    match HOW {
        how::TIMES => _mm512_mul_ps(x, t),
        how::DIVIDE => _mm512_div_ps(x, t),
        _ => {
            let q = _mm512_mul_ps(x, u);
            let rest = _mm512_fnmadd_ps(q, t, x);
            let q = _mm512_castps_si512(_mm512_fmadd_ps(rest, u, q));
            // A product of -0 would lose its sign, so the sign of `x` is set: `q | x & sign`.
            let sign = _mm512_set1_epi32(i32::MIN);
            _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xf8>(q, _mm512_castps_si512(x), sign))
        }
    }
}
