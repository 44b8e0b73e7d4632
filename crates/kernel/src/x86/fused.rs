//! Any wide source to any narrow float to nearest even, through the f32 hub in registers: loaders and encoders of
//! `docs/kernels.md §2.6` and §4.3 in one loop, 64 elements at a time.
//!
//! As lanes they take two passes over a tile, between which memory waits. What a loader or an encoder computes is what the
//! lane of that name computes.

use super::blocks::{Kernel, run, run_streaming};
use super::double::{DROPPED, TRUNCATE, ZERO_OR_SUBNORMAL, int_to_f32_odd_8, to_f32_odd_8};
use super::half::encode_16;
use super::{bytes_where, even_dwords, fused256, join, load, load_half};
use crate::lane::F32_INF;
use crate::lane::encode::{Nearest, shape};
use crate::level::{Avx2, Avx512};
use crate::stage::{Refusal, Stage, Streaming};
use std::arch::x86_64::*;

/// How elements are read into f32, exactly or rounded to odd.
pub(crate) mod source {
    pub const F32: u8 = 0;
    pub const BF16: u8 = 1;
    pub const F16: u8 = 2;
    pub const I16: u8 = 3;
    pub const U16: u8 = 4;
    /// Rounded to odd, or reduced (§4.12).
    pub const F64: u8 = 5;
    pub const F64_REDUCED: u8 = 6;
    /// Clamped to ±2^24, or rounded to odd at 17 bits.
    pub const I32_CLAMPED: u8 = 7;
    pub const U32_CLAMPED: u8 = 8;
    pub const I32_ODD: u8 = 9;
    pub const U32_ODD: u8 = 10;
    /// Clamped to ±2^24, or rounded to odd.
    pub const I64_CLAMPED: u8 = 11;
    pub const U64_CLAMPED: u8 = 12;
    pub const I64_ODD: u8 = 13;
    pub const U64_ODD: u8 = 14;
    /// For who rounds them to f32 or f64 itself.
    pub const I32: u8 = 15;
    pub const U32: u8 = 16;
    pub const I64: u8 = 17;
    pub const U64: u8 = 18;

    /// No element is a NaN.
    pub const fn is_int(source: u8) -> bool {
        !matches!(source, F32 | BF16 | F16 | F64 | F64_REDUCED)
    }

    /// Bytes of an element.
    pub const fn bytes(source: u8) -> usize {
        match source {
            BF16 | F16 | I16 | U16 => 2,
            F32 | I32_CLAMPED | U32_CLAMPED | I32_ODD | U32_ODD | I32 | U32 => 4,
            _ => 8,
        }
    }
}

/// An encoder that is the conversion instruction to f16; other encoders are a [`shape`].
pub(super) const F16_INSTRUCTION: u8 = 1 << 7;

/// From a source to a destination of `BYTES`.
#[derive(Debug)]
pub(crate) struct Fused<V: Vectors, const SOURCE: u8, const SHAPE: u8, const BYTES: usize> {
    numbers: Nearest,
    prepared: V::Prepared,
    vectors: V,
}

/// Vectors of a width, and the proof that their instructions were detected.
pub(crate) trait Vectors: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// What is worked out of the numbers once.
    type Prepared: std::fmt::Debug + Send + Sync;
    /// Whether there is a loader.
    fn loads(source: u8) -> bool;
    /// Whether codes of so many bits are packed in the loop.
    fn packs(source: u8, shape: u8, bits: u32) -> bool;
    fn prepare<const SOURCE: u8, const SHAPE: u8>(numbers: &Nearest) -> Self::Prepared;
    /// Converts whatever the source holds, to codes of `bits`: `8 * BYTES`, or fewer than 8, packed.
    fn run<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
        self,
        numbers: &Nearest,
        prepared: &Self::Prepared,
        src: &[u8],
        dst: (u32, &mut [u8]),
    );
    /// As [`Stage::streaming`].
    const STREAMING: Streaming = Streaming::ByWidth;
    /// As [`Stage::run_streaming`].
    fn run_streaming<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
        self,
        _numbers: &Nearest,
        _src: &[u8],
        _dst: &mut [u8],
        _n: usize,
    ) -> bool {
        false
    }
}

