//! Compares numbers: block by block with quick tests, then one by one where a test fails.

use super::difference::WrongElement;
use super::method::{Method, definition};
use super::seen::{Findings, Seen};
use super::written::Written;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::scan::Chunk;
use foldhash::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use truecast_core::exact::RandomBits;
use truecast_core::{CastSpec, DType};
use truecast_io::Tensor;
use truecast_kernel::Elements;

/// Elements per quick test; as machine words they fit in the L1 cache.
const BLOCK: usize = 1024;
/// Elements per quick test in a block that failed.
const ROW: usize = 16;

/// Cache of methods by conversion, because a checkpoint has thousands of similar tensors.
#[derive(Default)]
pub(crate) struct Prepared {
    seed: Option<u64>,
    /// Number of elements to recompute for each cast.
    lens: HashMap<CastSpec, u64>,
    /// Key: cast and storage widths. The widths depend on the containers.
    methods: HashMap<(CastSpec, (u32, u32)), Method>,
}

impl Prepared {
    /// Cache without entries; `seed` is for stochastic rounding.
    pub fn new(seed: Option<u64>) -> Prepared {
        Prepared { seed, ..Prepared::default() }
    }

    /// Announces `len` more elements for a cast.
    pub fn expect(&mut self, cast: CastSpec, len: u64) {
        *self.lens.entry(cast).or_default() += len;
    }

    /// Checker for f32 values against the codes of `target`.
    pub fn checker(&mut self, cast: CastSpec, target: &Tensor) -> Checker<'_> {
        let bits = target.dtype.bits_in(target.layout).expect("numbers have a width");
        let seed = seed_of(&cast, self.seed);
        Checker { cast, seed, method: self.method(cast, (32, bits)) }
    }

    fn method(&mut self, cast: CastSpec, bits: (u32, u32)) -> &Method {
        let (seed, len) = (seed_of(&cast, self.seed), self.lens.get(&cast).copied().unwrap_or(0));
        self.methods.entry((cast, bits)).or_insert_with(|| match seed {
            None => Method::new(&cast, bits.0, bits.1, len),
            Some(_) => Method::Definition,
        })
    }
}

/// Compares a source tensor with its result. Also returns the number of elements per method.
pub(crate) fn compare(
    of: &Written<'_>,
    from: Stored,
    prepared: &mut Prepared,
    progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<Findings, Error> {
    let (tensor, cast) = (of.planned, of.cast());
    let bits = |dtype: DType, layout| dtype.bits_in(layout).expect("numbers have a width");
    let result = &of.result.tensors()[of.places[0]];
    let widths = (bits(tensor.from, tensor.src_layout), bits(tensor.target.dtype, result.layout));
    // Copied tensors must match in all bits, even ignored ones.
    let seed = seed_of(&cast, prepared.seed);
    let method = if tensor.cast.is_none() { &Method::Copied } else { prepared.method(cast, widths) };
    let checker = Checker { cast, seed, method };
    let work = |seen: &mut _, (first, [src, dst]): Chunk<'_, 2>| checker.chunk(first, &src, &dst, seen);
    let seen = of.scan(from, Seen::new, work, progress)?.into_iter().fold(Seen::new(), Seen::merge);
    Ok(seen.findings([&tensor.target.name; 3], (tensor.from, tensor.target.dtype)))
}

/// Seed for a cast; `None` for an unchanged type, which is not rounded.
fn seed_of(cast: &CastSpec, seed: Option<u64>) -> Option<u64> {
    seed.filter(|_| cast.src != cast.dst)
}

pub(crate) struct Checker<'a> {
    pub cast: CastSpec,
    pub seed: Option<u64>,
    pub method: &'a Method,
}

