//! Blocks of codes of four bits: the 16 results of a block are made in a register, and its elements looked up there.

use super::super::{ahead::Ahead, bytes_where, load, load128, load256, store, stream};
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
                    $((Order::$order { .. }, form::$form, false) => all::<$order, { form::$form }, false>(of, dst),
                    (Order::$order { .. }, form::$form, true) => all::<$order, { form::$form }, true>(of, dst),)*
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
    /// Groups of 32 elements whose codes lie together: one or an even number.
    const GROUPS: usize;
    /// Bytes of a record that are asked for in advance at most: a constant, so that asking is no loop within the loop.
    const ASKS: usize = 64 * Self::GROUPS.div_ceil(4);
    /// Bytes from the beginning of one such record to the next, and to its codes.
    fn place(order: Order) -> (usize, usize);
    /// The codes of a group, of which the lowest four bits count. `codes` are those of its record.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn group(codes: &[u8], group: usize) -> __m512i;
    /// The codes of two groups that follow each other, of which the lowest five bits count: those of the second have the
    /// highest of these set. `codes` are those of the record of the first, `next` of the second, where it has its own.
    ///
    /// # Safety
    /// As [`group`](Codes::group).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn two(codes: &[u8], next: &[u8], group: usize) -> [__m512i; 2] {
        // SAFETY: this function has the features.
        let [first, second] = unsafe {
            match Self::GROUPS {
                1 => [Self::group(codes, 0), Self::group(next, 0)],
                _ => [Self::group(codes, group), Self::group(codes, group + 1)],
            }
        };
        let (code, table) = (_mm512_set1_epi16(15), _mm512_set1_epi16(16));
        // x & 15, and x & 15 | 16.
        [_mm512_and_si512(first, code), _mm512_ternarylogic_epi32::<0xf8>(table, second, code)]
    }
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

/// Short blocks by twos if they can, and the others.
///
/// # Safety
/// Needs the features of [`Avx512`]; where it streams, `dst` must be aligned to 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn all<C: Codes, const FORM: u8, const STREAMS: bool>(of: &Nibbles<'_>, dst: &mut [u8]) -> usize {
    let n = of.elements().min(dst.len() / RESULTS * 32);
    let n_groups = n / 32;
    let has_others = !matches!(FORM, form::TIMES);
    let are_finite =
        of.block == 32 && of.half == HALF && finite(&of.s[..n_groups]) && (!has_others || finite(&of.u[..n_groups]));
    // SAFETY: this function has the features, and its caller aligned `dst`, of which whole lines are made by twos.
    unsafe {
        let done = if are_finite { twos::<C, FORM, STREAMS>(of, dst) } else { 0 };
        if done == n {
            return done;
        }
        let bytes = done / 32 / C::GROUPS * C::place(of.order).0;
        let rest =
            Nibbles { codes: &of.codes[bytes..], s: &of.s[done / of.block..], u: &of.u[done / of.block..], ..*of };
        done + groups::<C, FORM, STREAMS>(&rest, &mut dst[2 * done..])
    }
}

/// What rounds an f32 to its upper half, to nearest even.
const HALF: u32 = 0x7fff;

/// Whether all values are finite. A block whose operands are has no NaN among its results (`docs/kernels.md §15`).
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn finite(values: &[[u8; 4]]) -> bool {
    let magnitude = |value: &[u8; 4]| u32::from_le_bytes(*value) & 0x7fff_ffff;
    values.iter().map(magnitude).fold(0, u32::max) < 0x7f80_0000
}