impl Vectors for Avx512 {
    type Prepared = ();
    fn loads(_: u8) -> bool {
        true
    }
    fn packs(_: u8, _: u8, bits: u32) -> bool {
        matches!(bits, 4 | 6)
    }
    fn prepare<const SOURCE: u8, const SHAPE: u8>(_: &Nearest) {}
    fn run<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
        self,
        numbers: &Nearest,
        _: &(),
        src: &[u8],
        (bits, dst): (u32, &mut [u8]),
    ) {
        // SAFETY: the token proves that the feature was detected.
        let kernel = Converts::<SOURCE, SHAPE>(unsafe { Encoder::new(numbers) });
        let n = src.len() / source::bytes(SOURCE);
        match bits {
            4 if BYTES == 1 => run::<_, BYTES, 4>(self, &kernel, src, dst, n),
            6 if BYTES == 1 => run::<_, BYTES, 6>(self, &kernel, src, dst, n),
            _ => run::<_, BYTES, 0>(self, &kernel, src, dst, n),
        }
    }
    const STREAMING: Streaming = Streaming::Itself;
    fn run_streaming<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
        self,
        numbers: &Nearest,
        src: &[u8],
        dst: &mut [u8],
        n: usize,
    ) -> bool {
        // SAFETY: the token proves that the feature was detected.
        let kernel = Converts::<SOURCE, SHAPE>(unsafe { Encoder::new(numbers) });
        run_streaming::<_, BYTES>(self, &kernel, src, dst, n)
    }
}

impl Vectors for Avx2 {
    type Prepared = fused256::Method;
    fn loads(source: u8) -> bool {
        fused256::loads(source)
    }
    fn packs(source: u8, shape: u8, bits: u32) -> bool {
        fused256::packs(source, shape, bits)
    }
    fn prepare<const SOURCE: u8, const SHAPE: u8>(numbers: &Nearest) -> fused256::Method {
        fused256::Method::of::<SOURCE, SHAPE>(numbers)
    }
    fn run<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
        self,
        numbers: &Nearest,
        method: &fused256::Method,
        src: &[u8],
        dst: (u32, &mut [u8]),
    ) {
        if const { fused256::loads(SOURCE) } {
            // SAFETY: the token proves that the features were detected.
            unsafe { fused256::run::<SOURCE, SHAPE, BYTES>(numbers, method, src, dst) };
        }
    }
}

impl<V: Vectors, const SOURCE: u8, const SHAPE: u8, const BYTES: usize> Fused<V, SOURCE, SHAPE, BYTES> {
    fn new(vectors: V, numbers: Nearest) -> Self {
        Self { prepared: V::prepare::<SOURCE, SHAPE>(&numbers), numbers, vectors }
    }
}

/// The stage for a source, unless the encoder has a shape that is only known as a lane. `f16` tells that the destination
/// is f16 and that its instruction gives the codes that are wanted.
pub(crate) fn stage<V: Vectors>(
    vectors: V,
    source: u8,
    numbers: Nearest,
    dst_bytes: usize,
    f16: bool,
) -> Option<Box<dyn Stage>> {
    if !V::loads(source) {
        return None;
    }
    // What is clamped or reduced on its way into the hub goes to destinations of a smaller range than f32's, what is not
    // to those of the same range; what is exact, to both.
    macro_rules! to {
        ($function:ident: $($name:ident)*) => {
            match source {
                $(source::$name => $function::<V, { source::$name }>(vectors, numbers, dst_bytes, f16),)*
                _ => None,
            }
        };
    }
    let narrow = to!(narrow: F32 BF16 F16 I16 U16 F64_REDUCED I32_CLAMPED U32_CLAMPED I64_CLAMPED U64_CLAMPED);
    narrow.or_else(|| to!(upper_bits: F32 BF16 F16 I16 U16 F64 I32_ODD U32_ODD I64_ODD U64_ODD))
}