impl Checker<'_> {
    fn chunk(&self, first: u64, src: &Elements<'_>, dst: &Elements<'_>, seen: &mut Seen) {
        if matches!(self.method, Method::Copied) && src.bytes() == dst.bytes() {
            seen.by.copied += src.len() as u64;
            return;
        }
        let (mut xs, mut ys) = ([0; BLOCK], [0; BLOCK]);
        for at in (0..src.len()).step_by(BLOCK) {
            let len = BLOCK.min(src.len() - at);
            let (xs, ys) = (&mut xs[..len], &mut ys[..len]);
            words(src, at, xs);
            words(dst, at, ys);
            let Ok(()) = self.block(first + at as u64, xs, ys, seen, &|_, source| Ok::<_, Infallible>(source));
        }
    }

    /// Compares computed f32 values with the codes in the file, from element `first` on. `exact` computes the value of
    /// an element that the quick tests do not accept.
    ///
    /// # Errors
    /// The errors of `exact`.
    pub(crate) fn made<E>(
        &self,
        first: u64,
        values: &[u32],
        dst: &Elements<'_>,
        seen: &mut Seen,
        exact: &impl Fn(u64) -> Result<u32, E>,
    ) -> Result<(), E> {
        // The read begins at a byte boundary, so `dst` may have elements before `first`.
        let skip = dst.len() - values.len();
        let (mut xs, mut ys) = ([0; BLOCK], [0; BLOCK]);
        for at in (0..dst.len()).step_by(BLOCK) {
            let len = BLOCK.min(dst.len() - at);
            let (xs, ys) = (&mut xs[..len], &mut ys[..len]);
            let before = skip.saturating_sub(at);
            xs[before..].iter_mut().zip(&values[(at + before) - skip..]).for_each(|(x, value)| *x = (*value).into());
            words(dst, at, ys);
            let first = first + (at + before - skip) as u64;
            self.block(first, &xs[before..], &ys[before..], seen, &|index, _| exact(index).map(u64::from))?;
        }
        Ok(())
    }

    fn cast_of(&self, index: u64, storage: u64) -> CastSpec {
        let cast = self.cast;
        let random = self.seed.map(|seed| RandomBits::of_element(seed, index));
        random.map_or(cast, |random| cast.with_random_bits(cast.src.code_of_storage(storage), random))
    }

    /// Compares at most [`BLOCK`] elements from `first` on. `exact` gives the source code of an element that the quick
    /// tests do not accept.
    fn block<E>(
        &self,
        first: u64,
        xs: &[u64],
        ys: &[u64],
        seen: &mut Seen,
        exact: &impl Fn(u64, u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let Seen { elements: found, by, .. } = seen;
        if self.method.hold(xs, ys) {
            *self.method.counter(by) += xs.len() as u64;
            return Ok(());
        }
        // A few special values must not slow down the other elements.
        for (row, (xs, ys)) in (first..).step_by(ROW).zip(xs.chunks(ROW).zip(ys.chunks(ROW))) {
            if self.method.hold(xs, ys) {
                *self.method.counter(by) += xs.len() as u64;
                continue;
            }
            for (index, (&source, &actual)) in (row..).zip(xs.iter().zip(ys)) {
                if self.method.hold(&[source], &[actual]) {
                    *self.method.counter(by) += 1;
                    continue;
                }
                let source = exact(index, source)?;
                let expected = match self.method {
                    Method::Copied => Some(source),
                    _ => definition(&self.cast_of(index, source), source),
                };
                by.definition += 1;
                match expected {
                    Some(expected) if expected == actual => {}
                    Some(expected) => found.wrong(index, || WrongElement { index, source, expected, actual }),
                    None => found.refuse(index),
                }
            }
        }
        Ok(())
    }
}

/// Reads the storage of elements into `words`; `first` is a multiple of 8.
fn words(codes: &Elements<'_>, first: usize, words: &mut [u64]) {
    let bits = codes.dtype().bits_in(codes.layout()).expect("numbers have a width") as usize;
    let bytes = &codes.bytes()[first * bits / 8..];
    match bits {
        8 => whole::<1>(bytes, words),
        16 => whole::<2>(bytes, words),
        32 => whole::<4>(bytes, words),
        48 => whole::<6>(bytes, words),
        64 => whole::<8>(bytes, words),
        1 => packed::<1>(bytes, words),
        2 => packed::<2>(bytes, words),
        3 => packed::<3>(bytes, words),
        4 => packed::<4>(bytes, words),
        6 => packed::<6>(bytes, words),
        _ => words.iter_mut().enumerate().for_each(|(i, word)| *word = codes.storage(first + i)),
    }
}

fn whole<const N: usize>(bytes: &[u8], words: &mut [u64]) {
    for (element, word) in bytes.as_chunks::<N>().0.iter().zip(words) {
        *word = little_endian(element);
    }
}

/// Unpacks elements of `BITS` bits; eight elements fill `BITS` bytes.
fn packed<const BITS: usize>(bytes: &[u8], words: &mut [u64]) {
    for (group, words) in bytes.chunks(BITS).zip(words.chunks_mut(8)) {
        let group = match <&[u8; BITS]>::try_from(group) {
            Ok(group) => little_endian(group),
            Err(_) => group.iter().rev().fold(0, |word, &byte| word << 8 | byte as u64),
        };
        for (i, word) in words.iter_mut().enumerate() {
            *word = group >> (i * BITS) & ((1 << BITS) - 1);
        }
    }
}

#[inline(always)]
fn little_endian<const N: usize>(bytes: &[u8; N]) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::Layout;

    /// Compares with elements read bit by bit, for every type and length.
    #[test]
    fn words_are_the_elements() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 167 + i / 7) as u8).collect();
        let types = DType::ALL.into_iter().filter(|dtype| *dtype != DType::String);
        for (dtype, layout) in types.flat_map(|dtype| [(dtype, Layout::Packed), (dtype, Layout::Bytes)]) {
            for len in 0..40 {
                let bytes = &bytes[..dtype.bytes_in(layout, len).unwrap() as usize];
                let codes = Elements::with_layout(dtype, layout, len as usize, bytes).unwrap();
                for first in (0..=len as usize).step_by(8) {
                    let mut got = vec![0; len as usize - first];
                    words(&codes, first, &mut got);
                    let want: Vec<u64> = (first..len as usize).map(|i| codes.storage(i)).collect();
                    assert_eq!(got, want, "{dtype}, {len} from {first}");
                }
            }
        }
    }
}
