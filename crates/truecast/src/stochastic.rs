//! Stochastic rounding of arrays: each element takes 32 random bits that depend on the seed and on its index alone, so that
//! threads, pieces and CPUs change nothing.
//!
//! The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): the key is the
//! seed, the counter is the index divided by 4, and the index modulo 4 chooses one of four words.

use crate::error::Error;
use truecast_core::exact::RandomBits;
use truecast_core::{CastSpec, DType, Kind, Outcome, cast_one};
use truecast_kernel::{CastError, Elements, ElementsMut, PlanError};

/// Elements that are rounded at once.
const CHUNK: usize = 1 << 16;

/// The random bits of an element.
///
/// # Examples
/// ```
/// use truecast::stochastic::random_bits;
/// assert_eq!(random_bits(0, 0).bits(), 0x6627_e8d5); // the known answer for counter 0 and key 0
/// ```
#[must_use]
pub fn random_bits(seed: u64, index: u64) -> RandomBits {
    let word = philox4x32([(index / 4) as u32, (index >> 34) as u32, 0, 0], [seed as u32, (seed >> 32) as u32])
        [index as usize % 4];
    RandomBits::new(word.into(), 32).expect("a word has 32 bits")
}

/// Ten rounds of Philox.
fn philox4x32(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| {
        let wide = u64::from(a) * u64::from(b);
        ((wide >> 32) as u32, wide as u32)
    };
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        let (high0, low0) = product(0xd251_1f53, counter[0]);
        let (high1, low1) = product(0xcd9e_8d57, counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
    }
    counter
}

/// Converts a buffer, each element rounded by its [`random_bits`]; the first has the index `first`, so that parts of an array
/// give what the whole does.
///
/// Shapes: `src.len() == dst.len()`, in elements. Result: [`CastSpec::with_random_bits`] of every code; what is exact stays.
/// Cost: the price of the definition, about 100 ns an element on each core.
///
/// # Errors
/// [`Error::Cast`] if the buffers do not fit, or an `error` policy refuses an element; [`Error::Plan`] for text, truth values
/// and code books, which have no last place.
///
/// # Examples
/// ```
/// use truecast::{DType, Elements, ElementsMut, spec::ieee::Cast, stochastic};
/// let cast = Cast::to(DType::I8).resolve(DType::F32)?;
/// let src: Vec<u8> = [0.25f32; 4096].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let mut dst = [0; 4096];
/// stochastic::cast(&cast, Elements::new(DType::F32, 4096, &src)?, ElementsMut::new(DType::I8, 4096, &mut dst)?, 7, 0)?;
/// let ones = dst.iter().filter(|x| **x == 1).count();
/// assert!((900..1150).contains(&ones)); // a quarter of them
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cast(spec: &CastSpec, src: Elements<'_>, mut dst: ElementsMut<'_>, seed: u64, first: u64) -> Result<(), Error> {
    let has_last_place = |dtype: DType| matches!(dtype.kind(), Kind::Float(_) | Kind::Int(_) | Kind::Fixed(_));
    if !spec.src.is_numeric() || !has_last_place(spec.dst) {
        return Err(PlanError::Unsupported { src: spec.src, dst: spec.dst }.into());
    }
    for (dtype, expected) in [(src.dtype(), spec.src), (dst.dtype(), spec.dst)] {
        if dtype != expected {
            return Err(CastError::Type { expected, got: dtype }.into());
        }
    }
    if src.len() != dst.len() {
        return Err(CastError::Count { src: src.len(), dst: dst.len() }.into());
    }
    let rounded = |i: usize| {
        let code = src.get(i);
        let cast = spec.with_random_bits(code, random_bits(seed, first + i as u64));
        match cast_one(&cast, code) {
            Outcome::Defined(result) | Outcome::Undefined { code: result, .. } => Ok(result),
            Outcome::Refused { condition } => {
                Err(CastError::Value { index: i, condition, src: spec.src, dst: spec.dst, code })
            }
        }
    };
    let len = src.len();
    let chunk = |at: usize| (at * CHUNK..len.min((at + 1) * CHUNK)).map(rounded).collect::<Result<Vec<u64>, _>>();
    // As many chunks at a time as fit in some MiB.
    for group in (0..len.div_ceil(CHUNK)).collect::<Vec<_>>().chunks(16) {
        let results = crate::rule::each(group.len(), |at| chunk(group[at]));
        for (at, results) in group.iter().zip(results) {
            results?.into_iter().enumerate().for_each(|(i, code)| dst.set(at * CHUNK + i, code));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::philox4x32;

    /// The known answers that are published with the generator.
    #[test]
    fn known_answers() {
        for (counter, key, words) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox4x32(counter, key), words);
        }
    }
}