/// Blocks of 32 with finite operands, two at a time with both tables in one register. The last of an odd number is left.
///
/// # Safety
/// As [`all`].
#[inline(never)] // so that `verify asm` finds each loop by its name
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn twos<C: Codes, const FORM: u8, const STREAMS: bool>(of: &Nibbles<'_>, dst: &mut [u8]) -> usize {
    let (bytes, at) = C::place(of.order);
    let ahead = if STREAMS { Ahead::past_caches_by_lines() } else { Ahead::plain() };
    let values = _mm512_castsi512_ps(load(of.values.as_flattened().first_chunk().expect("16 values")));
    // Records of two groups, or of more.
    let (records, twos) = (2usize.div_ceil(C::GROUPS), C::GROUPS.div_ceil(2));
    let mut operands = of.s.as_chunks::<2>().0.iter().zip(of.u.as_chunks::<2>().0);
    let (twos_of_dst, _) = dst.as_chunks_mut::<{ 2 * RESULTS }>();
    let mut done = 0;
    for (records, dst) in of.codes.chunks_exact(records * bytes).zip(twos_of_dst.chunks_exact_mut(twos)) {
        ahead.ask(STREAMS, records, records.len());
        let (codes, next) = (&records[at..], &records[records.len() - bytes + at..]);
        for (i, dst) in dst.iter_mut().enumerate() {
            let Some((s, u)) = operands.next() else { return done };
            let tables = two_tables::<FORM>(values, s, u);
            // SAFETY: this function has the features; every target is a whole line, and the caller aligned the first.
            unsafe {
                let indices = C::two(codes, next, 2 * i);
                for (dst, indices) in dst.as_chunks_mut::<RESULTS>().0.iter_mut().zip(indices) {
                    let results = _mm512_permutexvar_epi16(indices, tables);
                    if STREAMS {
                        stream(dst, results);
                    } else {
                        store(dst, results);
                    }
                }
            }
        }
        done += 64 * twos;
    }
    done
}

/// The results of the 16 codes of two blocks with finite operands.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn two_tables<const FORM: u8>(c: __m512, s: &[[u8; 4]; 2], u: &[[u8; 4]; 2]) -> __m512i {
    let [first, second] = [0, 1].map(|i| _mm512_castps_si512(product::<FORM>(c, [s[i], u[i]])));
    // Words 2 i + 1 and 2 i of both.
    let lower = load(const { &bytes_where!(|i| (1 - i % 2) * i) });
    let upper = _mm512_add_epi16(lower, _mm512_set1_epi16(1));
    let upper = _mm512_permutex2var_epi16(first, upper, second);
    let lower = _mm512_permutex2var_epi16(first, lower, second);
    // To nearest even: up if lower + upper % 2 > 0x8000, where a sum that overflows stays at the largest.
    let odd = _mm512_and_si512(upper, _mm512_set1_epi16(1));
    let is_up = _mm512_cmpgt_epu16_mask(_mm512_adds_epu16(lower, odd), _mm512_set1_epi16(i16::MIN));
    _mm512_mask_add_epi16(upper, is_up, upper, _mm512_set1_epi16(1))
}

/// # Safety
/// As [`all`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn groups<C: Codes, const FORM: u8, const STREAMS: bool>(of: &Nibbles<'_>, dst: &mut [u8]) -> usize {
    let n = of.elements().min(dst.len() / RESULTS * 32) / (32 * C::GROUPS);
    let (bytes, at) = C::place(of.order);
    let ahead = if STREAMS { Ahead::past_caches_by_lines() } else { Ahead::plain() };
    let values = _mm512_castsi512_ps(load(of.values.as_flattened().first_chunk().expect("16 values")));
    let per_block = (of.block / 32).max(1);
    let mut both = _mm512_setzero_si512();
    let mut operands = of.s.iter().zip(of.u);
    let mut left = 0;
    let records = of.codes.chunks_exact(bytes).zip(dst.chunks_exact_mut(RESULTS * C::GROUPS)).take(n);
    for (record, dst) in records {
        ahead.ask(STREAMS, record, bytes.min(C::ASKS));
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
    let p = product::<FORM>(c, operands);
    let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(p, p);
    let words = _mm512_mask_set1_epi32(upper(p, half), is_nan, i32::from(nan));
    _mm512_broadcast_i64x4(_mm512_cvtepi32_epi16(words))
}

/// Codes with the operands of their block, in f32.
#[inline]
#[target_feature(enable = "avx512f")]
fn product<const FORM: u8>(c: __m512, operands: [[u8; 4]; 2]) -> __m512 {
    let [s, u] = operands.map(|bytes| _mm512_set1_ps(f32::from_le_bytes(bytes)));
    match FORM {
        form::MINUS_TIMES => _mm512_mul_ps(_mm512_sub_ps(c, u), s),
        form::TIMES_PLUS => _mm512_add_ps(_mm512_mul_ps(c, s), u),
        form::TIMES_PLUS_BF16 => to_bf16(_mm512_add_ps(to_bf16(_mm512_mul_ps(c, s)), u)),
        _ => _mm512_mul_ps(c, s),
    }
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
