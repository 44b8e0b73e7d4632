//! Does a file hold what the definition says it should? Recomputed element by element with
//! [`cast_one`], which shares no code with the kernels that may have written it.

mod text;

use crate::convert::{Options, Plan, Planned};
use crate::error::Error;
use crate::parts::{Parts, element};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use truecast_core::{CastSpec, DType, Layout, Outcome, cast_one};
use truecast_io::npy::HeaderError;
use truecast_io::{Kind, Reading, Source};

/// One way in which a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The destination lacks a tensor.
    Missing {
        /// Its name.
        tensor: String,
    },
    /// The destination has a tensor that the source does not account for.
    Extra {
        /// Its name.
        tensor: String,
    },
    /// Type or shape are wrong.
    Header {
        /// Its name.
        tensor: String,
        /// What it should be.
        expected: (DType, Vec<u64>),
        /// What it is.
        actual: (DType, Vec<u64>),
    },
    /// Elements are wrong.
    Elements {
        /// The tensor.
        tensor: String,
        /// How many.
        count: u64,
        /// The first of them.
        first: WrongElement,
        /// Types of the source's and the destination's elements.
        types: (DType, DType),
    },
    /// Texts are wrong, or elements that come from text.
    Texts {
        /// The tensor.
        tensor: String,
        /// How many.
        count: u64,
        /// The first of them.
        first: WrongText,
    },
    /// The source holds a value that the policy refuses or a text that is no number, so no result is right.
    Refused {
        /// The tensor.
        tensor: String,
        /// The first such element.
        index: u64,
    },
    /// The structure of a model, which is everything but the elements of its tensors, differs.
    Structure {
        /// Where in the file it does first.
        offset: u64,
    },
    /// A model's file of external data holds more than its elements, with zeros between them.
    ExternalData {
        /// The file, as the model names it.
        location: String,
        /// Where in it something else begins.
        offset: u64,
    },
    /// The metadata of a safetensors file differs; a `format` that the source lacks is `pt`.
    Metadata {
        /// The key.
        key: String,
    },
}

/// An element that is not what it should be. Codes are those of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongElement {
    /// Index in row-major order.
    pub index: u64,
    /// The source's code.
    pub source: u64,
    /// The right code.
    pub expected: u64,
    /// What the file holds.
    pub actual: u64,
}

/// An element that is not what it should be, where text is on one side or both. Numbers stand as hexadecimal codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongText {
    /// Index in row-major order.
    pub index: u64,
    /// The source's element.
    pub source: String,
    /// The right one.
    pub expected: String,
    /// What the file holds.
    pub actual: String,
}

/// What was compared and what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tensors compared.
    pub tensors: u64,
    /// Elements compared.
    pub elements: u64,
    /// In the order of the tensors.
    pub differences: Vec<Difference>,
}

