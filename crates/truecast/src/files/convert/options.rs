//! How a file or a folder is converted: everything that is asked for.

use crate::files::select::{QuantizeOptions, Selection, SourceScheme};
use crate::request::Request;
use std::fmt;
use std::str::FromStr;
use truecast_core::words;
use truecast_io::Existing;
use truecast_kernel::CastOptions;
use truecast_kernel::measure::Sample;
use truecast_schemes::ShapeOf;

/// How to convert a file or a folder.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which tensors become what.
    pub selection: Selection,
    /// The specification that decides.
    pub request: Request,
    /// Casts round stochastically, by this seed and the index of each element in its tensor.
    pub seed: Option<u64>,
    /// Bytes that buffers may take in all.
    pub max_memory: u64,
    /// What happens to an existing destination.
    pub existing: Existing,
    /// Which elements have their errors measured.
    pub measure: Measuring,
    /// Level and threads; counting is always on.
    pub exec: CastOptions,
    /// Smaller tensors of a model are kept unless a rule names them.
    pub min_elements: u64,
    /// How strictly ONNX files are read; `follow_links` is about the links of a folder too.
    pub onnx: truecast_io::onnx::Options,
    /// Files beside the shards are copied.
    pub sidecars: bool,
    /// Goes on where an earlier run stopped.
    pub resume: bool,
    /// Which of the shards are converted.
    pub share: RunScope,
    /// How quantized tensors of the source are understood.
    pub reading: SourceScheme,
    /// How dense tensors are quantized, if they are.
    pub writing: Option<QuantizeOptions>,
}

impl Options {
    /// How the source is understood; `reference` says the shape of a dense tensor.
    pub(crate) fn schemes<'a>(&self, reference: Option<&'a ShapeOf<'a>>) -> truecast_schemes::Options<'a> {
        let SourceScheme { from_scheme, trust_scales, nibbles, reference: _ } = self.reading;
        truecast_schemes::Options { from_scheme, trust_scales, nibbles, lists: false, reference }
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
            exec: CastOptions::default(),
            min_elements: 1024,
            onnx: truecast_io::onnx::Options::default(),
            sidecars: true,
            resume: false,
            share: RunScope::Whole,
            reading: SourceScheme::default(),
            writing: None,
        }
    }
}

words! {
    /// Which elements have their errors measured; counts that need no values are always of all.
    ///
    /// Source: `docs/spec/checkpoints.md §10`.
    pub enum Measuring {
        /// One to two Mi of each tensor.
        Sample = "sample",
        /// All.
        Full = "full",
        /// No element.
        Off = "off",
    }
}

impl Measuring {
    /// The sample of a tensor of so many elements.
    pub(crate) fn of(self, elements: u64) -> Sample {
        match self {
            Measuring::Sample => Sample::of(elements),
            Measuring::Full => Sample::ALL,
            Measuring::Off => Sample::NONE,
        }
    }
}

/// How much of a checkpoint one run converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunScope {
    /// All of it.
    #[default]
    Whole,
    /// One of several parts; the run that finds all of them finished ends the work.
    Part(Partition),
    /// No shard: it ends the work of finished parts.
    Merge,
}

/// One of several parts: every so many shards one, in the order of their names (`docs/spec/checkpoints.md §2.9`).
///
/// # Examples
/// ```
/// use truecast::convert::Partition;
/// let part: Partition = "2/3".parse().unwrap();
/// assert_eq!((0..7).filter(|&shard| part.has(shard)).collect::<Vec<_>>(), [1, 4]);
/// assert!("4/3".parse::<Partition>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    number: usize,
    of: usize,
}

impl Partition {
    /// More parts are nobody's.
    const MOST: usize = 100_000;

    /// Part `number`, from 1 on, of so many; `None` if there is none.
    #[must_use]
    pub fn new(number: usize, of: usize) -> Option<Partition> {
        ((1..=of).contains(&number) && of <= Partition::MOST).then_some(Partition { number, of })
    }

    /// A shard, by its position from 0, belongs to the part.
    #[must_use]
    pub fn has(self, shard: usize) -> bool {
        shard % self.of == self.number - 1
    }

    /// All the parts that this is one of.
    pub(crate) fn all(self) -> impl Iterator<Item = Partition> {
        (1..=self.of).map(move |number| Partition { number, of: self.of })
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        let part = numbers.and_then(|(number, of)| Partition::new(number, of));
        part.ok_or_else(|| {
            format!("expected a part I/N, such as 1/4, with I from 1 to N and N at most {}", Partition::MOST)
        })
    }
}
