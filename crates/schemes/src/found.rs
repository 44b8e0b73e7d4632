//! Tensors of one group, for the functions that describe schemes, and constructors of their errors.

use std::str::FromStr;

use truecast_core::scaled::{Book, Part};
use truecast_core::{DType, words};
use truecast_io::Tensor;

use crate::checkpoint::Index;
use crate::error::Error;
use crate::scheme::{Parameters, Scheme};

words! {
    /// Nibble of a byte that holds the first element.
    pub enum Nibbles {
        /// Bits 4 to 7.
        High = "high",
        /// Bits 0 to 3.
        Low = "low",
    }
}

impl FromStr for Nibbles {
    type Err = String;

    fn from_str(text: &str) -> Result<Nibbles, String> {
        let known = Nibbles::of_name(text);
        known.ok_or_else(|| format!("expected high or low, the nibble of a byte that comes first, not {text:?}"))
    }
}

/// A scheme with its details. They come from the configuration, or from descriptions in tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) scheme: Scheme,
    /// True if pack-quantized words form one bit stream, as from version 0.18.0 on (§4.4.2). `None` if the version is
    /// unknown.
    pub(crate) is_dense_packing: Option<bool>,
    /// Element type of experts' weights: f4e2m1 or f8e4m3fn (§4.2).
    pub(crate) expert: Option<DType>,
    /// Description that a header gives of a torchao tensor (§4.7).
    pub(crate) torchao: Option<Torchao>,
    /// Stored description of a bitsandbytes tensor (§4.16).
    pub(crate) bitsandbytes: Option<QuantState>,
    /// True if BitNet's scale multiplies the codes; false if it divides them (§4.11).
    pub(crate) multiplies: bool,
    /// Declaration that every zero point is the midpoint of the codes: key and value as text.
    pub(crate) symmetric: Option<&'static str>,
    /// Optional parts of the scheme that the configuration requires.
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Torchao {
    pub(crate) class: String,
    pub(crate) block: Vec<u64>,
    pub(crate) element: Option<DType>,
    pub(crate) original: Option<DType>,
    pub(crate) is_swizzled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuantState {
    pub(crate) shape: Vec<u64>,
    /// Number of elements per absmax.
    pub(crate) block: u64,
    /// For quantized absmax values: the number of absmax values that share an outer absmax, and the f32 bits of the
    /// offset.
    pub(crate) nested: Option<(u64, u32)>,
}

impl Setting {
    pub(crate) fn of(scheme: Scheme) -> Setting {
        Setting { scheme, ..Setting::default() }
    }

    pub(crate) fn with(mut self, is_there: bool, part: Part) -> Setting {
        self.parts.extend(is_there.then_some(part));
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Part(Part),
    Shape,
    /// A factor outside the layout. The group can be read only if all its values are 1.
    Factor,
    /// Values of the 16 codes, which must equal this book. For `None`: a single number, which must be 0.
    Values(Option<Book>),
}

impl Piece {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Piece::Part(part) => part.name(),
            Piece::Shape => "shape",
            Piece::Factor => "factor",
            Piece::Values(_) => "values",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) index: &'a Index<'a>,
    pub(crate) name: &'a str,
    pub(crate) setting: &'a Setting,
    pub(crate) codes: usize,
    pub(crate) pieces: &'a [(Piece, usize)],
    /// Shape that a [`Piece::Shape`] states.
    pub(crate) stated: Option<Vec<u64>>,
    /// Shape that the tensor has in the unquantized reference.
    pub(crate) reference: Option<Vec<u64>>,
    pub(crate) nibbles: Nibbles,
}

impl<'a> Found<'a> {
    pub(crate) fn scheme(&self) -> Scheme {
        self.setting.scheme
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.setting.scheme.parameters
    }

    pub(crate) fn codes(&self) -> &'a Tensor {
        self.index.tensor(self.codes)
    }

    pub(crate) fn part(&self, part: Part) -> Option<&'a Tensor> {
        let found = self.pieces.iter().find(|(piece, _)| *piece == Piece::Part(part));
        found.map(|(_, number)| self.index.tensor(*number))
    }

    pub(crate) fn scales(&self) -> Result<&'a Tensor, Error> {
        self.part(Part::Scales).ok_or_else(|| self.unknown("scales", "the group has none"))
    }

    /// Number of elements per group, from the scheme's name or the configuration. `advice` ends the error if both
    /// lack it.
    pub(crate) fn group(&self, advice: &str) -> Result<u64, Error> {
        self.parameters().group.ok_or_else(|| self.unknown("the group", advice))
    }

    /// Number of bits per code. `advice` ends the error if the number is missing.
    pub(crate) fn bits(&self, advice: &str) -> Result<u32, Error> {
        self.parameters().bits.ok_or_else(|| self.unknown("the width", advice))
    }

    /// Rows and columns of a block. `advice` ends the error if they are missing.
    pub(crate) fn block(&self, advice: &str) -> Result<[u64; 2], Error> {
        self.parameters().block.ok_or_else(|| self.unknown("the block", advice))
    }

    /// Multiplies two sizes of the codes. An overflow gives [`Found::bad_shape`].
    pub(crate) fn product(&self, a: u64, b: u64) -> Result<u64, Error> {
        a.checked_mul(b).ok_or_else(|| self.bad_shape("it is too big"))
    }

    pub(crate) fn bad_shape(&self, why: impl Into<String>) -> Error {
        Error::Shape {
            tensor: self.codes().name.to_string(),
            scheme: Box::new(self.scheme()),
            found: self.codes().shape.to_vec(),
            why: why.into(),
        }
    }

    pub(crate) fn bad_grid(&self, tensor: &Tensor, logical: &[u64], expected: &[Vec<u64>]) -> Error {
        let shown: Vec<String> = expected.iter().map(|shape| format!("{shape:?}")).collect();
        Error::Grid {
            tensor: tensor.name.to_string(),
            codes: self.codes().name.to_string(),
            scheme: Box::new(self.scheme()),
            found: (*tensor.shape).into(),
            logical: logical.into(),
            expected: shown.join(" or "),
        }
    }

    pub(crate) fn unknown(&self, what: &'static str, advice: impl Into<String>) -> Error {
        Error::Unknown {
            tensor: self.codes().name.to_string(),
            scheme: Box::new(self.scheme()),
            what,
            advice: advice.into(),
        }
    }
}