/// Recomputes the conversion of `src` under `options` and compares it with `dst`, bit for bit.
///
/// Cost: up to 100 ns per element and core, or up to 0.2 ms where it is printed, which is the price of the definition; a
/// few MiB of memory. `progress` is told the source bytes that are done.
///
/// # Errors
/// Files that cannot be read, options that make no sense for the source. Differences are not errors.
pub fn verify(src: &Path, dst: &Path, options: &Options, mut progress: impl FnMut(u64)) -> Result<Verdict, Error> {
    let plan = Plan::new(src, dst, options)?;
    let source = plan.source();
    let planned = plan.tensors();
    let result = open_result(dst, options)?;
    // Such an array has no name to be found by.
    let nameless =
        (source.kind().holds_one() || result.kind().holds_one()) && planned.len() == 1 && result.tensors().len() == 1;
    let by_name: HashMap<_, _> = result.tensors().iter().enumerate().map(|(i, t)| (t.name.as_str(), i)).collect();
    let mut is_extra = vec![true; result.tensors().len()];
    let mut verdict = Verdict::default();
    let mut done = 0;
    for (index, tensor) in planned.iter().enumerate() {
        let name = &tensor.target.name;
        let found = if nameless { Some(0) } else { by_name.get(name.as_str()).copied() };
        let Some(at) = found else {
            verdict.differences.push(Difference::Missing { tensor: name.clone() });
            continue;
        };
        let actual = &result.tensors()[at];
        is_extra[at] = false;
        verdict.tensors += 1;
        if !fits(&result, tensor.target.dtype, actual.dtype) || actual.shape != tensor.target.shape {
            verdict.differences.push(Difference::Header {
                tensor: name.clone(),
                expected: (tensor.target.dtype, tensor.target.shape.clone()),
                actual: (actual.dtype, actual.shape.clone()),
            });
            continue;
        }
        let mut progress = |bytes| {
            done += bytes;
            progress(done);
        };
        let has_text = [tensor.from, tensor.target.dtype].contains(&DType::String);
        let pair = Pair { source, index, tensor, result: &result, at };
        let difference = if has_text { text::compare(&pair, &mut progress) } else { elements(&pair, &mut progress) }?;
        verdict.elements += tensor.target.len();
        verdict.differences.extend(difference);
    }
    let extra = result.tensors().iter().zip(is_extra).filter(|(_, is_extra)| *is_extra);
    verdict.differences.extend(extra.map(|(t, _)| Difference::Extra { tensor: t.name.clone() }));
    if result.kind() == Kind::Safetensors {
        let keys: BTreeSet<_> = source.metadata().keys().chain(result.metadata().keys()).collect();
        let right = |key: &str| source.metadata().get(key).map(String::as_str).or((key == "format").then_some("pt"));
        let wrong = keys.into_iter().filter(|key| result.metadata().get(*key).map(String::as_str) != right(key));
        verdict.differences.extend(wrong.map(|key| Difference::Metadata { key: key.clone() }));
    }
    verdict.differences.extend(model(&plan, &result)?);
    Ok(verdict)
}

/// A model has to be the expected one byte for byte, wherever it keeps its external data, and so has that.
fn model(plan: &Plan, result: &Source) -> Result<Option<Difference>, Error> {
    let Some(model) = result.model() else { return Ok(None) };
    let location = model.external_location().unwrap_or_default();
    let Some(new) = plan.new_model_with(location)? else { return Ok(None) };
    if let Some(offset) = new.structure_differs(result.path())? {
        return Ok(Some(Difference::Structure { offset }));
    }
    let Some(path) = model.data_files().pop_first() else { return Ok(None) };
    let offset = new.data_differs(&path)?;
    Ok(offset.map(|offset| Difference::ExternalData { location: location.into(), offset }))
}

/// Opens the destination. Where the header of an array does not say which narrow type its bytes are
/// (`docs/interfaces.md §4`), they are read as bytes, and later as what they should be.
fn open_result(dst: &Path, options: &Options) -> Result<Source, Error> {
    let open = |from| Source::open_with(dst, Reading { from, onnx: options.onnx });
    match open(None) {
        Err(truecast_io::Error::Npy { cause: HeaderError::FromNeeded { .. }, .. }) => Ok(open(Some(DType::U8))?),
        opened => Ok(opened?),
    }
}

/// The header's type can stand for the right one: it is the same, or the container does not tell them apart.
fn fits(result: &Source, expected: DType, actual: DType) -> bool {
    let is_array = matches!(result.kind(), Kind::Npy | Kind::Npz);
    let as_bytes = actual == DType::U8 && expected.bits_in(Layout::Bytes) == Some(8);
    expected == actual || (is_array && (as_bytes || (expected, actual) == (DType::Tf32, DType::F32)))
}

/// A tensor and what became of it.
struct Pair<'a> {
    source: &'a Source,
    /// Index in the source.
    index: usize,
    tensor: &'a Planned,
    result: &'a Source,
    /// Index in the result.
    at: usize,
}

impl Pair<'_> {
    /// What was asked for; of a tensor that was copied, a copy.
    fn cast(&self) -> CastSpec {
        self.tensor.cast.unwrap_or(CastSpec::copy(self.tensor.from))
    }

    /// Both sides in parts of as many elements.
    fn parts(&self) -> Result<(Parts, Parts), Error> {
        let Pair { source, index, tensor, result, at } = *self;
        let (src, dst) = (Parts::new(source, index, tensor.from)?, Parts::new(result, at, tensor.target.dtype)?);
        let part = src.part().min(dst.part());
        Ok((src.at_most(part), dst.at_most(part)))
    }
}

