//! Blocks of codes of four bits: the 16 results of a block are made in a register, and its elements looked up there.

use super::super::{ahead::Ahead, load, load128, load256, store, stream};
use crate::level::Avx512;
use crate::scaled::nibbles::{Nibbles, Order, RESULTS, form};
use std::arch::x86_64::*;

/// Makes whole groups of 32 elements, past the caches if it `streams` and can, and returns how many elements those were.
pub(crate) fn results(_: Avx512, of: &Nibbles<'_>, dst: &mut [u8], streams: bool) -> usize {
    let streams = streams && dst.as_ptr().addr().is_multiple_of(64);
    macro_rules! loops {
        ($($order:ident $form:ident,)*) => {
            // SAFETY: the token proves that the features were detected; where it streams, `dst` is aligned.
            unsafe {
                match (of.order, of.form, streams) {
                    $((Order::$order { .. }, form::$form, false) => groups::<$order, { form::$form }, false>(of, dst),
                    (Order::$order { .. }, form::$form, true) => groups::<$order, { form::$form }, true>(of, dst),)*
                    _ => 0,
                }
            }
        };
    }
    loops!(
        Pairs TIMES,
        Pairs MINUS_TIMES,
        Pairs TIMES_PLUS,
        Pairs TIMES_PLUS_BF16,
        Halves TIMES,
        Halves TIMES_PLUS,
        Quarters TIMES_PLUS,
    )
}

/// Codes in words.
trait Codes {
    /// Groups of 32 elements whose codes lie together.
    const GROUPS: usize;
    /// Bytes from the beginning of one such record to the next, and to its codes.
    fn place(order: Order) -> (usize, usize);
    /// The codes of a group, of which the lowest four bits count. `codes` are those of its record.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn group(codes: &[u8], group: usize) -> __m512i;
}

struct Pairs;
impl Codes for Pairs {
    const GROUPS: usize = 1;
    fn place(_: Order) -> (usize, usize) {
        (16, 0)
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn group(codes: &[u8], _: usize) -> __m512i {
        // A byte hhhhllll in 32 bits becomes hhhh in the upper 16 and hhhhllll in the lower.
        let bytes = _mm512_cvtepu8_epi32(load128(codes.first_chunk().expect("16 bytes of codes")));
        _mm512_or_si512(bytes, _mm512_slli_epi32::<12>(bytes))
    }
}

struct Halves;
impl Codes for Halves {
    const GROUPS: usize = 1;
    fn place(order: Order) -> (usize, usize) {
        if let Order::Halves { at, bytes } = order { (bytes, at) } else { (16, 0) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn group(codes: &[u8], _: usize) -> __m512i {
        let low = _mm256_cvtepu8_epi16(load128(codes.first_chunk().expect("16 bytes of codes")));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), _mm256_srli_epi16::<4>(low))
    }
}

struct Quarters;
impl Codes for Quarters {
    const GROUPS: usize = 8;
    fn place(order: Order) -> (usize, usize) {
        if let Order::Quarters { at, bytes } = order { (bytes, at) } else { (128, 0) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn group(codes: &[u8], group: usize) -> __m512i {
        let bytes = codes[group / 2 * 32..].first_chunk().expect("32 bytes of codes");
        let low = _mm512_cvtepu8_epi16(load256(bytes));
        if group.is_multiple_of(2) { low } else { _mm512_srli_epi16::<4>(low) }
    }
}

/// # Safety
/// Needs the features of [`Avx512`]; where it streams, `dst` must be aligned to 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn groups<C: Codes, const FORM: u8, const STREAMS: bool>(of: &Nibbles<'_>, dst: &mut [u8]) -> usize {
    let n = of.elements().min(dst.len() / RESULTS * 32) / (32 * C::GROUPS);
    let (bytes, at) = C::place(of.order);
    let ahead = Ahead::of_this_cpu();
    let values = _mm512_castsi512_ps(load(of.values.as_flattened().first_chunk().expect("16 values")));
    let per_block = (of.block / 32).max(1);
    let mut both = _mm512_setzero_si512();
    let mut operands = of.s.iter().zip(of.u);
    let mut left = 0;
    let records = of.codes.chunks_exact(bytes).zip(dst.chunks_exact_mut(RESULTS * C::GROUPS)).take(n);
    for (record, dst) in records {
        ahead.ask(record, bytes);
        let codes = &record[at..];
        for (group, dst) in dst.as_chunks_mut::<RESULTS>().0.iter_mut().enumerate() {
            if left == 0 {
                let Some((s, u)) = operands.next() else { return 0 };
                both = table::<FORM>(values, [*s, *u], (of.half, of.nan));
                left = per_block;
            }
            left -= 1;
            // SAFETY: this function has the features; every target is a whole line, and the caller aligned the first.
            unsafe {
                let results = _mm512_permutexvar_epi16(C::group(codes, group), both);
                if STREAMS {
                    stream(dst, results);
                } else {
                    store(dst, results);
                }
            }
        }
    }
    n * 32 * C::GROUPS
}

/// The results of the 16 codes, twice.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn table<const FORM: u8>(c: __m512, operands: [[u8; 4]; 2], (half, nan): (u32, u16)) -> __m512i {
    let [s, u] = operands.map(|bytes| _mm512_set1_ps(f32::from_le_bytes(bytes)));
    let p = match FORM {
        form::MINUS_TIMES => _mm512_mul_ps(_mm512_sub_ps(c, u), s),
        form::TIMES_PLUS => _mm512_add_ps(_mm512_mul_ps(c, s), u),
        form::TIMES_PLUS_BF16 => to_bf16(_mm512_add_ps(to_bf16(_mm512_mul_ps(c, s)), u)),
        _ => _mm512_mul_ps(c, s),
    };
    let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(p, p);
    let words = _mm512_mask_set1_epi32(upper(p, half), is_nan, i32::from(nan));
    _mm512_broadcast_i64x4(_mm512_cvtepi32_epi16(words))
}

/// The upper halves, rounded to nearest even by `half`.
#[inline]
#[target_feature(enable = "avx512f")]
fn upper(x: __m512, half: u32) -> __m512i {
    let x = _mm512_castps_si512(x);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(x), _mm512_set1_epi32(1));
    let sum = _mm512_add_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(half as i32)), odd);
    _mm512_srli_epi32::<16>(sum)
}

/// To nearest even, of a NaN too, whose lower half is zero.
#[inline]
#[target_feature(enable = "avx512f")]
fn to_bf16(x: __m512) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(upper(x, 0x7fff)))
}