/// To f16 and to 8 bits.
fn narrow<V: Vectors, const SOURCE: u8>(
    vectors: V,
    numbers: Nearest,
    dst_bytes: usize,
    f16: bool,
) -> Option<Box<dyn Stage>> {
    const PLAIN: u8 = shape::SUBNORMALS | shape::NEGATIVE_ZERO;
    const SPECIAL: u8 = PLAIN | shape::SPECIAL | shape::PAYLOAD;
    const UNSIGNED: u8 = shape::SUBNORMALS;
    const UNSIGNED_SPECIAL: u8 = UNSIGNED | shape::SPECIAL | shape::PAYLOAD;
    macro_rules! fused {
        ($shape:expr, $bytes:literal) => {
            Some(Box::new(Fused::<V, SOURCE, { $shape }, $bytes>::new(vectors, numbers)))
        };
    }
    match (dst_bytes, serving(numbers.shape)) {
        (2, SPECIAL) if f16 && numbers.shape & shape::PAYLOAD != 0 => fused!(F16_INSTRUCTION | shape::PAYLOAD, 2),
        (2, SPECIAL) if f16 => fused!(F16_INSTRUCTION, 2),
        (1, PLAIN) => fused!(PLAIN, 1),
        (1, SPECIAL) => fused!(SPECIAL, 1),
        (1, UNSIGNED) => fused!(UNSIGNED, 1),
        (1, UNSIGNED_SPECIAL) => fused!(UNSIGNED_SPECIAL, 1),
        _ => None,
    }
}

/// To bf16.
fn upper_bits<V: Vectors, const SOURCE: u8>(
    vectors: V,
    numbers: Nearest,
    dst_bytes: usize,
    _: bool,
) -> Option<Box<dyn Stage>> {
    const UPPER: u8 = shape::NEGATIVE_ZERO | shape::SPECIAL | shape::PAYLOAD | shape::UPPER_BITS;
    let fits = (dst_bytes, serving(numbers.shape)) == (2, UPPER);
    fits.then(|| Box::new(Fused::<V, SOURCE, UPPER, 2>::new(vectors, numbers)) as Box<dyn Stage>)
}

/// A shape that does what is asked for: one that takes a payload serves where the mask is zero as well.
const fn serving(shape: u8) -> u8 {
    if shape & shape::SPECIAL != 0 { shape | shape::PAYLOAD } else { shape }
}

impl<V: Vectors, const SOURCE: u8, const SHAPE: u8, const BYTES: usize> Stage for Fused<V, SOURCE, SHAPE, BYTES> {
    fn widths(&self) -> (usize, usize) {
        (source::bytes(SOURCE), BYTES)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        self.vectors.run::<SOURCE, SHAPE, BYTES>(&self.numbers, &self.prepared, src, (8 * BYTES as u32, dst));
        Ok(())
    }
    fn streaming(&self) -> Streaming {
        V::STREAMING
    }
    fn run_streaming(&self, (_, src): (u32, &[u8]), dst: &mut [u8], n: usize) -> bool {
        self.vectors.run_streaming::<SOURCE, SHAPE, BYTES>(&self.numbers, src, dst, n)
    }
    fn writes_packed(&self, bits: u32) -> bool {
        BYTES == 1 && V::packs(SOURCE, SHAPE, bits)
    }
    fn run_packed(&self, (_, src): (u32, &[u8]), dst: (u32, &mut [u8]), _: usize) {
        self.vectors.run::<SOURCE, SHAPE, BYTES>(&self.numbers, &self.prepared, src, dst);
    }
}

/// The loader, and the encoder with its numbers.
struct Converts<const SOURCE: u8, const SHAPE: u8>(Encoder);

impl<const SOURCE: u8, const SHAPE: u8, const BYTES: usize> Kernel<BYTES> for Converts<SOURCE, SHAPE> {
    const SRC_BITS: usize = 8 * source::bytes(SOURCE);
    /// 64 elements to their codes of `BYTES`, in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; BYTES] {
        // All loads come before the first store, which keeps more of them in flight out of cache.
        let mut hub = [_mm512_setzero_si512(); 4];
        for (hub, source) in hub.iter_mut().zip(source.chunks_exact(16 * source::bytes(SOURCE))) {
            *hub = load_hub::<SOURCE>(source);
        }
        if SHAPE & F16_INSTRUCTION != 0 {
            let mut codes = [_mm512_setzero_si512(); BYTES];
            for i in 0..BYTES {
                let (low, high) = (to_half::<SHAPE>(hub[2 * i]), to_half::<SHAPE>(hub[2 * i + 1]));
                codes[i] = join(low, high);
            }
            return codes;
        }
        let mut wide = [_mm512_setzero_si512(); 4];
        if SHAPE & shape::UPPER_BITS != 0 {
            for (wide, hub) in wide.iter_mut().zip(hub) {
                *wide = self.0.round_upper::<SOURCE>(hub);
            }
            return upper_words(wide);
        }
        for (wide, hub) in wide.iter_mut().zip(hub) {
            *wide = self.0.encode::<SHAPE>(hub);
        }
        low_parts(wide)
    }
}