fn elements(pair: &Pair<'_>, progress: &mut dyn FnMut(u64)) -> Result<Option<Difference>, Error> {
    let (tensor, cast) = (pair.tensor, pair.cast());
    let table = Table::new(&cast, tensor.target.len());
    let (mut parts, mut actual) = pair.parts()?;
    let (mut offset, mut count, mut first) = (0, 0, None);
    while let (Some(src), Some(dst)) = (parts.next()?, actual.next()?) {
        let wrong = |i: usize| {
            let code = element(&src, i);
            let got = element(&dst, i);
            match table.expected(&cast, code, tensor.cast.is_none()) {
                Some(expected) if expected == got => None,
                Some(expected) => {
                    Some(Ok(WrongElement { index: offset + i as u64, source: code, expected, actual: got }))
                }
                None => Some(Err(offset + i as u64)),
            }
        };
        let blocks = src.len().div_ceil(4096);
        let found =
            (0..blocks).into_par_iter().flat_map_iter(|b| (b * 4096..src.len().min(b * 4096 + 4096)).filter_map(wrong));
        let (part_count, part_first) = found.fold(|| (0u64, None), fold).reduce(|| (0, None), join);
        if let Some(Err(index)) = part_first {
            return Ok(Some(Difference::Refused { tensor: tensor.target.name.clone(), index }));
        }
        count += part_count;
        first = first.or(part_first);
        offset += src.len() as u64;
        progress(src.bytes().len() as u64);
    }
    let first = first.and_then(Result::ok);
    let types = (tensor.from, tensor.target.dtype);
    Ok(first.map(|first| Difference::Elements { tensor: tensor.target.name.clone(), count, first, types }))
}

type Found = (u64, Option<Result<WrongElement, u64>>);

fn fold((count, first): Found, next: Result<WrongElement, u64>) -> Found {
    join((count, first), (1, Some(next)))
}

/// Keeps the earlier element; a refusal counts before anything else.
fn join((a, first): Found, (b, second): Found) -> Found {
    let rank = |found: &Result<WrongElement, u64>| match found {
        Err(index) => (0, *index),
        Ok(wrong) => (1, wrong.index),
    };
    let earlier = match (first, second) {
        (Some(x), Some(y)) => Some(if rank(&x) <= rank(&y) { x } else { y }),
        (x, y) => x.or(y),
    };
    (a + b, earlier)
}

/// Results for every code of a source of at most 16 bits, where that saves time.
struct Table(Vec<Option<u64>>);

impl Table {
    fn new(cast: &CastSpec, len: u64) -> Table {
        match cast.src.storage_bits() {
            Some(bits @ 1..=16) if len >= 1 << bits => {
                Table((0..1u64 << bits).map(|code| definition(cast, code)).collect())
            }
            _ => Table(Vec::new()),
        }
    }

    /// The right storage element. A tensor whose bytes were copied keeps even bits that its type ignores.
    fn expected(&self, cast: &CastSpec, code: u64, copied: bool) -> Option<u64> {
        if copied {
            return Some(code);
        }
        match self.0.get(code as usize) {
            Some(result) => *result,
            None => definition(cast, code),
        }
    }
}

fn definition(cast: &CastSpec, storage: u64) -> Option<u64> {
    match cast_one(cast, cast.src.code_of_storage(storage)) {
        Outcome::Defined(code) | Outcome::Undefined { code, .. } => Some(cast.dst.storage_of_code(code)),
        Outcome::Refused { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_the_earliest() {
        let wrong = |index| Ok(WrongElement { index, source: 0, expected: 0, actual: 1 });
        assert_eq!(join((2, Some(wrong(9))), (1, Some(wrong(3)))), (3, Some(wrong(3))));
        assert_eq!(join((2, Some(wrong(1))), (1, Some(Err(3)))).1, Some(Err(3)));
    }
}
