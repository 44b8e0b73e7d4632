//! Options of a conversion.

use crate::files::select::{QuantizeOptions, Selection, SourceScheme};
use crate::request::Request;
use std::fmt;
use std::str::FromStr;
use truecast_core::words;
use truecast_io::Existing;
use truecast_kernel::CastOptions;
use truecast_kernel::measure::Sample;
use truecast_schemes::ShapeOf;

/// Options for a conversion of a file or a folder.
#[derive(Clone, Debug)]
pub struct Options {
    /// Selection of tensors, and their types.
    pub selection: Selection,
    /// Specification of the casts.
    pub request: Request,
    /// Seed for stochastic rounding; `None` rounds by the specification.
    pub seed: Option<u64>,
    /// Limit on buffers, in bytes.
    pub max_memory: u64,
    /// Treatment of an existing destination.
    pub existing: Existing,
    /// Elements whose errors are measured.
    pub measure: Measuring,
    /// True to count the values of source and result by power of two.
    pub magnitudes: bool,
    /// Instruction set and threads. `counting` is ignored: every conversion counts.
    pub exec: CastOptions,
    /// Smaller tensors of a model are kept unless a rule names them.
    pub min_elements: u64,
    /// Strictness for ONNX files. `links` also applies to links in folders.
    pub onnx: truecast_io::onnx::Options,
    /// True to copy the files next to the shards.
    pub copy_sidecars: bool,
    /// True to continue an interrupted conversion.
    pub resume: bool,
    /// Shards to convert in this run.
    pub scope: RunScope,
    /// Interpretation of quantized tensors in the source.
    pub source_scheme: SourceScheme,
    /// Quantization of unquantized tensors.
    pub quantize: Option<QuantizeOptions>,
}

impl Options {
    /// Options for detection. `reference` returns the shapes of unquantized tensors.
    pub(crate) fn detection<'a>(&self, reference: Option<&'a ShapeOf<'a>>) -> truecast_schemes::Options<'a> {
        let SourceScheme { from_scheme, trust_scales, nibbles, .. } = self.source_scheme;
        truecast_schemes::Options { from_scheme, trust_scales, nibbles, reference, ..Default::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            selection: Selection::default(),
            request: Request::default(),
            seed: None,
            max_memory: 256 << 20,
            existing: Existing::Refuse,
            measure: Measuring::Sample,
            magnitudes: false,
            exec: CastOptions::default(),
            min_elements: 1024,
            onnx: truecast_io::onnx::Options::default(),
            copy_sidecars: true,
            resume: false,
            scope: RunScope::Whole,
            source_scheme: SourceScheme::default(),
            quantize: None,
        }
    }
}

words! {
    /// Elements whose errors are measured. Counts that need no errors cover all elements.
    ///
    /// Source: `docs/spec/checkpoints.md §10`.
    pub enum Measuring {
        /// 1 Mi to 2 Mi elements of a large tensor, all elements of a smaller one.
        Sample = "sample",
        /// All elements.
        Full = "full",
        /// No elements.
        Off = "off",
    }
}

impl Measuring {
    /// Selects the measured elements of a tensor of this length.
    pub(crate) fn sample(self, elements: u64) -> Sample {
        match self {
            Measuring::Sample => Sample::of(elements),
            Measuring::Full => Sample::ALL,
            Measuring::Off => Sample::NONE,
        }
    }
}

/// Shards that a run converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunScope {
    /// All shards.
    #[default]
    Whole,
    /// One of several runs that share the shards. The run that finds all parts finished completes the result.
    Part(Partition),
    /// No shards; completes the result of finished parts.
    Merge,
}

/// Part of a checkpoint: every `count`-th shard in the order of names (`docs/spec/checkpoints.md §2.9`).
///
/// # Examples
/// ```
/// use truecast::convert::Partition;
/// let part: Partition = "2/3".parse().unwrap();
/// assert_eq!((0..7).filter(|&shard| part.contains_shard(shard)).collect::<Vec<_>>(), [1, 4]);
/// assert!("4/3".parse::<Partition>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    number: usize,
    count: usize,
}

impl Partition {
    /// Largest number of parts.
    const MAX_PARTS: usize = 100_000;

    /// Part `number` of `count`, counted from 1. `None` unless `number` is within 1 to `count`, and for too many parts.
    #[must_use]
    pub fn new(number: usize, count: usize) -> Option<Partition> {
        ((1..=count).contains(&number) && count <= Partition::MAX_PARTS).then_some(Partition { number, count })
    }

    /// True if the shard with this index (from 0) belongs to the part.
    #[must_use]
    pub fn contains_shard(self, shard: usize) -> bool {
        shard % self.count == self.number - 1
    }

    pub(crate) fn all(self) -> impl Iterator<Item = Partition> {
        (1..=self.count).map(move |number| Partition { number, count: self.count })
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        let numbers =
            text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
        let part = numbers.and_then(|(number, count)| Partition::new(number, count));
        part.ok_or_else(|| {
            format!("expected a part I/N, such as 1/4, with I from 1 to N and N at most {}", Partition::MAX_PARTS)
        })
    }
}