/// The low `BYTES` of 64 elements of 32 bits, in order: whatever lies above them is lost.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
pub(super) fn low_parts<const BYTES: usize>(wide: [__m512i; 4]) -> [__m512i; BYTES] {
    let mut parts = [_mm512_setzero_si512(); BYTES];
    match BYTES {
        1 => {
            let low = load(&bytes_where(|i| i % 32 * 4));
            let first = _mm512_permutex2var_epi8(wide[0], low, wide[1]);
            let second = _mm512_permutex2var_epi8(wide[2], low, wide[3]);
            parts[0] = _mm512_inserti64x4::<1>(first, _mm512_castsi512_si256(second));
        }
        2 => {
            let low = load(&bytes_where(|i| i / 2 * 4 + i % 2));
            for i in 0..BYTES {
                parts[i] = _mm512_permutex2var_epi8(wide[2 * i], low, wide[2 * i + 1]);
            }
        }
        _ => parts.copy_from_slice(&wide[..BYTES.min(4)]),
    }
    parts
}

/// The upper words of 64 elements of 32 bits, in order, as results of two bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn upper_words<const BYTES: usize>(wide: [__m512i; 4]) -> [__m512i; BYTES] {
    let upper = load(&bytes_where(|i| if i % 2 == 0 { i + 1 } else { 0 }));
    let mut parts = [_mm512_setzero_si512(); BYTES];
    for i in 0..BYTES.min(2) {
        parts[i] = _mm512_permutex2var_epi16(wide[2 * i], upper, wide[2 * i + 1]);
    }
    parts
}

/// 16 elements as f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn load_hub<const SOURCE: u8>(bytes: &[u8]) -> __m512i {
    match source::bytes(SOURCE) {
        2 => {
            let elements = load_half(bytes.first_chunk().expect("16 elements"));
            match SOURCE {
                source::BF16 => _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(elements)),
                source::F16 => _mm512_castps_si512(_mm512_cvtph_ps(elements)),
                source::I16 => _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(elements))),
                _ => _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(elements))),
            }
        }
        4 => {
            let elements = load(bytes.first_chunk().expect("16 elements"));
            match SOURCE {
                source::F32 => elements,
                source::I32_ODD => int32_odd::<true>(elements),
                source::U32_ODD => int32_odd::<false>(elements),
                source::I32_CLAMPED => {
                    let low = _mm512_max_epi32(elements, _mm512_set1_epi32(-LIMIT));
                    _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_min_epi32(low, _mm512_set1_epi32(LIMIT))))
                }
                _ => {
                    let clamped = _mm512_min_epu32(elements, _mm512_set1_epi32(LIMIT));
                    _mm512_castps_si512(_mm512_cvtepi32_ps(clamped))
                }
            }
        }
        _ => {
            let (low, rest) = bytes.split_first_chunk().expect("16 elements");
            let high = rest.first_chunk().expect("16 elements");
            match SOURCE {
                source::F64_REDUCED => f64_odd(load(low), load(high)),
                source::F64 => {
                    let bits = f64_odd(load(low), load(high));
                    let small = _mm512_fpclass_ps_mask::<ZERO_OR_SUBNORMAL>(_mm512_castsi512_ps(bits));
                    if small != 0 && small & nonzero(low, high) != 0 { any_f64(low, high) } else { bits }
                }
                _ => int64::<SOURCE>(low, high),
            }
        }
    }
}

/// Eight and eight f64 of which some are below f32's normal range: out of the way, so that the loop stays one.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn any_f64(low: &[u8; 64], high: &[u8; 64]) -> __m512i {
    let [low, high] = [to_f32_odd_8::<false>(low), to_f32_odd_8::<false>(high)];
    join(low, high)
}

/// Magnitudes above it overflow in every destination that is clamped to.
pub(super) const LIMIT: i32 = 1 << 24;

/// 16 integers of 64 bits as f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn int64<const SOURCE: u8>(low: &[u8; 64], high: &[u8; 64]) -> __m512i {
    let (low, high) = match SOURCE {
        source::I64_ODD => (int_to_f32_odd_8::<true>(low), int_to_f32_odd_8::<true>(high)),
        source::U64_ODD => (int_to_f32_odd_8::<false>(low), int_to_f32_odd_8::<false>(high)),
        _ => {
            let clamped = even_dwords(clamped::<SOURCE>(load(low)), clamped::<SOURCE>(load(high)));
            return _mm512_castps_si512(_mm512_cvtepi32_ps(clamped));
        }
    };
    join(low, high)
}

/// Eight integers between `-LIMIT` and `LIMIT`.
#[inline]
#[target_feature(enable = "avx512f")]
fn clamped<const SOURCE: u8>(v: __m512i) -> __m512i {
    let limit = _mm512_set1_epi64(LIMIT as i64);
    if SOURCE == source::U64_CLAMPED {
        return _mm512_min_epu64(v, limit);
    }
    _mm512_min_epi64(_mm512_max_epi64(v, _mm512_set1_epi64(-LIMIT as i64)), limit)
}

/// 16 f64 as f32 that are rounded to odd, but subnormals, which may be zero. A NaN keeps the leading bits of its payload.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn f64_odd(low: __m512i, high: __m512i) -> __m512i {
    let [low_bits, high_bits] =
        [low, high].map(|eight| _mm256_castps_si256(_mm512_cvt_roundpd_ps::<TRUNCATE>(_mm512_castsi512_pd(eight))));
    let dropped = _mm512_set1_epi64(DROPPED);
    let sticky =
        (_mm512_test_epi64_mask(high, dropped) as __mmask16) << 8 | _mm512_test_epi64_mask(low, dropped) as __mmask16;
    let bits = join(low_bits, high_bits);
    _mm512_mask_or_epi32(bits, sticky, bits, _mm512_set1_epi32(1))
}

/// Which of eight and eight f64 are not 0.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn nonzero(low: &[u8; 64], high: &[u8; 64]) -> __mmask16 {
    let magnitude = _mm512_set1_epi64(i64::MAX);
    let [low, high] = [low, high].map(|eight| _mm512_test_epi64_mask(load(eight), magnitude) as __mmask16);
    high << 8 | low
}

/// 16 integers of 32 bits as f32, rounded to odd.
#[inline]
#[target_feature(enable = "avx512f")]
fn int32_odd<const SIGNED: bool>(v: __m512i) -> __m512i {
    let (value, back) = if SIGNED {
        let value = _mm512_cvt_roundepi32_ps::<TRUNCATE>(v);
        (value, _mm512_cvttps_epi32(value))
    } else {
        let value = _mm512_cvt_roundepu32_ps::<TRUNCATE>(v);
        (value, _mm512_cvttps_epu32(value))
    };
    let bits = _mm512_castps_si512(value);
    _mm512_mask_or_epi32(bits, _mm512_cmpneq_epi32_mask(back, v), bits, _mm512_set1_epi32(1))
}

/// 16 f32 to f16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn to_half<const SHAPE: u8>(hub: __m512i) -> __m256i {
    let value = _mm512_castsi512_ps(hub);
    if SHAPE & shape::PAYLOAD != 0 { encode_16::<true>(value) } else { encode_16::<false>(value) }
}

/// The numbers of [`Nearest`] in every lane.
struct Encoder {
    cap: __m512i,
    shift: __m128i,
    half: __m512i,
    lowest_binade: __m512i,
    magic: __m512i,
    sign_shift: __m128i,
    sign: __m512i,
    /// The bits of a code without its sign.
    magnitude: __m512i,
    special_from: __m512i,
    special: __m512i,
    special_sign: __m512i,
    payload_mask: __m512i,
    /// Of [`shape::UPPER_BITS`]: what stays of a NaN, and what is set in it.
    nan_keeps: __m512i,
    nan_sets: __m512i,
}

impl Encoder {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(numbers: &Nearest) -> Encoder {
        let Nearest { cap, shift, half, lowest_binade, magic, sign_shift, sign, .. } = *numbers;
        let Nearest { special_from, special, special_sign, payload_mask, .. } = *numbers;
        Encoder {
            cap: _mm512_set1_epi32(cap as i32),
            shift: _mm_cvtsi32_si128(shift as i32),
            half: _mm512_set1_epi32(half as i32),
            lowest_binade: _mm512_set1_epi32(lowest_binade as i32),
            magic: _mm512_set1_epi32(magic as i32),
            sign_shift: _mm_cvtsi32_si128(sign_shift as i32),
            sign: _mm512_set1_epi32(sign as i32),
            magnitude: _mm512_set1_epi32(sign as i32 - 1),
            special_from: _mm512_set1_epi32(special_from as i32),
            special: _mm512_set1_epi32(special as i32),
            special_sign: _mm512_set1_epi32(special_sign as i32),
            payload_mask: _mm512_set1_epi32(payload_mask as i32),
            nan_keeps: _mm512_set1_epi32(((sign | payload_mask) << 16) as i32),
            nan_sets: _mm512_set1_epi32((special << 16) as i32),
        }
    }

    /// The same lane where the code is the upper half of the f32; the lower half of the result is anything.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn round_upper<const SOURCE: u8>(&self, x: __m512i) -> __m512i {
        // By arithmetic: tests into masks take longer than shifts.
        let parity = _mm512_and_si512(_mm512_srli_epi32::<16>(x), _mm512_set1_epi32(1));
        let rounded = _mm512_add_epi32(_mm512_add_epi32(x, parity), self.half);
        if source::is_int(SOURCE) {
            return rounded;
        }
        let value = _mm512_castsi512_ps(x);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
        _mm512_mask_or_epi32(rounded, nan, _mm512_and_si512(x, self.nan_keeps), self.nan_sets)
    }

    /// The lane [`crate::lane::encode::EncodeNearest`], line by line.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn encode<const SHAPE: u8>(&self, x: __m512i) -> __m512i {
        let abs = _mm512_and_si512(x, _mm512_set1_epi32(i32::MAX));
        let capped = _mm512_min_epu32(abs, self.cap);
        let mut r = if SHAPE & shape::SUBNORMALS != 0 {
            let exponent = _mm512_and_si512(capped, _mm512_set1_epi32(F32_INF as i32));
            let binade = _mm512_max_epu32(exponent, self.lowest_binade);
            let magic = _mm512_castsi512_ps(_mm512_add_epi32(binade, self.magic));
            let sum = _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(capped), magic));
            _mm512_add_epi32(sum, _mm512_srl_epi32(binade, self.shift))
        } else {
            let parity = _mm512_and_si512(_mm512_srl_epi32(capped, self.shift), _mm512_set1_epi32(1));
            _mm512_srl_epi32(_mm512_add_epi32(_mm512_add_epi32(capped, self.half), parity), self.shift)
        };
        let sign = _mm512_and_si512(_mm512_srl_epi32(x, self.sign_shift), self.sign);
        r = if SHAPE & shape::NEGATIVE_ZERO != 0 {
            _mm512_or_si512(r, sign)
        } else {
            _mm512_mask_or_epi32(r, _mm512_test_epi32_mask(r, self.magnitude), r, sign)
        };
        if SHAPE & shape::SPECIAL != 0 {
            let specials = _mm512_cmpge_epu32_mask(abs, self.special_from);
            if specials != 0 {
                let payload = _mm512_and_si512(_mm512_srl_epi32(abs, self.shift), self.payload_mask);
                let flip = _mm512_and_si512(sign, self.special_sign);
                let special = _mm512_xor_si512(_mm512_or_si512(self.special, payload), flip);
                r = _mm512_mask_mov_epi32(r, specials, special);
            }
        }
        r
    }
}
